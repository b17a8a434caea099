"""Named randomness: every part of a run draws from the key folded with its own name.

Adding a part, or grouping runs, therefore changes no draw of the others.
"""

import zlib

import jax
import jax.numpy as jnp

from .types import Key


def named_key(key: Key, *names: str | int) -> Key:
    """The key of the part called `names`, for instance `named_key(key, "hidden")`.

    A name is folded in through its CRC-32, which is the same on every machine and Python version.
    """
    for name in names:
        number = name if isinstance(name, int) else zlib.crc32(name.encode())
        key = jax.random.fold_in(key, number)
    return key


def as_key(seed) -> Key:
    """A typed key from a whole number, or the key itself."""
    if isinstance(seed, int):
        return jax.random.key(seed)
    if not hasattr(seed, "dtype") or not jnp.issubdtype(seed.dtype, jax.dtypes.prng_key):
        raise ValueError(
            f"`key` must be a whole number or a typed key, got {seed!r}. Use `jax.random.key(seed)`."
        )
    return seed
