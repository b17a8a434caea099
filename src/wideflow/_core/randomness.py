"""Named randomness: every part of a run draws from the key folded with its own name.

Adding a part, or grouping runs, therefore changes no draw of the others.

A draw by `jax.random` outside `jit` is a program of its own for each shape, a tenth of a second to
compile. The generator counts entries, so that a long draw begins with the short ones; on a CPU
`normal` and `signs` take the next power of two and cut: the same numbers, bit for bit, from few
programs.
"""

import math
import zlib
from collections.abc import Callable

import jax
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from . import host
from .errors import as_key
from .types import Key

# entries of a draw that is cut; drawing more than that costs as much as compiling
FEWEST, MOST = 64, 65_536


def named_key(key: int | Key, *names: str | int) -> Key:
    """The key of the part called `names`, for instance `named_key(key, "hidden")`.

    A name is folded in through its CRC-32, which is the same on every machine and Python version.
    """
    key = as_key(key)
    for name in names:
        number = name if isinstance(name, int) else zlib.crc32(name.encode())
        key = jax.random.fold_in(key, number)
    return key


def normal(key: Key, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """`jax.random.normal(key, shape, float)`."""
    return _cut(lambda key, shape: jax.random.normal(key, shape, float), key, shape)


def signs(key: Key, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """`jax.random.rademacher(key, shape, float)`: plus and minus one with equal chance."""
    return _cut(lambda key, shape: jax.random.rademacher(key, shape, float), key, shape)


def _cut(draw: Callable, key: Key, shape: tuple[int, ...]) -> Float[Array, "..."]:
    size = math.prod(shape)
    if size > MOST or not _counts_entries(key) or jax.default_backend() != "cpu":
        return draw(key, shape)
    # entry i of threefry's stream is a function of the key and i, so that the first `size` of a
    # longer draw are the draw itself
    length = max(FEWEST, 1 << (size - 1).bit_length())
    return host.on_device(np.asarray(draw(key, (length,)))[:size].reshape(shape))


def _counts_entries(key: Key) -> bool:
    """Whether an entry depends on the key and its own place alone, not on how many there are; a
    traced key is inside a program already.
    """
    return (
        jax.config.jax_threefry_partitionable  # pyright: ignore[reportAttributeAccessIssue]
        and not isinstance(key, Tracer)
        and str(jax.random.key_impl(key)) == "threefry2x32"
    )
