r"""How many neurons of a random biased layer can change sign (allenzhu2018, Lemmas 5.5 and G.3,
Claim C.1, with constants).

A pre-activation $\sqrt m(\langle w, x\rangle + b)$ on a unit input is $\mathcal N(0,1)$ or
$\mathcal N(0,3)$ with probability 1/2 each; its density at 0 is
$f_0 = \frac12n(0)(1 + 1/\sqrt3) = 0.314636$. Few neurons are near zero, so few can be flipped;
these are the exact asymptotic counts.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from ...._core.arrays import real_values
from ...._core.errors import check_count, check_flag, check_nonnegative, check_positive

__all__ = [
    "first_layer_flips",
    "greedy_flips",
    "noise_flip_fraction",
    "second_layer_change",
    "second_layer_flips",
    "uniform_coupling_error",
    "uniform_flip_fraction",
]

NORMAL_AT_ZERO = 1 / math.sqrt(2 * math.pi)
BIASED_AT_ZERO = 0.5 * NORMAL_AT_ZERO * (1 + 1 / math.sqrt(3))


def _check(radius, width) -> None:
    check_nonnegative("radius", radius)
    check_count("width", width)


def noise_flip_fraction(std: float | int, width: int) -> float:
    r"""Expected fraction of first-layer signs changed by noise of deviation `std` $= \sigma_w$ on
    every weight, exactly: $(\arctan(\sigma_w\sqrt m) + \arctan(\sigma_w\sqrt{m/3}))/(2\pi)$.

    Args:
        std: $\sigma_w$.
        width: $m$.
    """
    check_nonnegative("std", std)
    check_count("width", width)
    return (math.atan(std * math.sqrt(width)) + math.atan(std * math.sqrt(width / 3))) / (
        2 * math.pi
    )


def first_layer_flips(radius: float | int, width: int) -> float:
    r"""Largest number of first-layer flips within $\lVert W'\rVert_{2,4} \le \tau_w$:
    $(2f_0)^{4/5}5^{1/5}\,\tau_w^{4/5}m_1^{6/5}$ (constant 0.9526).

    Args:
        radius: $\tau_w$.
        width: $m_1$.
    """
    _check(radius, width)
    return (2 * BIASED_AT_ZERO) ** 0.8 * 5**0.2 * radius**0.8 * width**1.2


def second_layer_flips(radius: float | int, width: int, *, biased: bool = True) -> float:
    r"""Largest number of second-layer flips by a shift with $\lVert g'\rVert_2 \le \delta$:
    $(2f)^{2/3}3^{1/3}\,\delta^{2/3}m_2$.

    $f = f_0$ with biases (constant 1.0591); $f = n(0)$ without, as in Claim C.1 (1.2407).

    Args:
        radius: $\delta$.
        width: $m_2$.
        biased: whether the neurons have random biases.
    """
    _check(radius, width)
    check_flag("biased", biased)
    density = BIASED_AT_ZERO if biased else NORMAL_AT_ZERO
    return (2 * density) ** (2 / 3) * 3 ** (1 / 3) * radius ** (2 / 3) * width


def second_layer_change(radius: float | int, width: int, *, biased: bool = True) -> float:
    r"""Largest $\ell_1$ change of the outputs of flipped second-layer neurons:
    $\frac34f^{1/3}\delta^{4/3}\sqrt{m_2}$ (0.552 without biases, 0.510 with).

    Args:
        radius: $\delta$.
        width: $m_2$.
        biased: whether the neurons have random biases, which sets the density $f$ at 0.
    """
    _check(radius, width)
    check_flag("biased", biased)
    density = BIASED_AT_ZERO if biased else NORMAL_AT_ZERO
    return 0.75 * density ** (1 / 3) * radius ** (4 / 3) * math.sqrt(width)


def uniform_flip_fraction(radius: float | int, width: int) -> float:
    r"""Largest fraction of signs changed when every row moves by at most $\tau$: $2f_0\tau\sqrt m$
    (Lemma G.3.1).

    Args:
        radius: $\tau$.
        width: $m$.
    """
    _check(radius, width)
    return 2 * BIASED_AT_ZERO * radius * math.sqrt(width)


def uniform_coupling_error(radius: float | int, width: int, mean_output: float | int) -> float:
    r"""Largest $|f - g|$ when every row moves by at most $\tau$:
    $f_0\,\mathbb E|a|\,\tau^2m^{3/2}$, `mean_output` $= \mathbb E|a|$.

    Corrected: quadratic in $\tau$; Lemma G.3.2 prints $\sqrt{k\tau^2}m^{3/2}$, which is linear.

    Args:
        radius: $\tau$.
        width: $m$.
        mean_output: $\mathbb E|a|$.
    """
    _check(radius, width)
    check_nonnegative("mean_output", mean_output)
    return BIASED_AT_ZERO * mean_output * radius**2 * width**1.5


def greedy_flips(preactivations: ArrayLike, radius: float | int, power: float | int) -> int:
    r"""The largest set of neurons that a budget $\sum_i|\delta_i|^p \le \tau^p$ can bring to zero:
    the smallest $|z_i|$ first.

    $p = 4$ for the first layer under $\lVert\cdot\rVert_{2,4}$ on unit inputs, $p = 2$ for the
    second layer under $\lVert\cdot\rVert_2$.

    Args:
        preactivations: $z_i$ at one input, shape (width,).
        radius: $\tau$.
        power: $p$.
    """
    check_positive("radius", radius)
    check_positive("power", power)
    sizes = np.sort(np.abs(np.asarray(real_values("preactivations", preactivations, "(width)"))))
    return int(np.searchsorted(np.cumsum(sizes**power), radius**power, side="right"))
