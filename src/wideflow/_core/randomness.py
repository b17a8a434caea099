"""Named randomness: every part of a run draws from the key folded with its own name.

Adding a part, or grouping runs, therefore changes no draw of the others.
"""

import zlib

import jax

from .errors import as_key
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
