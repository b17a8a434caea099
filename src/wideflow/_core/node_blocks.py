r"""Work on neurons block by block, for arrays of size n x m that do not fit a processor's cache.

Going through the memory costs more there than computing the pre-activations of a block a second time, so a gradient keeps nothing of that size.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .activations import Activation
from .node_products import spread

WORTH = 1.7  # blocks that a whole must be, at least, to be cut
BLOCK = 7_000_000  # bytes of pre-activations in a block of a gradient


def block_count(features: Float[Array, "sample feature"], weights, block: int) -> int:
    """How many blocks with `block` bytes of pre-activations are faster than all at once; 1 where they are few, with an accelerator, and where neurons may be spread over devices."""
    size = features.shape[0] * weights.shape[-1] * weights.dtype.itemsize
    alone = jax.default_backend() == "cpu" and jax.device_count() == 1
    return -(-size // block) if alone and size > WORTH * block else 1


def cut_blocks(count: int, *arrays: Float[Array, "... width"]) -> tuple[Array, ...]:
    """`arrays` (neurons last) in `count` blocks, which come first; the last block is padded by zeros."""
    size = -(-arrays[0].shape[-1] // count)

    def cut(array):
        lacking = count * size - array.shape[-1]
        padded = jnp.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, lacking)])
        return jnp.moveaxis(padded.reshape(*array.shape[:-1], count, size), -2, 0)

    return tuple(map(cut, arrays))


def join_blocks(
    stacked: Float[Array, "block *rest size"], width: int
) -> Float[Array, "*rest width"]:
    """The array whose blocks these are."""
    rows = jnp.moveaxis(stacked, 0, -2)
    return rows.reshape(*rows.shape[:-2], -1)[..., :width]


def block_pullback(
    sigma: Activation,
    features: Float[Array, "sample feature"],
    weights: Float[Array, "feature width"],
    mixed: Float[Array, "*output width"],
    count: int,
) -> tuple[Array, Callable[[Array], Array]]:
    r"""$\sigma(\Phi W) c^\top$ and the map of a cotangent to $\Phi^\top(\sigma'(\Phi W) \odot r c)$, in `count` blocks of neurons and a rest."""
    width = weights.shape[1]
    size = width // count
    whole = size * count

    def part(first, size):
        cut = jax.lax.dynamic_slice_in_dim
        return features @ cut(weights, first, size, 1), cut(mixed, first, size, -1)

    def outputs(first, size):
        z, mix = part(first, size)
        return sigma.value(z) @ mix.T

    def gradient(cotangent, first, size):
        z, mix = part(first, size)
        return features.T @ (sigma.slope(z) * spread(cotangent, mix))

    def pull(cotangent):
        def one(k, gradients):
            return _put(gradients, gradient(cotangent, k * size, size), k * size)

        gradients = jax.lax.fori_loop(0, count, one, jnp.zeros_like(weights))
        return _put(gradients, gradient(cotangent, whole, width - whole), whole)

    rest = outputs(whole, width - whole)
    return jax.lax.fori_loop(0, count, lambda k, f: f + outputs(k * size, size), rest), pull


def _put(whole, part, first):
    return jax.lax.dynamic_update_slice_in_dim(whole, part, first, 1)
