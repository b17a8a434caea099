"""The memory budget: anything quadratic or larger is worked off in tiles that fit it."""

import math
import os
import re
from numbers import Integral

# chosen: what a laptop can spare
DEFAULT_BYTES = 2 << 30

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def budget(memory: int | str | None = None) -> int:
    """Bytes that one computation may hold: `memory`, else `WIDEFLOW_MEMORY`, else 2 GiB.

    >>> budget("512M")
    536870912
    """
    value = memory if memory is not None else os.environ.get("WIDEFLOW_MEMORY", DEFAULT_BYTES)
    if isinstance(value, Integral) and not isinstance(value, bool):
        amount = int(value)
    else:
        text = value.lower() if isinstance(value, str) else ""
        match = re.fullmatch(r"\s*([0-9]+\.?[0-9]*)\s*([kmgt]?)i?b?\s*", text)
        if match is None:
            raise ValueError(
                "`memory` must be a number of bytes or a text like '512M' or '4GiB', got "
                f"{value!r}."
            )
        amount = int(float(match[1]) * _UNITS[match[2]])
    if amount <= 0:
        raise ValueError(f"`memory` must be positive, got {value!r}.")
    return amount


def machine_bytes() -> int:
    """The memory of this machine; 8 TB, more than any has, where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 8 * 10**12


def check_fits(remedy: str = "", /, **counts: int) -> None:
    """Refuses an array of float64 with so many entries along its axes that no machine, or not this
    one, holds it: XLA ends the process where it cannot allocate.

    >>> check_fits(samples=10**3, features=10)
    """
    size = 8 * math.prod(int(count) for count in counts.values())
    if size > machine_bytes():
        factors = " times ".join(f"`{name}` = {count}" for name, count in counts.items())
        sentence = (
            f"{factors} would need {float(size):.1e} bytes, more than this machine's "
            f"{float(machine_bytes()):.1e}."
        )
        raise ValueError(f"{sentence} {remedy}" if remedy else sentence)


def tile_rows(rows: int, bytes_per_row: int, memory: int | str | None = None) -> int:
    """How many rows fit the budget: at least one, at most all."""
    return max(1, min(rows, budget(memory) // max(1, bytes_per_row)))
