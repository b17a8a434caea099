"""Row-wise work in tiles that fit the memory budget, with the same numbers for every budget."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from .memory import tile_rows


def by_rows(
    function: Callable, *arrays: jax.Array, bytes_per_row: int, memory: int | str | None = None
):
    """`function(*arrays)` worked off in tiles of leading rows; outputs (a tree) keep the rows as
    their first axis.

    `function` must treat rows independently. `bytes_per_row` is what one row holds while it is
    worked on.

    >>> import jax.numpy as jnp
    >>> by_rows(lambda x: x**2, jnp.arange(5), bytes_per_row=8, memory=16).tolist()
    [0, 1, 4, 9, 16]
    """
    rows = arrays[0].shape[0]
    tile = tile_rows(rows, bytes_per_row, memory)
    if tile == rows:
        return function(*arrays)
    tiles = -(-rows // tile)
    tile = -(-rows // tiles)  # even tiles: the last is padded by fewer than `tiles` rows

    def split(x):
        padded = jnp.pad(x, [(0, tiles * tile - rows)] + [(0, 0)] * (x.ndim - 1))
        return padded.reshape(tiles, tile, *x.shape[1:])

    pieces = jax.lax.map(lambda xs: function(*xs), tuple(split(x) for x in arrays))
    return jax.tree.map(lambda y: y.reshape(tiles * tile, *y.shape[2:])[:rows], pieces)
