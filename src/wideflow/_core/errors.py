"""One voice for wrong input: the argument, the value got, and the way out."""

import difflib
import math
from collections.abc import Iterable, Sequence
from numbers import Integral


def check_positive(name: str, value, remedy: str = "") -> None:
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(_sentence(f"`{name}` must be positive and finite, got {value}.", remedy))


def check_between(name: str, value, low, high, *, open: bool = False, remedy: str = "") -> None:
    inside = low < value < high if open else low <= value <= high
    if not inside:
        interval = f"({low}, {high})" if open else f"[{low}, {high}]"
        raise ValueError(_sentence(f"`{name}` must lie in {interval}, got {value}.", remedy))


def check_count(name: str, value, least: int = 1) -> None:
    if not (isinstance(value, Integral) and not isinstance(value, bool) and value >= least):
        raise ValueError(f"`{name}` must be a whole number of at least {least}, got {value!r}.")


def check_choice(name: str, value, options: Iterable[str]) -> None:
    options = tuple(options)
    if value not in options:
        raise ValueError(
            f"`{name}` must be {listing(options)}, got {value!r}.{did_you_mean(value, options)}"
        )


def check_same_length(**named: Sequence) -> None:
    lengths = {name: len(value) for name, value in named.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"`{name}` has {length}" for name, length in lengths.items())
        raise ValueError(f"lengths must agree, but {told}.")


def listing(options: Iterable[str]) -> str:
    """'a', 'b' or 'c'."""
    quoted = [repr(option) for option in options]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " or " + quoted[-1]


def did_you_mean(value, options: Iterable[str]) -> str:
    """A trailing ' Did you mean ...?' where one of the options is close, else nothing."""
    close = difflib.get_close_matches(str(value), list(options), n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else ""


def _sentence(text: str, remedy: str) -> str:
    return f"{text} {remedy}" if remedy else text
