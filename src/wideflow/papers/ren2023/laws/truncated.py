r"""A radial law cut off at a radius."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.errors import check_flag, check_positive
from ...._core.precision import double
from .base import AbstractRadialLaw, Moments


class Truncated(AbstractRadialLaw):
    r"""`law` given $r \le \varrho$ = `radius`; with `renormalise=False` its restriction to
    $r \le \varrho$.

    The restriction has mass $M_0(\varrho) < 1$ and the moments $M_k(\min(a, \varrho))$; it
    represents restricted expectations $E\{g; r \le \varrho\}$ and cannot be sampled. Two-layer
    networks have infinite loss on the untruncated Bessel law unless their slope vanishes in almost
    every direction, so they are compared here.

    Args:
        law: of the radius.
        radius: $\varrho > 0$.
        renormalise: whether the mass is brought back to 1.
    """

    d: int = eqx.field(static=True)
    law: AbstractRadialLaw
    radius: float = eqx.field(static=True)
    renormalise: bool = eqx.field(static=True)

    @double
    def __init__(self, law: AbstractRadialLaw, radius: float, *, renormalise: bool = True):
        check_positive("radius", radius)
        check_flag("renormalise", renormalise)
        if not isinstance(law, AbstractRadialLaw):
            raise ValueError(f"`law` must be a radial law such as `BesselLaw(d)`, got {law!r}.")
        self.d, self.law, self.radius, self.renormalise = law.d, law, float(radius), renormalise
        if not float(law.moments(radius)[0]) > 0:
            raise ValueError(
                f"`radius` must leave some mass, got {radius}, below which {law} has none."
            )

    @property
    def tail(self) -> float:
        return 0.0

    @property
    @double
    def mass(self) -> Float[Array, ""]:
        r"""$M_0(\varrho)$ of the full law."""
        return self.law.moments(self.radius)[0]

    def _norm(self):
        return self.mass if self.renormalise else 1.0

    @double
    def density(self, radius) -> Float[Array, "..."]:
        r = jnp.asarray(radius, float)
        return jnp.where(r <= self.radius, self.law.density(r), 0.0) / self._norm()

    @double
    def moments(self, radius) -> Moments:
        m0, m1, m2 = self.law.moments(jnp.minimum(jnp.asarray(radius, float), self.radius))
        norm = self._norm()
        return m0 / norm, m1 / norm, m2 / norm

    @double
    def cdf(self, radius) -> Float[Array, "..."]:
        return self.law.cdf(jnp.minimum(jnp.asarray(radius, float), self.radius)) / self._norm()

    @double
    def sf(self, radius) -> Float[Array, "..."]:
        a = jnp.minimum(jnp.asarray(radius, float), self.radius)
        return (self.law.sf(a) - self.law.sf(self.radius)) / self._norm()

    @double
    def quantile(self, p) -> Float[Array, "..."]:
        if not self.renormalise:
            raise ValueError(
                "`renormalise` is False: a restriction has mass below one and no quantiles or "
                "samples. "
                "Use `Truncated(law, radius)`."
            )
        return jnp.minimum(self.law.quantile(self.mass * jnp.asarray(p, float)), self.radius)
