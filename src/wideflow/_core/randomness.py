"""Named randomness: every part of a run draws from the key folded with its own name.

Adding a part, or grouping runs, therefore changes no draw of the others.
"""

import zlib
from numbers import Integral

import jax
import jax.numpy as jnp

from .types import Key


def named_key(key: int | Key, *names: str | int) -> Key:
    """The key of the part called `names`, for instance `named_key(key, "hidden")`.

    A name is folded in through its CRC-32, which is the same on every machine and Python version.
    """
    key = as_key(key)
    for name in names:
        number = name if isinstance(name, int) else zlib.crc32(name.encode())
        key = jax.random.fold_in(key, number)
    return key


def as_key(seed) -> Key:
    """A typed key from a whole number below 2^63, or the key itself."""
    if isinstance(seed, Integral) and not isinstance(seed, bool):
        if not -(2**63) <= int(seed) < 2**63:
            raise ValueError(
                f"`key` must be a whole number of at most 63 bits, got {seed}. Take it modulo 2**63."
            )
        return jax.random.key(int(seed))
    dtype = getattr(seed, "dtype", None)
    if dtype is None or not jnp.issubdtype(dtype, jax.dtypes.prng_key):
        raise ValueError(
            f"`key` must be a whole number or a typed key, got {seed!r}. Use `jax.random.key(seed)`."
        )
    if seed.shape:
        raise ValueError(
            f"`key` must be one key, got an array of keys of shape {seed.shape}. Take one of them."
        )
    return seed
