r"""Indicator to function (allenzhu2018, Lemma 5.1, corrected) and its ReLU twin, through Hermite
polynomials.

Let $\alpha_1, \beta_1 \sim \mathcal N(0,1)$, let $b_0$ be $0$ with probability 1/2 and
$\mathcal N(0,2)$ otherwise, all independent, and $g = \alpha_1 x_1 + \beta_1\sqrt{1-x_1^2}$. The
lemma writes a power series as an average over active neurons:
$$\mathbb E\big[\mathbf 1[g + b_0 \ge 0]\, h(\alpha_1, b_0)\big] = \phi(x_1) \quad (20), \qquad
h = 2c_0 + \sum_{i=1}^{D} c'_i\, He_i(\mathrm{clip}(\alpha_1, \pm B_i))\,\psi_i(b_0), \quad c'_i =
  c_i/p'_i.$$

Why: $\mathbb E[He_i(\alpha_1)\mathbf 1[g \ge b]] = x_1^i\, He_{i-1}(b)\, n(b)$ for every $i \ge 1$
(Lemma A.6 in closed form), so that with $p'_i = \mathbb E_{b_0}[\psi_i(b_0) He_{i-1}(-b_0) n(b_0)]$
each term contributes $c_i x_1^i$. With $\mathrm{relu}(g+b_0)$ in the place of the indicator the
same holds with $r_0 = bN(b)+n(b)$, $r_1 = N(b)$, $r_i = He_{i-2}(-b)n(b)$ for $He_{i-1}(-b)n(b)$.

Corrected: (107)-(117) print the windows of even and odd degrees swapped, the Hermite index as $i$
instead of $2i, 2i+1$, and a clip sign without its level; and $|h| \le C(\phi,\cdot)$ is false for
nearly constant $\phi$, where $|h| = 2|c_0|$.

Everything is evaluated with the normalised $q_i = He_i/\sqrt{i!}$, for which nothing overflows:
$c'_i\,He_i = (c_i\sqrt i/\tilde p_i)\,q_i$ with $\tilde p_i = p'_i/\sqrt{(i-1)!}$.
"""

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.special as sp
from numpy.typing import ArrayLike

from ....._core.arrays import real_values
from ....._core.errors import (
    check_between,
    check_choice,
    check_count,
    check_nonnegative,
    check_positive,
)
from ....._core.precision import double
from ...laws.power_series import PowerSeries

__all__ = [
    "HermiteFunction",
    "hermite_function",
    "least_constant",
    "normalised_hermite",
    "paper_clip",
    "practical_clip",
    "window_constant",
    "window_end",
]

Numbers = (
    ArrayLike | float | bool
)  # run-time type checks do not count these as complex, as numpy's alias does
Values = np.ndarray | float

WINDOWS, GATES = ("wide", "paper"), ("indicator", "relu")
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(160)
_CLOSE = 1e-8  # |x1| closer to 1 than this: the Gaussian cdf is replaced by the indicator


def normal_density(z: Numbers) -> Values:
    r"""$n(z)$, the standard normal density."""
    return np.exp(-0.5 * np.square(z)) / math.sqrt(2 * math.pi)


def bias_density(b: Numbers) -> Values:
    r"""$f_2(b)$, the density of $\mathcal N(0, 2)$."""
    return np.exp(-0.25 * np.square(b)) / math.sqrt(4 * math.pi)


@double
def normalised_hermite(degree: int, x: Numbers) -> np.ndarray:
    r"""$q_0(x), \dots, q_D(x)$ along a new first axis, $q_i = He_i/\sqrt{i!}$, by
    $q_{i+1} = (xq_i - \sqrt i\,q_{i-1})/\sqrt{i+1}$.

    Args:
        degree: $D$.
        x: where, any shape.
    """
    check_count("degree", degree, least=0)
    x = np.asarray(real_values("x", x), dtype=float)
    rows = [np.ones_like(x), x]
    for i in range(1, degree):
        rows.append((x * rows[i] - math.sqrt(i) * rows[i - 1]) / math.sqrt(i + 1))
    return np.stack(rows[: degree + 1])


def _check_window(degree, window, gate, least: int) -> None:
    check_count("degree", degree, least=least)
    check_choice("window", window, WINDOWS)
    check_choice("gate", gate, GATES)


def window_end(degree: int, window: str = "wide", gate: str = "indicator") -> float:
    r"""Where $\psi_i$ ends: $1/(2i)$ for the paper's window; wide: 2, then the smallest positive
    zero of the Hermite polynomial in $p'_i$.

    Args:
        degree: $i \ge 1$.
        window: "wide" or "paper".
        gate: "indicator", whose polynomial is $He_{i-1}$, or "relu", with $He_{i-2}$.
    """
    _check_window(degree, window, gate, least=1)
    return _window_end(degree, window, gate)


@functools.cache
def _window_end(degree: int, window: str, gate: str) -> float:
    if window == "paper":
        return 1 / (2 * degree)
    order = degree - (1 if gate == "indicator" else 2)
    if order <= 1:
        return 2.0
    zeros = sp.roots_hermitenorm(order)[0]
    return float(np.min(zeros[zeros > 1e-9]))


def uses_atom(degree: int, gate: str = "indicator") -> bool:
    r"""Whether degree $i$ is read off the neurons with $b_0 = 0$: odd $i$ for the indicator;
    $i = 0, 1$ and even $i$ for the ReLU.
    """
    return degree % 2 == 1 if gate == "indicator" else degree % 2 == 0 or degree == 1


def _on_interval(end: float | int) -> tuple[np.ndarray, np.ndarray]:
    return 0.5 * end * (_NODES + 1), 0.5 * end * _WEIGHTS


@functools.cache
def normalised_window_constant(degree: int, window: str = "wide", gate: str = "indicator") -> float:
    r"""$\tilde p_i = p'_i$ divided by $\sqrt{(i-1)!}$ (indicator, $i \ge 1$) or $\sqrt{(i-2)!}$
    (ReLU; by 1 for $i < 2$).
    """
    if gate == "relu" and degree < 2:
        # E[1[b0 = 0] r_i(0)]: r_0(0) = n(0), r_1(0) = N(0) = 1/2
        return 0.5 * float(normal_density(0.0)) if degree == 0 else 0.25
    order = degree - (1 if gate == "indicator" else 2)
    if uses_atom(degree, gate):
        return 0.5 * float(normalised_hermite(order, 0.0)[order] * normal_density(0.0))
    b, weight = _on_interval(window_end(degree, window, gate))
    integral = float(
        np.sum(weight * normalised_hermite(order, b)[order] * normal_density(b) * bias_density(b))
    )
    return integral if window == "wide" else 0.5 * integral


def window_constant(degree: int, window: str = "wide", gate: str = "indicator") -> float:
    r"""$p'_i = \mathbb E[\psi_i(b_0) He_{i-1}(-b_0)n(b_0)]$, the coefficient of $x_1^i$ (Claim B.1
    bounds it from below).

    Args:
        degree: $i$.
        window: "wide" or "paper".
        gate: "indicator", or "relu", for which $He_{i-1}(-b_0)n(b_0)$ becomes $r_i$.
    """
    _check_window(degree, window, gate, least=0 if gate == "relu" else 1)
    order = max(degree - (1 if gate == "indicator" else 2), 0)
    return normalised_window_constant(degree, window, gate) * math.exp(0.5 * math.lgamma(order + 1))


def practical_clip(degree: int, margin: float | int) -> np.ndarray:
    r"""$B_i = \sqrt{2i} + \kappa$, $i = 0, \dots, D$, with $\kappa$ = `margin`.

    Args:
        degree: $D$.
        margin: $\kappa$.
    """
    check_count("degree", degree, least=0)
    check_nonnegative("margin", margin)
    return np.sqrt(2.0 * np.arange(degree + 1)) + margin


def paper_clip(degree: int, error: float | int) -> np.ndarray:
    r"""$B_i = 100\sqrt{i\log(1/\varepsilon)}$ as printed; the sums it allows overflow any use
    beyond small degrees.

    Args:
        degree: $D$.
        error: $\varepsilon$, between 0 and 1.
    """
    check_count("degree", degree, least=0)
    check_between("error", error, 0, 1, open=True)
    return 100 * np.sqrt(np.arange(degree + 1) * math.log(1 / error))


def least_constant(degree: int, error: float | int = 0.01) -> float:
    r"""The smallest $C_c$ for which term $i$ of the paper's own $h$ (its windows and clips) obeys
    $|c'_i\,He_i(B_i)| \le \frac12(C_c\sqrt{\log(1/\varepsilon)})^i\,|c_i|$, as $|h| \le C(\phi,
    \sqrt{\log(1/\varepsilon)})$ needs; hardly depends on $\varepsilon$.

    Args:
        degree: $i \ge 1$.
        error: $\varepsilon$, between 0 and 1.

    >>> round(least_constant(1)), round(least_constant(2))  # so the paper's 10^4 is enough
    (1003, 4825)
    """
    check_count("degree", degree)
    check_between("error", error, 0, 1, open=True)
    level = ratio = float(paper_clip(degree, error)[degree])
    log_size = math.log(level)  # of q_i(B_i), which overflows: beyond its zeros every ratio is > 0
    for i in range(1, degree):
        ratio = (level - math.sqrt(i) / ratio) / math.sqrt(i + 1)
        log_size += math.log(ratio)
    constant = abs(normalised_window_constant(degree, "paper"))
    log_size += math.log(2 * math.sqrt(degree) / constant)  # He_i / p'_i = sqrt(i) q_i / constant
    return math.exp(log_size / degree) / math.sqrt(math.log(1 / error))


@dataclass(frozen=True)
class HermiteFunction:
    r"""The function $h(\alpha, b_0)$ of Lemma 5.1 for one $\phi$; build it with `hermite_function`.

    `clip[i]` is $B_i$. Bias values must come with the flag `atom` (was $b_0$ drawn as exactly 0?),
    because a comparison with zero after arithmetic is unsafe; when the flag is left out it is taken
    from `bias == 0`.

    Attributes:
        phi: $\phi$.
        degree: $D$.
        window: "wide" or "paper"; see `window_end`.
        gate: "indicator" for (20), or "relu".
        clip: $B_0, \dots, B_D$.
    """

    phi: PowerSeries
    degree: int
    window: str
    gate: str
    clip: np.ndarray

    @functools.cached_property
    def taylor(self) -> np.ndarray:
        r"""$c_0, \dots, c_D$."""
        return self.phi.coefficients(self.degree)

    @functools.cached_property
    def weights(self) -> np.ndarray:
        r"""$c'_i\sqrt{i!}$, the coefficients of the normalised Hermite polynomials; entry 0 is
        $2c_0$ (indicator) or $c_0/p'_0$ (ReLU).
        """
        taylor = self.taylor
        constants = np.array(
            [
                1.0
                if i == 0 and self.gate == "indicator"
                else normalised_window_constant(i, self.window, self.gate)
                for i in range(self.degree + 1)
            ]
        )
        i = np.arange(self.degree + 1.0)
        if self.gate == "indicator":
            factors = np.where(
                i == 0, 2.0, np.sqrt(np.maximum(i, 1.0))
            )  # P[g + b0 >= 0] = 1/2 carries the constant
        else:
            factors = np.sqrt(np.where(i >= 2, i * (i - 1), 1.0))
        return np.where(taylor == 0, 0.0, taylor * factors / constants)

    def __call__(self, alpha: Numbers, bias: Numbers, atom: Numbers | None = None) -> np.ndarray:
        r"""$h(\alpha, b_0)$, elementwise."""
        alpha, bias = np.broadcast_arrays(np.asarray(alpha, float), np.asarray(bias, float))
        atom = (
            np.asarray(bias == 0)
            if atom is None
            else np.broadcast_to(np.asarray(atom, bool), alpha.shape)
        )
        total = np.zeros(alpha.shape)
        for i, weight in enumerate(self.weights):
            if weight == 0:
                continue
            gate = self._window(i, bias, atom)
            q = normalised_hermite(i, np.clip(alpha, -self.clip[i], self.clip[i]))[i]
            total += weight * q * gate
        return total

    def _window(self, i: int, bias: np.ndarray, atom: np.ndarray) -> np.ndarray:
        r"""$\psi_i(b_0)$."""
        if i == 0 and self.gate == "indicator":
            return np.ones(bias.shape)
        if uses_atom(i, self.gate):
            return atom.astype(float)
        end = window_end(i, self.window, self.gate)
        if self.window == "paper":
            return (~atom & (-bias > 0) & (-bias <= end)).astype(float)
        return np.where(~atom & (np.abs(bias) <= end), -np.sign(bias), 0.0)

    def representation(self, x1: Numbers) -> np.ndarray:
        r"""The left side of (20) at $x_1 \in [-1, 1]$, without sampling: $\sum_i c_ix_1^i$ plus the
        clip corrections $c'_i\int_{|a|>B_i}(He_i(\mathrm{sign}(a)B_i) - He_i(a))\,n(a)K_i(a)\,da$,
        smooth integrals done by Gauss-Legendre.
        """
        if self.gate == "relu":
            raise ValueError('`gate` must be "indicator" for `representation`, got "relu".')
        x1 = np.atleast_1d(np.asarray(x1, float))
        if np.any(np.abs(x1) > 1):
            raise ValueError(f"`x1` must lie in [-1, 1], got {x1[np.argmax(np.abs(x1))]}.")
        total = np.polynomial.polynomial.polyval(x1, self.taylor)
        for i, weight in enumerate(self.weights):
            if i == 0 or weight == 0:
                continue
            level = self.clip[i]
            tail, tail_weight = _on_interval(max(math.sqrt(2 * i) + 14 - level, 6.0))
            for side in (1.0, -1.0):
                a = side * (level + tail)
                jump = normalised_hermite(i, side * level)[i] - normalised_hermite(i, a)[i]
                density = tail_weight * jump * normal_density(a)
                total += weight * np.sum(density * self._probability(i, a, x1[:, None]), axis=-1)
        return total

    def _probability(self, i: int, a: np.ndarray, x1: np.ndarray) -> np.ndarray:
        r"""$K_i(a) = \mathbb E[\psi_i(b_0)\mathbf 1[ax_1 + s\beta_1 + b_0 \ge 0]]$,
        $s = \sqrt{1-x_1^2}$.
        """
        s = np.sqrt(np.maximum(1 - x1**2, _CLOSE**2))
        if uses_atom(i):
            return 0.5 * sp.ndtr(a * x1 / s)
        b, weight = _on_interval(window_end(i, self.window))
        below = sp.ndtr((a * x1)[..., None] / s[..., None] - b / s[..., None])
        if self.window == "wide":
            below = below - sp.ndtr((a * x1)[..., None] / s[..., None] + b / s[..., None])
        return 0.5 * np.sum(weight * bias_density(b) * below, axis=-1)

    def error(self, points: int = 81) -> float:
        r"""$\max |\text{(20)} - \phi|$ over a grid of $[-1, 1]$, ends included."""
        x1 = np.linspace(-1, 1, points)
        return float(np.max(np.abs(self.representation(x1) - np.asarray(self.phi(x1)))))

    def _window_ends(self) -> list[float]:
        """Where the windows of the degrees that read drawn biases end, rising."""
        degrees = (i for i in range(2, self.degree + 1) if not uses_atom(i, self.gate))
        return sorted({window_end(i, self.window, self.gate) for i in degrees})

    def _bias_classes(self) -> list[tuple[float, bool]]:
        """One bias value from each region on which h is constant in the bias."""
        ends = self._window_ends()
        middles = [
            0.5 * (low + high)
            for low, high in zip(
                [0.0, *ends], [*ends, 2 * (ends[-1] if ends else 1.0)], strict=True
            )
        ]
        return [(0.0, True), *((sign * b, False) for b in middles for sign in (1.0, -1.0))]

    def sup(self, points: int = 4001) -> float:
        r"""$\sup|h|$: $h$ is piecewise constant in $b_0$, and in $\alpha$ is searched on a grid
        with the clip levels added.
        """
        top = float(np.max(self.clip))
        grid = np.concatenate([np.linspace(-top, top, points), self.clip, -self.clip])
        return max(float(np.max(np.abs(self(grid, b, atom)))) for b, atom in self._bias_classes())

    def std(self, x1: float | int = 0.5) -> float:
        r"""Standard deviation of one neuron's $\mathbf 1[g+b_0\ge0]\,h$ at $x_1$: a network of $m$
        neurons has error `std`$/\sqrt m$.
        """
        s = math.sqrt(max(1 - x1**2, _CLOSE**2))
        # panels end where h has its kinks, the clip levels
        levels = self.clip[np.abs(self.clip) < 14]
        edges = np.unique(np.concatenate([np.linspace(-14.0, 14.0, 15), levels, -levels]))
        panels = list(itertools.pairwise(edges))
        a = np.concatenate([low + 0.5 * (high - low) * (_NODES + 1) for low, high in panels])
        weight = np.concatenate([0.5 * (high - low) * _WEIGHTS for low, high in panels])
        weight *= normal_density(a)
        second = 0.5 * np.sum(weight * self(a, 0.0, True) ** 2 * sp.ndtr(a * x1 / s))
        ends = self._window_ends()
        for low, high in zip([0.0, *ends], [*ends, 14.0], strict=True):
            b = low + 0.5 * (high - low) * (_NODES + 1)
            for sign in (1.0, -1.0):
                value = self(a, sign * b[80], False) ** 2
                active = sp.ndtr((a[:, None] * x1 + sign * b) / s) @ (
                    0.5 * (high - low) * _WEIGHTS * bias_density(b)
                )
                second += 0.5 * np.sum(weight * value * active)
        return math.sqrt(second - float(self.representation(x1)[0]) ** 2)


def hermite_function(
    phi: Callable,
    *,
    degree: int | None = None,
    error: float | int = 1e-3,
    window: str = "wide",
    margin: float | int = 3.0,
    clip: Numbers | None = None,
    gate: str = "indicator",
) -> HermiteFunction:
    r"""The $h$ of Lemma 5.1 for $\phi$ = `phi`.

    Args:
        phi: the function to represent, a `PowerSeries`.
        degree: $D$; by default the smallest whose Taylor tail on $[-1,1]$ is below `error`/4.
        error: $\varepsilon$ of the lemma; (20) then holds up to $2\varepsilon$ as long as the clip
            allows.
        window: "wide" (ten times smaller deviation) or "paper", $0 < -b_0 \le 1/(2i)$.
        margin: $\kappa$ of the practical clip $B_i = \sqrt{2i} + \kappa$.
        clip: one level for all degrees, or $B_0, \dots, B_D$ (see `paper_clip`); overrides
            `margin`.
        gate: "indicator" for (20), "relu" for $\mathbb E[\mathrm{relu}(g+b_0)h] = \phi(x_1)$.
    """
    if not isinstance(phi, PowerSeries):
        raise ValueError(
            "`phi` must be a function whose power series is known, such as `smooth('sin')`, got "
            f"{phi!r}."
        )
    check_positive("error", error)
    if degree is None:
        degree = phi.taylor_degree(error / 4)
    _check_window(degree, window, gate, least=0)
    if clip is None:
        levels = practical_clip(degree, margin)
    else:
        given = np.asarray(real_values("clip", clip, "()", f"({degree + 1},)"), float)
        levels = np.broadcast_to(given, (degree + 1,))
    return HermiteFunction(phi, int(degree), window, gate, levels)
