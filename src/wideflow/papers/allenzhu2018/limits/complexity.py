r"""The complexity $C(\phi, R)$ of a smooth activation and what it predicts (allenzhu2018, (17),
(18), (41), appendix G).

$$C(\phi, R) = \sum_i (C_c R)^i\, |c_i|, \qquad \phi(z) = \sum_i c_i z^i.$$

The constant $C_c$ is "for example $10^4$" in the paper and is the argument `constant` here. With
$10^4$ nothing numerical is left to say ($C(\exp, 1) = e^{10000}$), so use the `log_` functions, or
a constant in $[1, 10]$ and say so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...._core.arrays import real_values
from ...._core.errors import (
    check_between,
    check_count,
    check_kind,
    check_positive,
)
from ..laws.power_series import PowerSeries

__all__ = [
    "TheoryParameters",
    "ThreeLayerPrediction",
    "TwoLayerPrediction",
    "class_complexity",
    "complexity",
    "expected_shrinkage",
    "log_complexity",
    "log_three_layer_complexity",
    "theory_min_width",
    "theory_parameters",
    "three_layer_complexity",
    "three_layer_prediction",
    "two_layer_complexity",
    "two_layer_prediction",
]

PAPER_CONSTANT = 1e4


def _check_positive(**values: float | int) -> None:
    for name, value in values.items():
        check_positive(name, value)


def _check_series(name: str, *series) -> None:
    for phi in series:
        check_kind(
            name, phi, PowerSeries, "a `PowerSeries`", "`wf.data.smooth` and `polynomial` make one."
        )


def _check_all(name: str, series) -> None:
    check_kind(name, series, Sequence, "a list of `PowerSeries`")
    if not series:
        raise ValueError(f"`{name}` must hold at least one `PowerSeries`, got none.")
    _check_series(name, *series)


def _check_error(error: float | int) -> None:
    check_between("error", error, 0, 1, open=True)


def log_complexity(
    phi: PowerSeries, radius: float | int, constant: float | int = PAPER_CONSTANT
) -> float:
    r"""$\log C(\phi, R)$ at `radius` $R$: safe where $C$ itself exceeds a double; `inf` where the
    series diverges.

    Args:
        phi: $\phi$.
        radius: $R \ge 0$.
        constant: $C_c$.
    """
    _check_series("phi", phi)
    _check_positive(constant=constant)
    check_between("radius", radius, 0, math.inf)
    return phi.log_majorant(constant * radius)


def complexity(
    phi: PowerSeries, radius: float | int, constant: float | int = PAPER_CONSTANT
) -> float:
    r"""$C(\phi, R) = \sum_i (C_c R)^i |c_i|$ of (17), in closed form: $\sinh$ for sin, $\tan$ for
    tanh, ...

    Args:
        phi: $\phi$.
        radius: $R \ge 0$.
        constant: $C_c$; the paper's is $10^4$.

    >>> from wideflow.papers.allenzhu2018.laws.power_series import smooth
    >>> round(complexity(smooth("sin", 2.0), 0.5, constant=1.0), 6)  # sinh(1)
    1.175201
    """
    log = log_complexity(phi, radius, constant)
    return math.exp(log) if log < 709.78 else math.inf


def class_complexity(
    phis: Sequence[PowerSeries], radius: float | int, constant: float | int = PAPER_CONSTANT
) -> float:
    r"""(18): the largest $C(\phi_{s,j}, R)$ over the activations of a class ($j \in [p_2]$,
    $s \in \{1, 2\}$).

    Args:
        phis: the $\phi_{s,j}$.
        radius: $R$.
        constant: $C_c$.
    """
    _check_all("phis", phis)
    return max(complexity(phi, radius, constant) for phi in phis)


def two_layer_complexity(
    phis: Sequence[PowerSeries],
    terms: int,
    error: float | int,
    constant: float | int = PAPER_CONSTANT,
) -> float:
    r"""$C_\phi = \max_i C(\phi_i, \sqrt{\log(p/\varepsilon)})$ of the two-layer class (3), $p$ =
    `terms`.

    Args:
        phis: the $\phi_i$.
        terms: $p$.
        error: $\varepsilon$, between 0 and 1.
        constant: $C_c$.
    """
    _check_error(error)
    check_count("terms", terms)
    return class_complexity(phis, math.sqrt(math.log(terms / error)), constant)


def log_three_layer_complexity(
    outer: Sequence[PowerSeries],
    inner: Sequence[PowerSeries],
    inner_terms: int,
    error: float | int,
    constant: float | int = PAPER_CONSTANT,
) -> float:
    r"""$\log C_3$ with $C_3(\varepsilon) = C(\Phi, \sqrt{p_2}\, C(\phi, \sqrt{L})\sqrt{L})$,
    $L = \log(1/\varepsilon)$, of (41).

    Infinite when the inner complexity itself does not fit a double: the outer series is then
    evaluated beyond any number.

    Args:
        outer: the $\Phi_i$; the largest counts.
        inner: the $\phi_{s,j}$ of both factors; the largest counts.
        inner_terms: $p_2$.
        error: $\varepsilon$, between 0 and 1.
        constant: $C_c$.
    """
    _check_error(error)
    _check_all("outer", outer)
    _check_all("inner", inner)
    check_count("inner_terms", inner_terms)
    root = math.sqrt(math.log(1 / error))
    radius = math.sqrt(inner_terms) * class_complexity(inner, root, constant) * root
    if math.isinf(radius):
        constant_outer = all(not np.any(phi.log_coefficients(8)[0][1:]) for phi in outer)
        return (
            max(log_complexity(phi, 0.0, constant) for phi in outer) if constant_outer else math.inf
        )
    return max(log_complexity(phi, radius, constant) for phi in outer)


def three_layer_complexity(
    outer: Sequence[PowerSeries],
    inner: Sequence[PowerSeries],
    inner_terms: int,
    error: float | int,
    constant: float | int = PAPER_CONSTANT,
) -> float:
    r"""$C_3(\varepsilon)$ of (41); see `log_three_layer_complexity`. The printed variants of it
    differ; this is (41).

    Args:
        outer: the $\Phi_i$.
        inner: the $\phi_{s,j}$ of both factors.
        inner_terms: $p_2$.
        error: $\varepsilon$, between 0 and 1.
        constant: $C_c$.
    """
    log = log_three_layer_complexity(outer, inner, inner_terms, error, constant)
    return math.exp(log) if log < 709.78 else math.inf


@dataclass(frozen=True)
class TwoLayerPrediction:
    r"""What appendix G guarantees for Algorithm 1, with the constants traced. All but `rate` and
    `movement` are free of $m$ up to logs.

    Attributes:
        norm: $C_0 = \sqrt{k}\,p\,C_\phi/\varepsilon_a$; the construction has
            $\lVert\tilde w_j\rVert \le C_0/m$.
        width: the $m$ of (404).
        iterations: $T$.
        rate: $\eta$.
        movement: $\tau = \sqrt{k}\max|a|\,\eta T$.
        samples: the $N$ at which the gap $2k\lVert a\rVert_1\tau/\sqrt N$ is $\varepsilon$.
    """

    norm: float
    width: float
    iterations: float
    rate: float
    movement: float
    samples: float

    def gap(self, samples: float | int, error: float | int) -> float:
        r"""Lemma G.5's generalisation gap at another sample size:
        $\varepsilon\sqrt{N_\varepsilon/N}$.
        """
        check_positive("samples", samples)
        check_positive("error", error)
        return error * math.sqrt(self.samples / samples)


def two_layer_prediction(
    *,
    terms: int,
    outputs: int = 1,
    sup: float | int,
    error: float | int,
    output_std: float | int,
    width: float | int | None = None,
    log_factor: float | int = 1.0,
    largest_output: float | int | None = None,
    output_norm: float | int | None = None,
) -> TwoLayerPrediction:
    r"""Width, iterations, step, movement and samples for the two-layer class, traced from appendix
    G.

    $C_0 = \sqrt{k}\,p\,C_\phi/\varepsilon_a$; $m \ge (4Bpk\,C_\phi/\varepsilon)^2$ for (404);
    $G^2 = k\varepsilon_a^2/2$, $T \ge (C_0 G/\varepsilon)^2 = p^2k^2C_\phi^2/(2\varepsilon^2)$;
    $\eta = C_0/(mG\sqrt T)$; $\tau = \sqrt{k}\,\max|a|\,\eta T$;
    $N \ge (2k\lVert a\rVert_1\tau/\varepsilon)^2$.

    Args:
        terms: $p$.
        outputs: $k$.
        sup: $C_\phi$, the sup of the Hermite functions $|h|$.
        error: $\varepsilon$, between 0 and 1.
        output_std: $\varepsilon_a$.
        width: the $m$ of $\eta$ and $\tau$; the bound itself if None.
        log_factor: $B$.
        largest_output: $\max|a|$; $\varepsilon_a\sqrt{2\log(2km)}$, that of a Gaussian, if None.
        output_norm: $\lVert a\rVert_1$ of one output; $m\,\varepsilon_a\sqrt{2/\pi}$ if None.
    """
    _check_positive(
        terms=terms, outputs=outputs, sup=sup, output_std=output_std, log_factor=log_factor
    )
    _check_error(error)
    for name, value in {
        "width": width,
        "largest_output": largest_output,
        "output_norm": output_norm,
    }.items():
        if value is not None:
            check_positive(name, value)
    norm = math.sqrt(outputs) * terms * sup / output_std
    least = (4 * log_factor * terms * outputs * sup / error) ** 2
    m = least if width is None else float(width)
    gradient = output_std * math.sqrt(outputs / 2)
    iterations = (norm * gradient / error) ** 2
    rate = norm / (m * gradient * math.sqrt(iterations))
    if largest_output is None:
        largest_output = output_std * math.sqrt(2 * math.log(2 * outputs * m))
    if output_norm is None:
        output_norm = m * output_std * math.sqrt(2 / math.pi)
    movement = math.sqrt(outputs) * largest_output * rate * iterations
    samples = (2 * outputs * output_norm * movement / error) ** 2
    return TwoLayerPrediction(norm, least, iterations, rate, movement, samples)


@dataclass(frozen=True)
class ThreeLayerPrediction:
    r"""Logarithms (base 10) of the sizes in Theorems 4.2 and 4.3: $m \ge M$, $N_1 = M m_2^2$
    (variant 1), $N_2 = M$ (variant 2).

    Attributes:
        log10_width: $\log_{10}M$.
        log10_samples_first: $\log_{10}N_1$.
        log10_samples_second: $\log_{10}N_2$.
    """

    log10_width: float
    log10_samples_first: float
    log10_samples_second: float


def three_layer_prediction(
    *,
    log_complexity: float | int,
    outputs: int,
    outer_terms: int,
    inner_terms: int,
    error: float | int,
    width: float | int,
    exponent: float | int = 1.0,
) -> ThreeLayerPrediction:
    r"""$M = (C_1 k\,p_1 p_2/\varepsilon)^c$ with $\log C_1$ = `log_complexity` (from
    `log_three_layer_complexity`), $c$ = `exponent`.

    Variant 1 needs $N = M m_2^2$ samples at second width $m_2$ = `width`, variant 2 needs $N = M$.

    Args:
        log_complexity: $\log C_1$.
        outputs: $k$.
        outer_terms: $p_1$.
        inner_terms: $p_2$.
        error: $\varepsilon$, between 0 and 1.
        width: $m_2$.
        exponent: $c$.
    """
    _check_positive(
        outputs=outputs,
        outer_terms=outer_terms,
        inner_terms=inner_terms,
        width=width,
        exponent=exponent,
    )
    _check_error(error)
    check_between("log_complexity", log_complexity, -math.inf, math.inf)
    base = log_complexity / math.log(10) + math.log10(outputs * outer_terms * inner_terms / error)
    log_m = exponent * base
    return ThreeLayerPrediction(log_m, log_m + 2 * math.log10(width), log_m)


@dataclass(frozen=True)
class TheoryParameters:
    r"""The parameters of Lemma 5.3 at one width; `second_ball` is $\tau_v$, `first_ball` $\tau'_w$,
    `first_coupling` $\tau_w$.

    Attributes:
        first_penalty, second_penalty: $\lambda_w$, $\lambda_v$.
        first_smoothing, second_smoothing: $\sigma_w$, $\sigma_v$.
        output_std: $\varepsilon_a$.
    """

    second_ball: float
    first_ball: float
    first_coupling: float
    first_penalty: float
    second_penalty: float
    first_smoothing: float
    second_smoothing: float
    output_std: float

    @property
    def consistent(self) -> bool:
        r"""Whether $\tau_w > \tau'_w$, which the lemma needs: $m^{0.01} > \varepsilon'^{-q_w}$."""
        return self.first_coupling > self.first_ball


def theory_parameters(
    width: float | int,
    error: float | int,
    complexity: float | int,
    exponents: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> TheoryParameters:
    r"""Lemma 5.3's parameters at $m_1 = m_2$ = `width`, $\varepsilon' = \varepsilon/C_1$,
    `exponents` $(q_v, q_w, q_s)$.

    $\tau_v = \varepsilon'^{q_v}\sqrt{m_1/m_2}$, $\tau'_w = \varepsilon'^{-q_w}m_1^{-3/4}$,
    $\lambda_w = 2/\tau_w'^4$, $\lambda_v = 2/\tau_v^2$, $\sigma_v = \varepsilon'^{q_s}/\sqrt{m_2}$,
    $\sigma_w = m_1^{-99/100}$, $\tau_w = \sigma_w m_1^{1/4}$, $\varepsilon_a = \varepsilon$.

    Args:
        width: $m_1 = m_2$.
        error: $\varepsilon$, between 0 and 1.
        complexity: $C_1$.
        exponents: $(q_v, q_w, q_s)$.
    """
    _check_positive(width=width, complexity=complexity)
    _check_error(error)
    powers = real_values("exponents", exponents, "(3,)")
    q_v, q_w, q_s = (float(power) for power in powers)
    small = error / complexity
    second_ball = small**q_v
    first_ball = small**-q_w * width**-0.75
    first_smoothing = width**-0.99
    return TheoryParameters(
        second_ball=second_ball,
        first_ball=first_ball,
        first_coupling=first_smoothing * width**0.25,
        first_penalty=2 / first_ball**4,
        second_penalty=2 / second_ball**2,
        first_smoothing=first_smoothing,
        second_smoothing=small**q_s / math.sqrt(width),
        output_std=error,
    )


def theory_min_width(error: float | int, norm: float | int) -> float:
    r"""$\log_{10} m$ at which $\tau_{w,\infty} \le m^{-0.999}$:
    $m^{0.001} \ge C_0^2/\varepsilon^{11}$, $C_0$ = `norm`.

    Args:
        error: $\varepsilon$, between 0 and 1.
        norm: $C_0$.

    >>> round(theory_min_width(0.1, 1.0))
    11000
    """
    _check_positive(norm=norm)
    _check_error(error)
    return 1000 * (2 * math.log10(norm) - 11 * math.log10(error))


def expected_shrinkage(error: float | int, window_constant: float | int) -> float:
    r"""$\mathbb{E}\lambda_T \approx \varepsilon^{2/(3K_w)}$: about $T/(1.5T_w)$ shrinks by $1-\eta$
    with $T_w = K_w\eta T/\log(1/\varepsilon)$.

    Args:
        error: $\varepsilon$, between 0 and 1.
        window_constant: $K_w$.
    """
    _check_positive(window_constant=window_constant)
    _check_error(error)
    return error ** (2 / (3 * window_constant))
