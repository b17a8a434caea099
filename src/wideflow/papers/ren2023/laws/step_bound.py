r"""The step-size rule of the learner: a bound on the fastest rate of the reduced system."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.arrays import real_array
from ...._core.errors import check_kind
from ...._core.precision import double
from .base import AbstractRadialLaw


@double
def step_bound(law: AbstractRadialLaw, alpha, w, b) -> Float[Array, ""]:
    r"""$\lambda = M_0(\rho) + A^2 M_2(\rho)$, the Gauss-Newton trace at the means of the second
    layer.

    With $\rho = \bar b/(|\bar w| \alpha)$ and $A^2 = \alpha^2 + 4 g \bar w^2 \alpha$,
    $g = C_\Gamma/\sqrt d$; steps up to $1/(2\lambda)$ are stable. Infinite where the mean weight is
    not negative and the law is heavy-tailed.

    Args:
        law: of the radius, with its moments $M_k$.
        alpha: $\alpha$.
        w, b: second-layer weights and biases; only their means $\bar w$, $\bar b$ enter.
    """
    check_kind("law", law, AbstractRadialLaw, "a radial law such as `BesselLaw(d)`")
    alpha = real_array("alpha", alpha, "()", finite=False)
    w = jnp.mean(real_array("w", w, finite=False))
    b = jnp.mean(real_array("b", b, finite=False))
    slope = -w * alpha
    rho = jnp.where(slope > 0, jnp.maximum(b, 0.0) / jnp.where(slope > 0, slope, 1.0), jnp.inf)
    m0, _, m2 = law.moments(rho)
    return m0 + (alpha**2 + 4 * law.gain * w**2 * alpha) * m2
