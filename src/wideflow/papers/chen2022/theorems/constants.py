r"""The explicit constants of chen2022, corrected where the printed ones are wrong.

Notation: $I = (I_l, I_r)$ bounded, len $= I_r - I_l$, $\xi$ = len/3, $K_s = \inf_I |\sigma'|$,
$L_s$ the Lipschitz constant of $\sigma$, $\lambda_1, \lambda_2$ the extreme eigenvalues of $G$,
$G_{\min}, G_{\max}$ its extreme DIAGONAL entries.
"""

import itertools
import math

import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr

from ...._core.activations import Activation, activation as as_activation
from ...._core.arrays import real_array
from ...._core.errors import check_choice, check_interval
from ...._core.foreign import untyped
from ...._core.precision import double
from ....theorems.arguments import checked
from ..observables.activity import Interval, middle_third

VARIANTS = ("corrected", "sharp", "printed")
ROOT = math.sqrt(2) - 1


@double
def slope_floor(activation, interval: Interval) -> float:
    r"""$K_{\sigma'}(I) = \inf_{u \in I} |\sigma'(u)|$ over the open interval; 0 where $\sigma'$
    changes sign inside.

    A kink at an end is approached from inside; a kink inside counts with all slopes between those
    of its two sides, which a neuron that sticks to it can have: the smaller one, or 0 where they
    differ in sign, as those of |z| do.

    Args:
        activation: $\sigma$.
        interval: $I$.
    """
    act = as_activation(activation)
    low, high = check_interval(interval)
    inside = [kink for kink in act.kinks if low <= kink <= high]
    ends = sorted({low, high, *inside})
    floors = [_floor_between(act, a, b) for a, b in itertools.pairwise(ends)]
    opposite = min(floors) < 0 < max(floors)
    return 0.0 if opposite else min(map(abs, floors))


def _floor_between(act: Activation, low: float | int, high: float | int) -> float:
    """The infimum on a piece without kinks inside, with the sign of the slope there."""
    from scipy.optimize import (
        minimize_scalar,  # a fifth of a second that importing wideflow need not take
    )

    kinks = set(act.kinks)
    inset = 1e-9 * (high - low)  # a kink's own value is not part of the open piece
    start = low + inset if low in kinks else low
    stop = high - inset if high in kinks else high
    points = np.linspace(start, stop, 4097)
    slopes = np.asarray(act.derivative(real_array("points", points)))
    if slopes.min() < 0 < slopes.max():
        return 0.0
    best = int(np.argmin(np.abs(slopes)))
    around = (points[max(best - 1, 0)], points[min(best + 1, len(points) - 1)])
    finer = untyped(minimize_scalar)(
        lambda u: abs(float(act.derivative(jnp.asarray(u)))),
        bounds=around,
        method="bounded",
        options={"xatol": 1e-14},
    )
    return math.copysign(min(np.abs(slopes).min(), finer.fun), slopes[best])


def suggested_interval(activation, variance: float | int) -> Interval:
    r"""The interval that minimises $\beta$ for $h \sim \mathcal{N}(0, g)$: the largest
    $K_s\, \mathrm{len}\, \pi(I_0; g)^{3/2}$ among $(0, R)$ or $(-R, R)$.

    Which of the two is that of the activation's own interval; an activation with another kind of
    interval keeps it.

    Args:
        activation: $\sigma$.
        variance: $g$.
    """
    from scipy.optimize import (
        minimize_scalar,  # a fifth of a second that importing wideflow need not take
    )

    act = as_activation(activation)
    low, high = act.interval
    if low not in (0.0, -high):
        return act.interval

    def loss(log_end):
        end = math.exp(log_end)
        interval = (0.0 if low == 0 else -end, end)
        return (
            -slope_floor(act, interval)
            * (interval[1] - interval[0])
            * active_floor_exact(interval, [variance]) ** 1.5
        )

    best = untyped(minimize_scalar)(
        loss,
        bounds=(math.log(0.1), math.log(20 * math.sqrt(variance))),
        method="bounded",
        options={"xatol": 1e-3},
    )
    end = math.exp(best.x)
    return (0.0 if low == 0 else -end, end)


@checked
def kappa(
    smallest: float | int,
    largest: float | int,
    diagonal: float | int,
    floor: float | int,
    interval: Interval,
    variant: str = "corrected",
) -> float:
    r"""The constant of Lemma 1.

    Corrected: $\kappa = 9 \lambda_2 / (\sqrt2\, \lambda_1 K_s\, \mathrm{len})$. Sharp, by the same
    proof with $|(Gv)_a|^2 \le G_{aa} v^\top G v$ in place of $|(Gv)_a| \le \lambda_2 |v|$:
    $9 \sqrt{G_{\max}} / (\sqrt{2 \lambda_1} K_s\, \mathrm{len})$, never larger. Printed:
    $9 \lambda_2\, \mathrm{len} / (2 \lambda_1 K_s)$, with the length on the wrong side; false for
    short intervals.

    Args:
        smallest, largest: $\lambda_1$ and $\lambda_2$ of $G$.
        diagonal: $G_{\max}$, the largest diagonal entry.
        floor: $K_s$.
        interval: $I$, of length len.
        variant: "corrected", "sharp" or "printed".
    """
    check_choice("variant", variant, VARIANTS)
    low, high = check_interval(interval)
    length = high - low
    if variant == "printed":
        return 9 * largest * length / (2 * smallest * floor)
    if variant == "sharp":
        return 9 * math.sqrt(diagonal) / (math.sqrt(2 * smallest) * floor * length)
    return 9 * largest / (math.sqrt(2) * smallest * floor * length)


@checked
def beta(
    kappa_value: float | int,
    initial_loss: float | int,
    magnitude: float | int,
    eta_tilde: float | int,
) -> float:
    r"""$\beta = \kappa \sqrt{L^0} / (\hat c\, (\tilde\eta^0)^{3/2})$; below 1 the certificate
    speaks.

    Args:
        kappa_value: $\kappa$ of Lemma 1.
        initial_loss: $L^0$.
        magnitude: $\hat c$.
        eta_tilde: $\tilde\eta^0$.
    """
    if not eta_tilde > 0:
        return math.inf
    return kappa_value * math.sqrt(initial_loss) / (magnitude * eta_tilde**1.5)


@checked
def active_floor(
    interval: Interval, least: float | int, most: float | int, variant: str = "corrected"
) -> float:
    r"""$K_3(I, g_{\min}, g_{\max})$: half the least Gaussian mass of the middle third, bounded
    below.

    Corrected:
    $\frac{\mathrm{len}}{6 \sqrt{2\pi g_{\max}}} \exp(-\max(I_l^2, I_r^2) / (2 g_{\min}))$. Printed:
    $\frac{\mathrm{len}}{6 \sqrt{2\pi}\, g_{\max}} \exp(-\max|I| / g_{\min}^2)$, which can exceed
    the true mass. Both arguments are diagonal entries of $G$; the paper calls them eigenvalues.

    Args:
        interval: $I = (I_l, I_r)$.
        least, most: $g_{\min}$ and $g_{\max}$.
        variant: "corrected" or "printed".
    """
    check_choice("variant", variant, ("corrected", "printed"))
    low, high = check_interval(interval)
    if variant == "printed":
        return (
            (high - low)
            / (6 * math.sqrt(2 * math.pi) * most)
            * math.exp(-max(abs(low), abs(high)) / least**2)
        )
    return (
        (high - low)
        / (6 * math.sqrt(2 * math.pi * most))
        * math.exp(-max(low**2, high**2) / (2 * least))
    )


@checked
def active_floor_exact(interval: Interval, diagonal) -> float:
    r"""$\frac12 \min_a \pi(I_0; G_{aa})$, $\pi(I_0; g)$ the mass of the middle third under
    $\mathcal{N}(0, g)$; never below `active_floor`.

    Args:
        interval: $I$, whose middle third is $I_0$.
        diagonal: $G_{aa}$, one a sample.
    """
    low, high = middle_third(interval)
    deviation = np.sqrt(np.asarray(diagonal, dtype=float))
    return 0.5 * float(np.min(ndtr(high / deviation) - ndtr(low / deviation)))


@checked
def output_proxies(activation: Activation, magnitude: float | int, diagonal) -> np.ndarray:
    r"""Variance proxies $v_a$ of $c_i \sigma(h_i(x_a))$: $\hat c^2 L_s^2 G_{aa}$, or
    $2 \hat c^2 (\sigma(0)^2 + L_s^2 G_{aa})$ where $\sigma(0) \ne 0$.

    Corrected: the paper's $\lVert \sigma(h) \rVert_{\psi_2} \le L_s \lVert h \rVert_{\psi_2}$ needs
    $\sigma(0) = 0$.

    Args:
        activation: $\sigma$, with Lipschitz constant $L_s$.
        magnitude: $\hat c$.
        diagonal: $G_{aa}$, one a sample.
    """
    diagonal = np.asarray(diagonal, dtype=float)
    shift = activation.at_zero
    if shift == 0:
        return magnitude**2 * activation.lipschitz**2 * diagonal
    return 2 * magnitude**2 * (shift**2 + activation.lipschitz**2 * diagonal)


@checked
def width_for_loss(proxies, target_norm: float | int, failure_probability: float | int) -> float:
    r"""Lemma 2: $m \ge 2 (\sum_a v_a) \log(2n/p) / ((\sqrt2 - 1)^2 \lVert y \rVert^2)$ gives
    $L^0 \le \lVert y \rVert^2$ but for probability $p$.

    Corrected: a union bound over the points needs the threshold $\lVert y \rVert / \sqrt n$, not
    $\lVert y \rVert$, so $n$ stays in the sum.

    Args:
        proxies: $v_a$, one a sample.
        target_norm: $\lVert y\rVert$.
        failure_probability: $p$.
    """
    proxies = np.asarray(proxies, dtype=float)
    if not target_norm > 0:  # no width keeps the start's loss at 0
        return math.inf
    return (
        2
        * proxies.sum()
        * math.log(2 * len(proxies) / failure_probability)
        / (ROOT**2 * target_norm**2)
    )


@checked
def width_for_activity(floor: float | int, samples: int, failure_probability: float | int) -> float:
    r"""Lemma 3: $m \ge \log(n/p) / (2 K_3^2)$ gives $\tilde\eta^0 > K_3$ but for probability $p$.

    Args:
        floor: $K_3$.
        samples: $n$.
        failure_probability: $p$.
    """
    square = floor**2  # 0 for a floor below 1e-162 as well
    return math.log(samples / failure_probability) / (2 * square) if square > 0 else math.inf


@checked
def sub_gaussian_bound(inputs, lipschitz: float | int, psi: float | int = 8 / 3) -> float:
    r"""$b = L_s^2 \psi \max_a \lVert x_a \rVert^2 / d$, $\psi = \lVert Z \rVert_{\psi_2}^2 = 8/3$
    for a standard Gaussian (corrected: the paper drops $1/\sqrt d$ and $x$).

    Args:
        inputs: $x_a$, shape (sample, d).
        lipschitz: $L_s$.
        psi: $\psi$.
    """
    inputs = np.asarray(inputs, dtype=float)
    return lipschitz**2 * psi * float(np.max(np.sum(inputs**2, axis=1))) / inputs.shape[1]


@checked
def features_for_gram(
    bound: float | int, samples: int, failure_probability: float | int, distance: float | int
) -> float:
    r"""$D_{\min}(p, u) = (4 b^2 n^2 / u^2 + 2 b n / u) \log(2 n^2 / p)$: then
    $\lVert G - \bar G \rVert_2 \le u$ but for probability $p$.

    Args:
        bound: $b$.
        samples: $n$.
        failure_probability: $p$.
        distance: $u$.
    """
    return (4 * bound**2 * samples**2 / distance**2 + 2 * bound * samples / distance) * math.log(
        2 * samples**2 / failure_probability
    )
