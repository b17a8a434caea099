r"""The clipped field on a batch: one sample's gradients projected, then averaged.

The learner is $F(x) = \frac1{m_1}\sum_i \lVert w_i \rVert\, \mathrm{ReLU}(w_i \cdot x)$,
$f(x) = \frac1{m_2} \sum_j \mathrm{ReLU}(w_{2,j} F(x) + b_{2,j})$.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.polar import polar
from ..laws.thresholds import Thresholds


class Field(NamedTuple):
    """Velocities of the three arrays, how often each projection acted, and the loss of what was
    averaged.

    `pairs` holds, for the first layer, the weights and the biases, the number of (sample, neuron)
    pairs whose gradient exceeded its bound; `share` the same as fractions of all pairs.
    """

    first: Float[Array, "width feature"]
    weight: Float[Array, " second"]
    bias: Float[Array, " second"]
    pairs: Float[Array, "3"]
    share: Float[Array, "3"]
    loss: Float[Array, ""]


def forward(first, w, b, inputs):
    """$F$ and $f$ on a batch."""
    length, _ = polar(first)
    layer = jnp.maximum(inputs @ first.T, 0) @ length / first.shape[0]
    return layer, jnp.maximum(layer[:, None] * w + b, 0).mean(1)


@eqx.filter_jit
def sample_field(first, w, b, inputs, targets, clip: Thresholds) -> Field:
    r"""Equation (4) on a batch, without ever holding a (sample, width, feature) array.

    With residual $e = f_* - f$ and $S = e \frac1{m_2} \sum_j 1_j w_{2,j}$, sample $x$ pulls
    first-layer neuron $i$ by
    $g = S(\bar w_i \mathrm{ReLU}(w_i \cdot x) + \lVert w_i \rVert 1\{w_i \cdot x > 0\} x)$, of norm
    $|S| \sqrt{\lVert w_i \rVert^2 \lVert x \rVert^2 + 3\, \mathrm{ReLU}(w_i \cdot x)^2}$ where it
    is active. Each gradient is projected on the ball of its bound before the mean over samples is
    taken.
    """
    batch, width, second = inputs.shape[0], first.shape[0], w.shape[0]
    length, unit = polar(first)
    h = inputs @ first.T
    active = h > 0
    p = jnp.where(active, h, 0)
    layer = p @ length / width
    z = layer[:, None] * w + b
    on = (z > 0).astype(z.dtype)
    e = targets - jnp.maximum(z, 0).mean(1)
    s = e * (on @ w) / second

    weight_pull = (e * layer)[:, None] * on
    bias_pull = e[:, None] * on
    weight_held = jnp.abs(weight_pull) > clip.weight
    bias_held = jnp.abs(bias_pull) > clip.bias

    radius = jnp.linalg.norm(inputs, axis=1)

    def free(_):
        return s[:, None] * active.astype(s.dtype), jnp.zeros((), p.dtype)

    def projected(_):
        size = jnp.abs(s)[:, None] * jnp.sqrt((radius[:, None] * length) ** 2 + 3 * p**2) * active
        exceeds = size > clip.first
        shrink = jnp.where(exceeds, clip.first / jnp.where(exceeds, size, 1), 1).astype(p.dtype)
        return shrink * s[:, None] * active, exceeds.sum().astype(p.dtype)

    # |g| <= 2 |S| |x| max |w|: most batches need no norms at all
    bound = 2 * jnp.max(jnp.abs(s) * radius) * jnp.max(length)
    coefficient, first_pairs = jax.lax.cond(bound > clip.first, projected, free, None)
    radial = jnp.sum(coefficient * p, axis=0) / batch
    first_speed = radial[:, None] * unit + length[:, None] * (coefficient.T @ inputs) / batch

    pairs = jnp.stack(
        [first_pairs, weight_held.sum().astype(p.dtype), bias_held.sum().astype(p.dtype)]
    )
    totals = jnp.array([batch * width, batch * second, batch * second], p.dtype)
    return Field(
        first_speed,
        jnp.clip(weight_pull, -clip.weight, clip.weight).mean(0),
        jnp.clip(bias_pull, -clip.bias, clip.bias).mean(0),
        pairs,
        pairs / totals,
        0.5 * jnp.mean(e**2),
    )
