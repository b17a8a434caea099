r"""The limit of the Bessel law for large dimension: $r = r_0 / \sin(\pi U/2)$."""

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.precision import double
from .base import AbstractRadialLaw, Moments, check_law


class ArcsineLaw(AbstractRadialLaw):
    r"""$r = r_0/\sin(\pi U/2)$ with $U$ uniform: the Bessel law of large $d$ without Bessel
    functions.

    Beyond the turning point $J_\nu(x)^2$ averages to $1/(\pi\sqrt{x^2 - \nu^2})$, whence
    $$M_0 = 1 - \tfrac2\pi \arcsin\tfrac{r_0}{a}, \quad M_1 = \tfrac{2 r_0}{\pi}
      \mathrm{arccosh}\tfrac{a}{r_0}, \quad
      M_2 = \tfrac{2 r_0}{\pi} \sqrt{a^2 - r_0^2} \qquad (a > r_0).$$

    Args:
        d: dimension of the input.
        edge: $r_0$; without it that of `BesselLaw(d, ab)`, $r_0 = \sqrt d/(4\pi R_d\, ab)$.
        ab: the product of constants of the Bessel law; used only when `edge` is not given.
    """

    d: int = eqx.field(static=True)
    edge: float = eqx.field(static=True)

    def __init__(self, d: int, edge: float | None = None, *, ab: float = 1.0):
        if edge is None:
            check_law(d, ab=ab)
            edge = math.sqrt(d / math.pi) / (4 * ab) * math.exp(-math.lgamma(d / 2 + 1) / d)
        check_law(d, edge=edge)
        self.d, self.edge = d, float(edge)

    @property
    def tail(self) -> float:
        return 2 * self.edge / math.pi

    @double
    def density(self, radius) -> Float[Array, "..."]:
        r = jnp.asarray(radius, float)
        beyond = jnp.where(r > self.edge, r, 2 * self.edge)
        value = self.tail / (beyond * jnp.sqrt(beyond**2 - self.edge**2))
        return jnp.where(r > self.edge, value, 0.0)

    @double
    def moments(self, radius) -> Moments:
        a = jnp.asarray(radius, float)
        endless, beyond = jnp.isposinf(a), a > self.edge
        # roots are taken where their slope is finite, as derivatives pass through both branches
        a = jnp.where(beyond & ~endless, a, 2 * self.edge)
        m1 = self.tail * jnp.arccosh(a / self.edge)
        m2 = self.tail * jnp.sqrt((a - self.edge) * (a + self.edge))
        m0 = jnp.where(endless, 1.0, 1 - self.sf(a))
        m1, m2 = (jnp.where(endless, jnp.inf, m) for m in (m1, m2))
        m0, m1, m2 = (jnp.where(beyond, m, 0.0) for m in (m0, m1, m2))
        return m0, m1, m2

    @double
    def cdf(self, radius) -> Float[Array, "..."]:
        a = jnp.maximum(jnp.asarray(radius, float), self.edge)
        # pi/2 - arcsin(s) = arctan(sqrt(1 - s^2) / s), without cancellation next to the edge
        return 2 / math.pi * jnp.arctan(jnp.sqrt((a / self.edge - 1) * (a / self.edge + 1)))

    @double
    def sf(self, radius) -> Float[Array, "..."]:
        a = jnp.maximum(jnp.asarray(radius, float), self.edge)
        return 2 / math.pi * jnp.arcsin(self.edge / a)

    @double
    def quantile(self, p) -> Float[Array, "..."]:
        return self.edge / jnp.sin(0.5 * math.pi * (1 - jnp.asarray(p, float)))


ArcsineRadial = ArcsineLaw
