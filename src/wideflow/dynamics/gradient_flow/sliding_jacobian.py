r"""The Jacobian of a shallow network some of whose pairs (sample, neuron) slide along their kink.

A pair slides at $z_{ij} = \phi_i\cdot w_j = 0$ with whatever slope keeps it there, so its neuron moves in the complement of $\phi_i$. With
$Q_j$ an orthonormal basis of the inputs along which neuron $j$ slides, and $S$ the slopes of the other pairs,
$$J_j = s_jA_j\,\mathrm{diag}(S_j)\,\Phi\,(I - Q_jQ_j^\top),\qquad
\Theta = c\,\Phi\Phi^\top\odot(S\,\mathrm{diag}(s^2A^2)\,S^\top) - c\sum_j s_j^2A_j^2\,\mathrm{diag}(S_j)\,\Phi Q_jQ_j^\top\Phi^\top\mathrm{diag}(S_j).$$
No slope of a sliding pair enters: the linearisation holds for any cotangent that keeps the pair sliding.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..._core.symmetric_product import symmetric_product
from .jacobian import AbstractTangents, ShallowTangents, gram_map_in_blocks

Pairs = Float[Array, "sample width"]
Directions = Float[Array, "rank embedded width"]

MOST = 8  # directions in which one neuron can be held; pairs beyond them keep their mean slopes
SHARES = 4  # of the width: a block of directions
DEPENDENT = (
    1e-8  # share of an input's square outside the directions held so far, below which it adds none
)


class Held(eqx.Module):
    """The linearisation: mean slopes and held directions (orthonormal for each neuron, or 0); and the slopes at the place itself."""

    slopes: Pairs
    mean: Pairs
    directions: Directions


class HeldTangents(AbstractTangents):
    """Those of `free` in the complement of the held directions."""

    free: ShallowTangents

    def at(self, theta):
        outputs, slopes = self.free.at(theta)
        size, width = theta["weights"].shape
        nothing = jnp.zeros((min(MOST, size), size, width), slopes.dtype)
        return outputs, Held(slopes, slopes, nothing)

    def pull(self, point: Held, cotangent):
        return _complement(point, self.free.pull(point.mean, cotangent))

    def push(self, point: Held, tangent):
        return self.free.push(point.mean, _complement(point, tangent))

    def gram_map(self, point: Held):
        return gram_map_in_blocks(self.free, HeldTangents, point) or super().gram_map(point)

    def gram(self, point: Held):
        """The directions in use are taken in blocks, whose size divides the width so that the last block ends with the last direction."""
        t, width = self.free, point.mean.shape[1]
        size = width // SHARES if width % SHARES == 0 else width
        columns = jnp.swapaxes(point.directions, 0, 1).reshape(point.directions.shape[1], -1)
        used = jnp.any(columns != 0, axis=0)
        order = jnp.argsort(~used, stable=True)
        outputs = jnp.atleast_2d(t.mixed)

        def without(block, gram):
            chosen = jax.lax.dynamic_slice_in_dim(order, block * size, size)
            neuron = chosen % width
            along = point.mean[:, neuron] * (t.features @ columns[:, chosen])
            rows = along[:, None, :] * outputs[:, neuron]
            return gram - t.factor * symmetric_product(rows.reshape(-1, size))

        return jax.lax.fori_loop(0, -(-jnp.sum(used) // size), without, t.gram(point.mean))


def _complement(point: Held, tangent):
    weights = tangent["weights"]
    parts = jnp.einsum("kdm,dm->km", point.directions, weights)
    return {"weights": weights - jnp.einsum("kdm,km->dm", point.directions, parts)}


def held_directions(features, sliding: Bool[Array, "sample width"]) -> Directions:
    """Orthonormal bases of the inputs along which neurons slide, the input farthest from those before it first."""
    size, width = features.shape[1], sliding.shape[1]
    most = min(MOST, size)
    squares = jnp.sum(features**2, axis=1, keepdims=True)

    def going(carry):
        count, _, outside = carry
        return (count < most) & jnp.any(outside > DEPENDENT * squares)

    def add(carry):
        count, directions, outside = carry
        farthest = jnp.argmax(outside, axis=0)
        new = features[farthest].T
        for _ in range(2):  # twice is enough
            new = new - jnp.einsum("kdm,kem,em->dm", directions, directions, new)
        left = jnp.take_along_axis(outside, farthest[None], axis=0)[0]
        length = jnp.linalg.norm(new, axis=0)
        fresh = left > DEPENDENT * squares[farthest, 0]
        new = jnp.where(fresh, new / jnp.where(fresh, length, 1.0), 0.0)
        outside = jnp.where(fresh, outside - (features @ new) ** 2, 0.0)
        return count + 1, directions.at[count].set(new), outside

    nothing = jnp.zeros((most, size, width), features.dtype)
    start = (jnp.zeros((), int), nothing, jnp.where(sliding, squares, 0.0))
    return jax.lax.while_loop(going, add, start)[1]
