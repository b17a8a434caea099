r"""The field with radius and directions both integrated: no samples at all.

On $\varphi = F(\bar x)$ the pull $s(\varphi)$ is expanded at $\alpha$. The first order is exact in the directions through closed
forms; the second layer and the loss take the second order with $E(\varphi - \alpha)^2 = \alpha^2 e_2^2$. Where all second-layer
neurons are active, $s$ is affine in $\varphi$ apart from the cut-off; the error is $O((F/\alpha - 1)^2)$ in the first layer and of
third order in the second.
"""

import jax
import jax.numpy as jnp

from ..radial_laws import AbstractRadialLaw, Thresholds
from ..radial_laws.rays import cut, projected, ray_integrals, steepest
from .directions import alpha_of, direction_error, direction_pull
from .samples import Field, norms


def integrated_field(law: AbstractRadialLaw, first, w, b, clip: Thresholds) -> Field:
    """The mean-field velocity without samples.

    The second layer is projected exactly to the same order. The first layer's projection is not
    carried out: `pairs[0]` is the width if the sufficient bound does not exclude that it acts, else 0.
    """
    alpha = alpha_of(first)
    length, _ = norms(first)

    def ray(phi):
        free = ray_integrals(law, phi, w, b)
        if clip.off:
            return free.pull, phi * free.first, free.zeroth, free.loss
        pieces = cut(phi, w, b)
        args = (pieces.p, pieces.q, pieces.low, pieces.high)
        weight = pieces.active.T @ projected(law, phi, *args, clip.weight, 1)
        bias = pieces.active.T @ projected(law, 1.0, *args, clip.bias, 0)
        return free.pull, weight, bias, free.loss

    def slope(phi):
        return jax.jvp(ray, (phi,), (jnp.ones_like(phi),))[1]

    (pull, weight, bias, loss), (d_pull, *_) = ray(alpha), slope(alpha)
    _, weight2, bias2, loss2 = jax.jvp(slope, (alpha,), (jnp.ones_like(alpha),))[1]
    half = 0.5 * alpha**2 * direction_error(first)
    symmetric = 2 * law.gain * first
    first_speed = pull * symmetric + d_pull * (direction_pull(first) - alpha * symmetric)

    pieces = cut(alpha, w, b)
    share = pieces.active @ w / w.shape[0]
    reach = [
        first.shape[0] * (2 * jnp.max(length) * steepest(pieces, share) > clip.first),
        *(jnp.zeros(()) for _ in range(2)),
    ]
    pairs = jnp.stack([jnp.asarray(r, float) for r in reach])
    return Field(
        first_speed,
        weight + half * weight2,
        bias + half * bias2,
        pairs,
        pairs / jnp.array([first.shape[0], 1, 1]),
        loss + half * loss2,
    )
