r"""The mean slope of a kinked activation over a step, with sliding: the Filippov selection.

A pre-activation $z_{ij}$ of a ReLU network can be driven onto its kink from both sides. The flow then has no classical solution;
its Filippov solution stays at $z_{ij} = 0$ with a slope $s_{ij}$ between the two one-sided ones, the one for which $\dot z_{ij} = 0$.
Over a step, with the integrated cotangent $\bar g$ frozen, $\Delta z_{ij}$ is affine in the own slope,
$$\Delta z_{ij} = B_{ij} + s_{ij}A_{ij},\qquad A_{ij} = -c\,|\phi_i|^2\,(\bar g\,(s\odot A))_{ij},$$
so crossing time, sliding slope $s^* = -B/A$ and the mean slope over the step follow in closed form, pair by pair. A pair that
crosses gets the time-weighted mean of the two slopes, a pair that reaches the kink and cannot leave gets $s^*$ from then on.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._core.types import Scalar

Pairs = Float[Array, "sample width"]


def mean_slopes(
    z: Pairs, slopes: Pairs, own: Pairs, moved: Pairs, low: Scalar, high: Scalar
) -> tuple[Pairs, Pairs]:
    r"""Mean slopes over the step, and the slopes at its end.

    Args:
        z: pre-activations at the start, kink at 0.
        slopes: those with which `moved` was computed.
        own: $A$, the part of $\Delta z$ per unit of the own slope. moved: $\Delta z$.
        low, high: the slopes left and right of the kink.

    Returns:
        (mean slopes, end slopes): equal to `low` or `high` for pairs that stay on their side.
    """
    rest = moved - slopes * own
    left, right = rest + low * own, rest + high * own  # the displacement on either side
    stuck = jnp.clip(-rest / _nonzero(own), low, high)
    positive = z > 0
    here, there = jnp.where(positive, high, low), jnp.where(positive, low, high)
    toward, beyond = jnp.where(positive, right, left), jnp.where(positive, left, right)
    reaches = jnp.where(positive, z + toward < 0, z + toward > 0)
    when = jnp.clip(-z / _nonzero(toward), 0.0, 1.0)
    slides = reaches & jnp.where(positive, beyond > 0, beyond < 0)
    after = jnp.where(slides, stuck, there)
    mean = jnp.where(reaches, when * here + (1 - when) * after, here)
    return mean, jnp.where(reaches, after, here)


def _nonzero(x):
    return jnp.where(x == 0, 1.0, x)
