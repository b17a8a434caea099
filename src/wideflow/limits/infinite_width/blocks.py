"""Kernel matrices worked off in blocks of equal shape: one compiled program, any size, half the
work for symmetric ones.
"""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from ..._core.memory import budget

# One array of a block. On a CPU it shall stay in a core's cache: at depth 5 and n = 1000, 0.5 MiB
# took 0.09 s of processor time, 2 MiB 0.17 s and the whole matrix 0.20 s. An accelerator wants
# fewer and larger programs.
BLOCK_BYTES = {"cpu": 1 << 19}
LARGE_BLOCK_BYTES = 128 << 20  # (chosen)
# Measured for two convolutions and pooling on 8 x 8 pixels: 4 rows took 0.45 s, 8 took 0.75 s and
# 16 took 1.4 s.
FEWEST_ROWS = 4
# arrays of a block's size that a layer holds at once: both kernels, old and new, and the angle's
# parts
LIVE_ARRAYS = 8


def block_rows(entries: int, itemsize: int, memory: int | str | None) -> int:
    """Samples along each side of a block, from the numbers that one pair of samples holds."""
    block_bytes = BLOCK_BYTES.get(jax.default_backend(), LARGE_BLOCK_BYTES)
    # rows^2 entries an array, LIVE_ARRAYS of them
    most = math.isqrt(budget(memory) // LIVE_ARRAYS // (itemsize * entries))
    rows = max(math.isqrt(block_bytes // (itemsize * entries)), FEWEST_ROWS)
    return max(1, min(most, rows))


def starts(count: int, rows: int) -> list[int]:
    """Where blocks of `rows` begin; the last one overlaps its neighbour, so that all have one
    shape.
    """
    if count <= rows:
        return [0]
    # an overlap is computed twice: cheaper than a second program for a smaller last block
    return [*range(0, count - rows, rows), count - rows]


def pairs_of_blocks(left: list[int], right: list[int] | None) -> Iterator[tuple[int, int]]:
    """All pairs, or those on and above the diagonal where the matrix is symmetric."""
    for k, i in enumerate(left):
        for j in left[k:] if right is None else right:
            yield i, j


@functools.partial(jax.jit, donate_argnums=0, static_argnames="symmetric")
def _insert(matrices, blocks, i, j, symmetric: bool):
    """Blocks into their places (i, j), and transposed into (j, i) where the matrices are
    symmetric.
    """

    def insert(matrix, block):
        rest = (0,) * (block.ndim - 2)
        matrix = jax.lax.dynamic_update_slice(matrix, block, (i, j, *rest))
        if symmetric:
            mirrored = jnp.swapaxes(block, 0, 1)
            matrix = jax.lax.dynamic_update_slice(matrix, mirrored, (j, i, *rest))
        return matrix

    return jax.tree.map(insert, matrices, blocks)


def assemble(
    block: Callable, x, x2, rows: int, progress: Callable[[int, int], None] | None = None
) -> Any:
    """`block(left, right)`, a tree of matrices, for all samples of `x` against those of `x2` (of
    `x` if None).

    Args:
        block: gives matrices with axes (left, right, ...) for samples left and right.
        rows: samples along each side of a block.
        progress: called with the blocks done and all of them, if given.
    """
    symmetric = x2 is None
    right = x if symmetric else x2
    tall, wide = min(rows, x.shape[0]), min(rows, right.shape[0])
    left_starts = starts(x.shape[0], tall)
    right_starts = None if symmetric else starts(right.shape[0], wide)
    plan = list(pairs_of_blocks(left_starts, right_starts))
    matrices = None
    for done, (i, j) in enumerate(plan):
        part = block(x[i : i + tall], right[j : j + wide])
        if len(plan) == 1:
            return part
        if matrices is None:
            full = lambda a: jnp.zeros((x.shape[0], right.shape[0], *a.shape[2:]), a.dtype)
            matrices = jax.tree.map(full, part)
        matrices = _insert(matrices, part, i, j, symmetric)
        if progress is not None:
            progress(done + 1, len(plan))
    return matrices
