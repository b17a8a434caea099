r"""The field with radius and directions both integrated: no samples at all.

On $\varphi = F(\bar x)$ the pull $s(\varphi)$ is expanded at $\alpha$. The first order is exact in the directions through closed
forms; the second layer and the loss take the second order with $E(\varphi - \alpha)^2 = \alpha^2 e_2^2$. Where all second-layer
neurons are active, $s$ is affine in $\varphi$ apart from the cut-off; the error is $O((F/\alpha - 1)^2)$ in the first layer and of
third order in the second.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from ..laws.base import AbstractRadialLaw
from ..laws.rays import cut, projected, ray_integrals, steepest
from ..laws.thresholds import Thresholds
from .directions import alpha_of, direction_error, direction_pull
from .samples import Field, norms


@eqx.filter_jit
def integrated_field(law: AbstractRadialLaw, first, w, b, clip: Thresholds) -> Field:
    """The mean-field velocity without samples.

    The second layer is projected exactly to the same order. The first layer's projection is not
    carried out: `pairs[0]` is the width if the sufficient bound does not exclude that it acts, else 0.
    """
    alpha = alpha_of(first)

    def ray(phi):
        free = ray_integrals(law, phi, w, b)
        if clip.off:
            return free.pull, phi * free.first, free.zeroth, free.loss
        pieces = cut(phi, w, b)
        args = (pieces.p, pieces.q, pieces.low, pieces.high)
        weight = pieces.active.T @ projected(law, phi, *args, clip.weight, 1)
        bias = pieces.active.T @ projected(law, 1.0, *args, clip.bias, 0)
        return free.pull, weight, bias, free.loss

    (pull, weight, bias, loss), (slope, *_), (_, weight2, bias2, loss2) = _expansion(ray, alpha)
    half = 0.5 * alpha**2 * direction_error(first)
    symmetric = 2 * law.gain * first
    first_speed = pull * symmetric + slope * (direction_pull(first) - alpha * symmetric)
    acts = 2 * jnp.max(norms(first)[0]) * _strongest(alpha, w, b) > clip.first
    pairs = jnp.stack([first.shape[0] * acts, jnp.zeros(()), jnp.zeros(())])
    share = pairs / first.shape[0]
    return Field(
        first_speed, weight + half * weight2, bias + half * bias2, pairs, share, loss + half * loss2
    )


def integrated_loss(law: AbstractRadialLaw, first, w, b):
    r"""$\ell(\alpha) + \frac12 \ell''(\alpha)\, \alpha^2 e_2^2$ for the loss $\ell(\varphi)$ of one ray."""
    alpha = alpha_of(first)
    loss, _, second = _expansion(lambda phi: ray_integrals(law, phi, w, b).loss, alpha)
    return loss + 0.5 * alpha**2 * direction_error(first) * second


def _expansion(function, point):
    """Value, first and second derivative of a function of one number, in one pass."""
    one = jnp.ones_like(point)
    (value, first), (_, second) = jax.jvp(
        lambda z: jax.jvp(function, (z,), (one,)), (point,), (one,)
    )
    return value, first, second


def _strongest(alpha, w, b):
    pieces = cut(alpha, w, b)
    return steepest(pieces, pieces.active @ w / w.shape[0])
