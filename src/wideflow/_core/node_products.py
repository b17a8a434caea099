r"""Products over the neurons of a layer: cotangents spread over them, blocks of them, and
$T T^\top$.

On a CPU an n x m array that does not fit the cache is worked off block by block. $T T^\top$ is
computed from its upper half; blocks below the diagonal are mirrored.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

HALVINGS = 2  # five eighths of the multiplications; a third halving saves no time
SMALLEST = 128  # rows; smaller blocks cost more in calls than they save


def spread(
    cotangent: Float[Array, " sample *output"], mixed: Float[Array, "*output width"]
) -> Float[Array, "sample width"]:
    r"""$r\,c$: the cotangent of each neuron's activation."""
    return cotangent[:, None] * mixed if mixed.ndim == 1 else cotangent @ mixed


def cut_blocks(count: int, *arrays: Float[Array, "... width"]) -> tuple[Array, ...]:
    """`arrays` (neurons last) in `count` blocks, which come first; the last block is padded by
    zeros.
    """
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


def symmetric_product(
    rows: Float[Array, "sample width"], halvings: int = HALVINGS
) -> Float[Array, "sample sample"]:
    r"""$T T^\top$.

    >>> symmetric_product(jnp.asarray([[1.0, 2.0], [0.0, 1.0]])).tolist()
    [[5.0, 2.0], [2.0, 1.0]]
    """
    # one halving leaves 1/4 + 2/4 = 3/4 of the multiplications, two 1/4 + (3/4)/2 = 5/8, infinitely
    # many 1/2
    half = len(rows) // 2
    if halvings == 0 or len(rows) < SMALLEST:
        return rows @ rows.T
    upper, lower = rows[:half], rows[half:]
    corner = upper @ lower.T
    first, last = (symmetric_product(part, halvings - 1) for part in (upper, lower))
    return jnp.block([[first, corner], [corner.T, last]])
