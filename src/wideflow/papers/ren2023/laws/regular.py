r"""Radial laws with finite moments, on the interface of the Bessel law."""

import math

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.special import gammainc, gammaincc
from jaxtyping import Array, Float

from ...._core.precision import double
from .base import AbstractRadialLaw, Moments, bisect, check_law


class UniformRadius(AbstractRadialLaw):
    r"""$r$ uniform on $[0, \varrho]$, $\varrho$ = `radius`:
    $M_k(a) = \min(a, \varrho)^{k+1}/((k+1)\varrho)$.

    Args:
        d: the dimension of the inputs.
        radius: $\varrho > 0$.
    """

    d: int = eqx.field(static=True)
    radius: float = eqx.field(static=True)

    def __init__(self, d: int, radius: float = 2.0):
        check_law(d, radius=radius)
        self.d, self.radius = d, float(radius)

    @property
    def tail(self) -> float:
        return 0.0

    @double
    def density(self, radius) -> Float[Array, "..."]:
        r = jnp.asarray(radius, float)
        return jnp.where((r >= 0) & (r <= self.radius), 1 / self.radius, 0.0)

    @double
    def moments(self, radius) -> Moments:
        a = jnp.clip(jnp.asarray(radius, float), 0.0, self.radius)
        return a / self.radius, a**2 / (2 * self.radius), a**3 / (3 * self.radius)

    @double
    def cdf(self, radius) -> Float[Array, "..."]:
        return self.moments(radius)[0]

    @double
    def sf(self, radius) -> Float[Array, "..."]:
        return (self.radius - jnp.clip(jnp.asarray(radius, float), 0.0, self.radius)) / self.radius

    @double
    def quantile(self, p) -> Float[Array, "..."]:
        return self.radius * jnp.asarray(p, float)


class UniformBall(AbstractRadialLaw):
    r"""$x$ uniform in the ball of `radius` $\varrho$:
    $M_k(a) = \frac{d}{d+k} \min(a, \varrho)^{d+k}/\varrho^d$.

    The radius concentrates at $\varrho$ as $d$ grows, so the target's variance vanishes.

    Args:
        d: the dimension of the inputs.
        radius: $\varrho > 0$.
    """

    d: int = eqx.field(static=True)
    radius: float = eqx.field(static=True)

    def __init__(self, d: int, radius: float = 1.0):
        check_law(d, radius=radius)
        self.d, self.radius = d, float(radius)

    @property
    def tail(self) -> float:
        return 0.0

    @double
    def density(self, radius) -> Float[Array, "..."]:
        r = jnp.asarray(radius, float)
        inside = (r >= 0) & (r <= self.radius)
        share = jnp.where(inside, r / self.radius, 0.0)
        return jnp.where(inside, self.d / self.radius * share ** (self.d - 1), 0.0)

    @double
    def moments(self, radius) -> Moments:
        share = jnp.clip(jnp.asarray(radius, float) / self.radius, 0.0, 1.0)
        m0, m1, m2 = (
            self.d / (self.d + k) * self.radius**k * share ** (self.d + k) for k in range(3)
        )
        return m0, m1, m2

    @double
    def cdf(self, radius) -> Float[Array, "..."]:
        return self.moments(radius)[0]

    @double
    def sf(self, radius) -> Float[Array, "..."]:
        share = jnp.clip(jnp.asarray(radius, float) / self.radius, 0.0, 1.0)
        return -jnp.expm1(self.d * jnp.log(share))

    @double
    def quantile(self, p) -> Float[Array, "..."]:
        return self.radius * jnp.asarray(p, float) ** (1 / self.d)


class GaussianRadius(AbstractRadialLaw):
    r"""$x \sim N(0, s^2 I/d)$, so $r \approx s$ = `scale` up to $s/\sqrt{2d}$.

    $M_k(a) = s^k (2/d)^{k/2} \frac{\Gamma((d+k)/2)}{\Gamma(d/2)} P(\tfrac{d+k}2,
    \tfrac{a^2 d}{2 s^2})$ with the regularised lower incomplete gamma function $P$. The target's
    variance vanishes as $d$ grows.

    Args:
        d: the dimension of the inputs.
        scale: $s > 0$.
    """

    d: int = eqx.field(static=True)
    scale: float = eqx.field(static=True)

    def __init__(self, d: int, scale: float = 1.0):
        check_law(d, scale=scale)
        self.d, self.scale = d, float(scale)

    @property
    def tail(self) -> float:
        return 0.0

    @double
    def density(self, radius) -> Float[Array, "..."]:
        r = jnp.asarray(radius, float)
        positive = jnp.where(r > 0, r, 1.0)
        half = self.d / 2
        z = half * (positive / self.scale) ** 2
        value = 2 / positive * jnp.exp(half * jnp.log(z) - z - math.lgamma(half))
        at_zero = math.sqrt(2 / math.pi) / self.scale if self.d == 1 else 0.0
        return jnp.where(r > 0, value, jnp.where(r == 0, at_zero, 0.0))

    def _argument(self, radius):
        return 0.5 * self.d * (jnp.maximum(jnp.asarray(radius, float), 0.0) / self.scale) ** 2

    @double
    def moments(self, radius) -> Moments:
        positive, half = jnp.asarray(radius, float) > 0, self.d / 2
        z = jnp.where(positive, self._argument(radius), 1.0)  # at 0 the slope in z can be infinite
        m0, m1, m2 = (
            (self.scale / math.sqrt(half)) ** k
            * math.exp(math.lgamma(half + k / 2) - math.lgamma(half))
            * jnp.where(positive, gammainc(half + k / 2, z), 0.0)
            for k in range(3)
        )
        return m0, m1, m2

    @double
    def cdf(self, radius) -> Float[Array, "..."]:
        return gammainc(self.d / 2, self._argument(radius))

    @double
    def sf(self, radius) -> Float[Array, "..."]:
        return gammaincc(self.d / 2, self._argument(radius))

    @double
    def quantile(self, p) -> Float[Array, "..."]:
        # P[r > 40 s + s] is below 1e-300 for every d, and for d p^(2/d) small the halving goes on
        # to 1e-17 s
        p = jnp.asarray(p, float)
        root = bisect(self.cdf, p, jnp.zeros_like(p), jnp.full_like(p, 41 * self.scale), 62)
        return jnp.where(p >= 1, jnp.inf, root)


class FixedRadius(AbstractRadialLaw):
    r"""All mass at `radius` $\varrho$, the uniform law of a sphere:
    $M_k(a) = \varrho^k 1\{\varrho \le a\}$.

    Args:
        d: the dimension of the inputs.
        radius: $\varrho > 0$.
    """

    d: int = eqx.field(static=True)
    radius: float = eqx.field(static=True)

    def __init__(self, d: int, radius: float = 1.0):
        check_law(d, radius=radius)
        self.d, self.radius = d, float(radius)

    @property
    def tail(self) -> float:
        return 0.0

    @double
    def density(self, radius) -> Float[Array, "..."]:
        """A point mass has no density: `inf` at the radius, zero elsewhere."""
        return jnp.where(jnp.asarray(radius, float) == self.radius, jnp.inf, 0.0)

    @double
    def moments(self, radius) -> Moments:
        reached = (jnp.asarray(radius, float) >= self.radius).astype(float)
        return reached, self.radius * reached, self.radius**2 * reached

    @double
    def cdf(self, radius) -> Float[Array, "..."]:
        return self.moments(radius)[0]

    @double
    def sf(self, radius) -> Float[Array, "..."]:
        return 1 - self.moments(radius)[0]

    @double
    def quantile(self, p) -> Float[Array, "..."]:
        return jnp.full_like(jnp.asarray(p, float), self.radius)
