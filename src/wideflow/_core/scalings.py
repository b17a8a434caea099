r"""Scalings: how the output, the pre-activation and the step depend on width.

A shallow network of width $m$ on $D$ features is $f(x) = \sum_j s_j a_j \sigma(h_j(x))$,
$h_j = p \langle w_j, \phi(x)\rangle$, trained with $\dot w_j = -c\, \partial L/\partial w_j$. A
scaling is the triple $(s, p, c)$ as a function of $(m, D)$:

| scaling | $s_j$ | $p$ | $c$ |
|---|---|---|---|
| `NTK` | $m^{-1/2}$ | $D^{-1/2}$ | 1 |
| `MeanField(hidden=q)` | $1/m$ | $D^{-q}$ | $m D^{2q-1}$ |
| `Zipf(gamma, alpha)`, `Weights(...)` | $\sqrt{\lambda_j}$ | $D^{-1/2}$ | 1 |
| `ABC(a, b, c)` | $m^{-a_2}$ | $m^{-a_1} D^{-q}$ | $m^{-c}$ |
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import zeta

from .classification import ScalingVerdict as ScalingVerdict, classify as classify
from .errors import (
    check_between,
    check_count,
    check_flag,
    check_kind,
    check_number,
    check_positive,
    check_same_length,
)
from .host import on_device
from .memory import check_fits
from .precision import double

__all__ = [
    "ABC",
    "MAXIMAL_UPDATE",
    "NTK",
    "AbstractScaling",
    "MeanField",
    "ScalingVerdict",
    "Weights",
    "Zipf",
    "classify",
    "parse_scaling",
]


class AbstractScaling:
    """Node scales, pre-activation factor and neuron factor as functions of the width."""

    @abstractmethod
    def node_scales(self, width: int) -> Float[Array, " width"]:
        r"""The factors $s_j$; the node weights are $\lambda_j = s_j^2$."""

    def hidden_scale(self, width: int, features: int) -> float:
        r"""The factor $p$ of $\langle w, \phi(x)\rangle$."""
        return features**-0.5

    def rate_factor(self, width: int, features: int) -> float:
        """The factor $c$ by which every neuron's gradient is multiplied."""
        return 1.0

    def initial_deviation(self, width: int) -> float:
        """Standard deviation of the weights at time zero."""
        return 1.0


@dataclass(frozen=True)
class NTK(AbstractScaling):
    r"""$s_j = m^{-1/2}$: lazy as $m$ grows. The same network as `Zipf(gamma=1)`."""

    @double
    def node_scales(self, width: int) -> Float[Array, " width"]:
        check_count("width", width)
        check_fits(width=width)
        return on_device(np.full(width, width**-0.5))


@dataclass(frozen=True)
class MeanField(AbstractScaling):
    r"""$s_j = 1/m$ with every neuron's gradient multiplied by $m$.

    Args:
        hidden: the exponent $q$ of $p = D^{-q}$: 1/2 is the scaling of chen2022 (its "ours"), 1 the
            older mean-field scaling (its "MF", with neuron factor $mD$).
    """

    hidden: float = 0.5

    def __post_init__(self):
        check_number("hidden", self.hidden)

    @double
    def node_scales(self, width: int) -> Float[Array, " width"]:
        check_count("width", width)
        check_fits(width=width)
        return on_device(np.full(width, 1.0 / width))

    def hidden_scale(self, width: int, features: int) -> float:
        return features**-self.hidden

    def rate_factor(self, width: int, features: int) -> float:
        return width * features ** (2 * self.hidden - 1)


@dataclass(frozen=True)
class Zipf(AbstractScaling):
    r"""$\lambda_j = \gamma/m + (1-\gamma)\, j^{-1/\alpha} / \sum_{k\le m} k^{-1/\alpha}$
    (caron2023, eq. 1, 4).

    Args:
        gamma: $\gamma$, the share of equal weights, between 0 and 1.
        alpha: $\alpha$, between 0 and 1; smaller is steeper.
        released: whether to reproduce the authors' code, which evaluates the power law one index
            too low: node 1 gets no power-law weight and the sum falls short of 1.

    >>> Zipf(gamma=0.0, alpha=0.5).node_scales(2) ** 2
    Array([0.8, 0.2], dtype=float64)
    """

    gamma: float = 0.5
    alpha: float = 0.7
    released: bool = False

    def __post_init__(self):
        check_flag("released", self.released)
        check_between(
            "gamma", self.gamma, 0.0, 1.0, remedy="1 is the NTK scaling, 0 all power law."
        )
        if self.gamma < 1:
            check_between("alpha", self.alpha, 0.0, 1.0, open=True, remedy="Smaller is steeper.")

    def node_weights(self, width: int) -> np.ndarray:
        r"""$\lambda_j$, $j = 1..m$."""
        check_count("width", width)
        check_fits(width=width)
        if self.gamma == 1:
            return np.full(width, 1.0 / width)
        power = np.arange(1, width + 1, dtype=np.float64) ** (-1.0 / self.alpha)
        # summed exactly: the weights are compared with theory to the last digits
        share = power / math.fsum(power)
        if self.released:
            # node j gets the share of node j - 1 and node 1 none: the last share is lost
            share = np.concatenate([[0.0], share[:-1]])
        return self.gamma / width + (1 - self.gamma) * share

    @double
    def node_scales(self, width: int) -> Float[Array, " width"]:
        return on_device(np.sqrt(self.node_weights(width)))

    def split(self, width: int) -> tuple[np.ndarray, np.ndarray]:
        r"""$(\lambda^{(1)}, \lambda^{(2)})$: the symmetric and the power-law part."""
        weights = self.node_weights(width)
        symmetric = np.full(width, self.gamma / width)
        return symmetric, weights - symmetric

    def limit_weights(self, count: int) -> np.ndarray:
        r"""$\tilde\lambda_j = j^{-1/\alpha}/\zeta(1/\alpha)$ for $j \le$ `count`."""
        check_count("count", count)
        check_fits(count=count)
        s = 1.0 / self.alpha
        return np.arange(1, count + 1, dtype=np.float64) ** -s / zeta(s)

    def limit_tail(self, count: int, power: float = 1.0) -> float:
        r"""$\sum_{j > J} \tilde\lambda_j^r$ for $J$ = `count`, $r$ = `power`, through the Hurwitz
        zeta function.
        """
        check_count("count", count, least=0)
        check_positive("power", power)
        s = 1.0 / self.alpha
        return float(zeta(power * s, count + 1) / zeta(s) ** power)


@dataclass(frozen=True)
class Weights(AbstractScaling):
    r"""$\lambda_j = \gamma/m + (1-\gamma)\,\tilde\lambda_j/\sum_{k\le m}\tilde\lambda_k$ for any
    non-increasing $\tilde\lambda$.

    Args:
        sequence: $\tilde\lambda$: at least `width` values, or a function of the index
            $j = 1, 2, ...$
        gamma: $\gamma$, the share of equal weights, between 0 and 1.
    """

    sequence: tuple[float, ...] | Callable[[int], float]
    gamma: float

    def __init__(self, sequence, gamma: float = 0.0):
        check_between("gamma", gamma, 0.0, 1.0)
        if isinstance(sequence, type):
            raise ValueError(f"`sequence` must be numbers or a function of j, got {sequence!r}.")
        if not callable(sequence):
            values = _floats(sequence)
            if values.ndim != 1 or values.size == 0:
                raise ValueError(f"`sequence` must be a list of numbers, got shape {values.shape}.")
            _check_falling(values)
            sequence = tuple(values.tolist())
        object.__setattr__(self, "sequence", sequence)
        object.__setattr__(self, "gamma", gamma)

    def node_weights(self, width: int) -> np.ndarray:
        check_count("width", width)
        check_fits(width=width)
        if callable(self.sequence):
            values = _floats([self.sequence(j) for j in range(1, width + 1)])
        else:
            values = np.asarray(self.sequence)[:width]
        if values.size < width:
            raise ValueError(
                f"`sequence` must have at least `width` = {width} values, got {values.size}."
            )
        _check_falling(values)
        return self.gamma / width + (1 - self.gamma) * values / math.fsum(values)

    @double
    def node_scales(self, width: int) -> Float[Array, " width"]:
        return on_device(np.sqrt(self.node_weights(width)))


def _check_falling(values: np.ndarray) -> None:
    if not (np.all(np.isfinite(values)) and values[0] > 0 and np.all(values >= 0)):
        raise ValueError("`sequence` must be finite and non-negative and start above 0.")
    if np.any(np.diff(values) > 0):
        raise ValueError("`sequence` must not increase. Sort it from the largest value down.")


def _floats(sequence) -> np.ndarray:
    try:
        return np.asarray(sequence, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`sequence` must hold numbers only, got {sequence!r}.") from error


@dataclass(frozen=True)
class ABC(AbstractScaling):
    r"""Width exponents $(a, b, c)$, one of each for every layer from the first to the output
    (yang2021).

    At width $m$ layer $l$ acts as $m^{-a_l} w^l$ with $w^l \sim N(0, m^{-2 b_l})$ at time zero and
    is trained at rate $\eta\, m^{-c_l}$; the first layer keeps the factor $D^{-1/2}$ of its input.
    `Shallow` takes two layers, `Deep` as many as it has.

    Args:
        c: one exponent for all layers, or one for each.
    """

    a: tuple[float | int, ...]
    b: tuple[float | int, ...] = (0.0, 0.0)
    c: float | int | tuple[float | int, ...] = 0.0

    def __post_init__(self):
        for name, exponents in (("a", self.a), ("b", self.b)):
            check_kind(name, exponents, (tuple, list), "exponents, one per layer")
            for exponent in exponents:
                check_number(name, exponent)
            object.__setattr__(self, name, tuple(float(x) for x in exponents))
        check_same_length(a=self.a, b=self.b)
        if len(self.a) < 2:
            raise ValueError(
                "`a` must have one exponent per layer, at least two (hidden, output), got "
                f"{len(self.a)}."
            )
        each = self.c if isinstance(self.c, tuple | list) else (self.c,)
        for exponent in each:
            check_number(
                "c", exponent, "A layer that is not trained is `Dense(..., trained=False)`."
            )
        if isinstance(self.c, tuple | list):
            object.__setattr__(self, "c", tuple(float(x) for x in self.c))
            check_same_length(a=self.a, c=self.c)

    @property
    def rate_exponents(self) -> tuple[float, ...]:
        """$c_l$, one a layer."""
        return self.c if isinstance(self.c, tuple) else (float(self.c),) * len(self.a)

    @double
    def node_scales(self, width: int) -> Float[Array, " width"]:
        check_count("width", width)
        check_fits(width=width)
        self._check_shallow()
        return jnp.full(width, float(width) ** -self.a[1])

    def hidden_scale(self, width: int, features: int) -> float:
        return float(width) ** -self.a[0] * features**-0.5

    def rate_factor(self, width: int, features: int) -> float:
        return float(width) ** -self.rate_exponents[0]

    def initial_deviation(self, width: int) -> float:
        return float(width) ** -self.b[0]

    def output_deviation(self, width: int) -> float:
        return float(width) ** -self.b[1]

    def shifted(self, theta: float) -> "ABC":
        r"""The same training path: $a_l + \theta$, $b_l - \theta$, $c_l - 2\theta$ (yang2021;
        chen2022, App. C).
        """
        a, b = tuple(x + theta for x in self.a), tuple(x - theta for x in self.b)
        if isinstance(self.c, tuple):
            return ABC(a, b, tuple(x - 2 * theta for x in self.c))
        return ABC(a, b, self.c - 2 * theta)

    def _check_shallow(self) -> None:
        if len(self.a) != 2:
            raise ValueError(
                "`a` must have two exponents (hidden, output) for a shallow network, got "
                f"{len(self.a)}. "
                "For more layers use `Deep`."
            )


MAXIMAL_UPDATE = ABC(a=(-0.5, 0.5), b=(0.5, 0.5), c=0.0)
"""Maximal update for one hidden layer on fixed inputs; `MAXIMAL_UPDATE.shifted(0.5)` is mean
field.
"""


def parse_scaling(text: str) -> AbstractScaling:
    """A scaling from shell text: 'ntk', 'mean-field', 'zipf:0.5,0.7', 'abc:0,0.5;0,0;0'.

    Args:
        text: the name, and after a colon its numbers.

    >>> parse_scaling("zipf:0.5,0.7")
    Zipf(gamma=0.5, alpha=0.7, released=False)
    """
    check_kind("scaling", text, str, "text such as 'ntk' or 'zipf:0.5,0.7'")
    name, _, rest = text.partition(":")
    name = name.strip().lower().replace("_", "-")
    try:
        if name == "ntk" and not rest:
            return NTK()
        if name in ("mean-field", "mf"):
            return MeanField(float(rest)) if rest else MeanField()
        if name == "zipf":
            return _zipf(tuple(float(part) for part in rest.split(",")) if rest else ())
        if name == "abc":
            a, b, c = (tuple(float(x) for x in part.split(",")) for part in rest.split(";"))
            if len(c) != 1:
                raise ValueError(f"one exponent C is needed, got {len(c)}")
            return ABC(a, b, c[0])
    except (TypeError, ValueError) as error:
        raise ValueError(f"`scaling` {text!r} cannot be read: {error}") from error
    raise ValueError(
        "`scaling` must be 'ntk', 'mean-field', 'zipf:GAMMA,ALPHA' or 'abc:A1,A2;B1,B2;C', got "
        f"{text!r}."
    )


def _zipf(numbers: tuple[float, ...]) -> Zipf:
    match numbers:
        case ():
            return Zipf()
        case (gamma,):
            return Zipf(gamma)
        case (gamma, alpha):
            return Zipf(gamma, alpha)
    raise ValueError(f"GAMMA and ALPHA are needed, got {len(numbers)} numbers")
