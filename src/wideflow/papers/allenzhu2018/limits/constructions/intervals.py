r"""Interval partition (allenzhu2018, Lemma A.4, corrected): a sign pattern of given mean inside a
Gaussian.

For $\tau \in (0, 1/100]$ (the lemma's; the construction works up to $\tau = 0.7621...$, see
`LARGEST_MASS`) and $y \in [-1, 1]$ it gives a set $I(y)$ with $P[g \in I] = \tau$ and signs
$s(y, g) \in \{-1, 0, 1\}$, zero outside $I$, with $P[s = 1] = P[s = -1] = \tau/2$ and
$\mathbb E[s\,g \mid g \in I] = y$, for $g \sim \mathcal N(0,1)$. With $c = N^{-1}(1/2 + \tau/2)$,
$y_0 = 2(n(0) - n(c))/\tau$:

* $y \ge y_0$: $I = [l, u] \cup [-u, -l]$ with $N(u) - N(l) = \tau/2$, $(n(l) - n(u))/(\tau/2) = y$;
  $s$ is $+1$ on $[l, u]$ and $-1$ on its mirror image;
* $0 \le y < y_0$: $I = [-c, c]$ for every such $y$; $s = \mathrm{sign}(g)$ for $|g| \le e$, $+1$
  for $e < |g| \le d$, $-1$ for $d < |g| \le c$, where $2(n(0) - n(e)) = \tau y$ and
  $N(d) = (N(e) + N(c))/2$;
* $y < 0$: $s(y, g) = s(-y, -g)$, $I(y) = I(-y)$.

Corrected: the printed $e(y)$ makes $\mathbb E[s\,g \mid I] = y\,(y/y_0)$ for $y < y_0$; and not
$\max I - \min I$ but each component of $I$ is short (at most $2.07\tau$).
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy.special as sp

from ....._core.arrays import real_values
from ....._core.errors import check_between
from .hermite_functions import Numbers, Values, normal_density

__all__ = ["IntervalPartition"]


# The mean of [l, u] of mass tau/2 is largest at u = infinity, n(l) / (1 - N(l)), which is 1 at this
# l; beyond 2 (1 - N(l)) no interval has mean 1.
_EDGE = 0.5
for _ in range(
    40
):  # n(l) - N(-l) has the slope (1 - l) n(l): Newton's steps, far more than double precision takes
    _EDGE -= float(
        (normal_density(_EDGE) - sp.ndtr(-_EDGE)) / ((1 - _EDGE) * normal_density(_EDGE))
    )
LARGEST_MASS = 2 * float(sp.ndtr(-_EDGE))

_NEWTON = 40  # twelve do for tau <= 1/100; the rest are halvings near the largest mass


@dataclass(frozen=True)
class IntervalPartition:
    r"""The intervals and signs of Lemma A.4 at mass `tau` $= \tau$, which every $|y| \le 1$ can
    reach: $0 < \tau <$ `LARGEST_MASS`.

    Args:
        tau: $\tau$; the lemma asks for at most 1/100.
    """

    tau: float

    def __post_init__(self):
        check_between(
            "tau", self.tau, 0, LARGEST_MASS, open=True, remedy="The lemma requires at most 1/100."
        )

    @property
    def half_width(self) -> float:
        r"""$c = N^{-1}(1/2 + \tau/2)$."""
        return float(sp.ndtri(0.5 + self.tau / 2))

    @property
    def threshold(self) -> float:
        r"""$y_0 = 2(n(0) - n(c))/\tau$."""
        return 2 * float(normal_density(0.0) * -math.expm1(-(self.half_width**2) / 2)) / self.tau

    def ends(self, y: Numbers) -> tuple[np.ndarray, np.ndarray]:
        r"""$(l, u)$ at $|y|$: $I = [l,u] \cup [-u,-l]$; where $|y| < y_0$, $l = 0$ and $u = c$."""
        y = np.abs(np.asarray(real_values("y", y), float))
        if np.any(y > 1):
            raise ValueError(
                f"`y` must lie in [-1, 1], got {np.max(y)}. Divide by a bound of its size."
            )
        target = np.maximum(y, self.threshold)
        # l lies below the mean, and below the point whose whole tail has mass tau / 2
        least, most = (
            np.zeros_like(target),
            np.minimum(target, float(-sp.ndtri(self.tau / 2))),
        )
        low = np.clip(target - self.tau / (2 * normal_density(target)) / 2, least, most)
        # Newton on (n(l) - n(u)) / (tau / 2) = y, whose slope is 2 n(l) (u - l) / tau, kept in a
        # bracket: near the largest mass the slope is infinite at its upper end
        for _ in range(_NEWTON):
            up = self._upper(low)
            mean = 2 * normal_density(low) * -np.expm1((low**2 - up**2) / 2) / self.tau
            slope = 2 * normal_density(low) * (up - low) / self.tau
            least, most = np.where(mean < target, low, least), np.where(mean < target, most, low)
            step = low - (mean - target) / slope
            low = np.where((step >= least) & (step <= most), step, (least + most) / 2)
        small = y < self.threshold
        low = np.where(small, 0.0, low)
        return low, np.where(small, self.half_width, self._upper(low))

    def _upper(self, low: Values) -> Values:
        r"""$u$ with $N(u) - N(l) = \tau/2$, from the upper tail, which keeps its digits where $u$
        is large.
        """
        return -sp.ndtri(np.maximum(sp.ndtr(-low) - self.tau / 2, np.finfo(float).tiny))

    def signs(self, y: Numbers, g: Numbers) -> np.ndarray:
        r"""$s(y, g)$ in $\{-1, 0, 1\}$, elementwise."""
        y = np.asarray(real_values("y", y), float)
        g = np.asarray(real_values("g", g), float)  # ends are found once for each y
        g = np.where(y < 0, -g, g)
        low, up = self.ends(y)
        size = np.abs(g)
        sign = np.where(g >= 0, 1.0, -1.0)
        large = np.where((size >= low) & (size <= up), sign, 0.0)
        inner = np.abs(y) * self.tau * math.sqrt(2 * math.pi) / 2
        e = np.sqrt(-2 * np.log1p(-inner))  # inner < 0.96 at every mass that is allowed
        d = sp.ndtri((sp.ndtr(e) + sp.ndtr(self.half_width)) / 2)
        small = np.where(
            size <= e, sign, np.where(size <= d, 1.0, np.where(size <= self.half_width, -1.0, 0.0))
        )
        return np.where(np.abs(y) < self.threshold, small, large)
