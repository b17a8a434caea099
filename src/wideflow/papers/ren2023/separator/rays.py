r"""The field with the radius integrated exactly on a set of directions.

On the ray through $\bar x$ with $\varphi = F(\bar x)$ all expectations over $r$ are sums of partial
moments, so only the directions are sampled. With `control` the symmetric part is taken
analytically, $\dot v = 2 g\, s(\alpha) v + E_{\bar x}\{(s(\varphi) - s(\alpha))(\bar
v\,\mathrm{ReLU}(v\cdot\bar x) + \lVert v \rVert 1\{v\cdot\bar x>0\}\bar x)\}$, and likewise for the
second layer: the noise is then proportional to $F/\alpha - 1$.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.polar import polar
from ..laws.base import AbstractRadialLaw
from ..laws.rays import cut, largest, projected, ray_integrals, steepest
from ..laws.thresholds import Thresholds
from .directions import alpha_of
from .samples import Field


class _Ray(NamedTuple):
    pull: Float[Array, "..."]  # E{S r}, for one direction or per neuron where projected
    weight: Float[Array, " second"]
    bias: Float[Array, " second"]
    loss: Float[Array, ""]
    projected_pairs: Float[Array, "3"]


def ray_losses(law: AbstractRadialLaw, phi, w, b):
    r"""$\frac12 E_r(f_* - f)^2$ for every value of $\varphi$."""
    return jax.vmap(lambda value: ray_integrals(law, value, w, b).loss)(phi)


@eqx.filter_jit
def ray_field(
    law: AbstractRadialLaw, first, w, b, directions, clip: Thresholds, *, control: bool = False
) -> Field:
    """The mean-field velocity with the given unit `directions`; `pairs` counts (direction, neuron)
    pairs on whose ray some radius is projected.
    """
    count, width, second = directions.shape[0], first.shape[0], w.shape[0]
    length, unit = polar(first)
    h = directions @ first.T
    active = h > 0
    p = jnp.where(active, h, 0)
    phi = p @ length / width
    if law.tail > 0 and math.isinf(clip.first):
        phi = jnp.where(phi > 0, phi, jnp.nan)  # F vanishes on a ray: the pull there is infinite

    if clip.off:
        on_ray = jax.vmap(lambda value: _free(law, value, w, b))
        rays = on_ray(phi)
        pull = rays.pull[:, None]
    else:
        size = length * jnp.sqrt(1 + 3 * (p / jnp.where(length > 0, length, 1.0)) ** 2)
        rays = jax.lax.map(lambda pair: _held(law, pair[0], w, b, pair[1], clip), (phi, size))
        pull = rays.pull

    steady = jnp.zeros(())
    weight, bias, loss = rays.weight, rays.bias, rays.loss
    shift = (0.0, 0.0, 0.0)
    if control:
        alpha = alpha_of(first)
        centre = _free(law, alpha, w, b)
        steady = centre.pull
        shift = (centre.weight, centre.bias, centre.loss)
        weight, bias, loss = weight - shift[0], bias - shift[1], loss - shift[2]
    coefficient = (pull - steady) * active / count
    first_speed = (
        2 * law.gain * steady * first
        + jnp.sum(coefficient * p, axis=0)[:, None] * unit
        + length[:, None] * (coefficient.T @ directions)
    )
    pairs = rays.projected_pairs.sum(0)
    totals = jnp.array([count * width, count * second, count * second], pairs.dtype)
    return Field(
        first_speed,
        shift[0] + weight.mean(0),
        shift[1] + bias.mean(0),
        pairs,
        pairs / totals,
        shift[2] + loss.mean(),
    )


def _free(law, phi, w, b) -> _Ray:
    ray = ray_integrals(law, phi, w, b)
    return _Ray(ray.pull, phi * ray.first, ray.zeroth, ray.loss, jnp.zeros(3))


def _held(law, phi, w, b, size, clip: Thresholds) -> _Ray:
    r"""One ray with projections; neuron $i$ is pulled with strength $|S| r\,$`size[i]`."""
    pieces = cut(phi, w, b)
    share = pieces.active @ w / w.shape[0]

    def expect(c, bound, power):
        return projected(law, c, pieces.p, pieces.q, pieces.low, pieces.high, bound, power)

    def every_neuron(_):
        bounds = clip.first / jnp.where(size > 0, size, 1.0)[:, None]
        return expect(share, bounds, 1).sum(1)

    def together(_):
        return jnp.broadcast_to(expect(share, jnp.inf, 1).sum(), size.shape)

    strongest = steepest(pieces, share)
    pull = jax.lax.cond(jnp.max(size) * strongest > clip.first, every_neuron, together, None)
    reach = jax.vmap(lambda on: steepest(pieces, phi * on), in_axes=1)(pieces.active)
    high = jax.vmap(lambda on: largest(pieces, on), in_axes=1)(pieces.active)
    exceeding = [
        (size * strongest > clip.first).sum(),
        (reach > clip.weight).sum(),
        (high > clip.bias).sum(),
    ]
    return _Ray(
        pull,
        pieces.active.T @ expect(phi, clip.weight, 1),
        pieces.active.T @ expect(1.0, clip.bias, 0),
        ray_integrals(law, phi, w, b).loss,
        jnp.stack(exceeding).astype(float),
    )
