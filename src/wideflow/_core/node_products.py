r"""Products over the neurons of a layer, in the form that each platform does fastest.

On a GPU a step is bound by reading and writing the n x m array of pre-activations: a product with one column
is done as a sum, which fuses with the activation, and the output weights leave the second product. Slopes that are
only 0 or 1 are exact in bfloat16, so float32 products with them run on the matrix units in three exact
pieces of 8 bits, as accurate as plain float32 and faster.

On a CPU an n x m array that does not fit the cache is worked off block by block: going through the memory costs more there than
computing the pre-activations of a block a second time, so a gradient keeps nothing of that size. $T T^\top$ is computed from its upper
half; blocks below the diagonal are mirrored.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .activations import Activation
from .precision import jax_flag

PIECES = 3  # of 8 bits: all 24 of a float32
FULL = ("highest", "float32", "F32_F32_F32")
WORTH = 1.7  # blocks that a whole must be, at least, to be cut
BLOCK = 7_000_000  # bytes of pre-activations in a block of a gradient
HALVINGS = 2  # five eighths of the multiplications; a third halving saves no time
SMALLEST = 128  # rows; smaller blocks cost more in calls than they save


def spread(
    cotangent: Float[Array, " sample *output"], mixed: Float[Array, "*output width"]
) -> Float[Array, "sample width"]:
    r"""$r\,c$: the cotangent of each neuron's activation."""
    return cotangent[:, None] * mixed if mixed.ndim == 1 else cotangent @ mixed


def node_sum(
    sigma: Activation, z: Float[Array, "sample width"], mixed: Float[Array, " width"]
) -> Float[Array, " sample"]:
    r"""$\sum_j \sigma(z_{ij}) c_j$."""
    return jax.lax.platform_dependent(
        z, mixed,
        cuda=lambda z, c: jnp.sum(sigma.value(z) * c, axis=1), default=lambda z, c: sigma.value(z) @ c,
    )  # fmt: skip


def node_gradient(
    sigma: Activation,
    features: Float[Array, "sample feature"],
    z: Float[Array, "sample width"],
    cotangent: Float[Array, " sample"],
    mixed: Float[Array, " width"],
) -> Float[Array, "feature width"]:
    r"""$\sum_i \phi_{ik} \sigma'(z_{ij}) r_i c_j$."""
    exact = sigma.switch and z.dtype == jnp.float32 and _full_precision()
    on_gpu, on_cpu = (
        functools.partial(form, sigma) for form in (in_pieces if exact else mixed_last, mixed_first)
    )
    return jax.lax.platform_dependent(
        features, z, cotangent, mixed, cuda=on_gpu, default=on_cpu
    )  # fmt: skip


def _full_precision() -> bool:
    return jax_flag("jax_default_matmul_precision") in FULL


def mixed_first(sigma, features, z, cotangent, mixed):
    return features.T @ (sigma.slope(z) * (cotangent[:, None] * mixed))


def mixed_last(sigma, features, z, cotangent, mixed):
    return (features.T * cotangent) @ sigma.slope(z) * mixed


def in_pieces(sigma, features, z, cotangent, mixed):
    left = jnp.concatenate(pieces(features.T * cotangent))
    product = jax.lax.dot(
        left, sigma.slope(z).astype(jnp.bfloat16), preferred_element_type=jnp.float32
    )
    return sum(jnp.split(product, PIECES)) * mixed


def pieces(values: Float[Array, "..."]) -> list[Array]:
    """bfloat16 arrays whose sum is `values`, in float32, exactly."""
    parts, rest = [], values
    for _ in range(PIECES):
        piece = jax.lax.reduce_precision(rest, exponent_bits=8, mantissa_bits=7)
        parts.append(piece.astype(jnp.bfloat16))
        rest = rest - piece
    return parts


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


def symmetric_product(
    rows: Float[Array, "sample width"], halvings: int = HALVINGS
) -> Float[Array, "sample sample"]:
    r"""$T T^\top$.

    >>> symmetric_product(jnp.asarray([[1.0, 2.0], [0.0, 1.0]])).tolist()
    [[5.0, 2.0], [2.0, 1.0]]
    """
    half = len(rows) // 2
    if halvings == 0 or len(rows) < SMALLEST:
        return rows @ rows.T
    upper, lower = rows[:half], rows[half:]
    corner = upper @ lower.T
    first, last = (symmetric_product(part, halvings - 1) for part in (upper, lower))
    return jnp.block([[first, corner], [corner.T, last]])
