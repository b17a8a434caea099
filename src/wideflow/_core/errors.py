"""One voice for wrong input: the argument, the value got, and the way out.

Every check survives whatever a user may pass (text, None, NaN, arrays, flags): it either passes or
raises the sentence itself. Arrays have their own checks, in `arrays`.
"""

import difflib
import inspect
import math
import os
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .types import Key

MOST_COUNT = 2**62  # what a 64-bit counter holds, with room to spare


def _traced(value) -> bool:
    """Whether the value is not known yet: inside a compiled program, whose caller was checked."""
    return isinstance(value, Tracer)


def check_number(name: str, value, remedy: str = "") -> None:
    """A finite real number."""
    if _traced(value):
        return
    number = _number(value)
    if number is None or not math.isfinite(number):
        raise ValueError(
            _sentence(f"`{name}` must be a finite number, got {_shown(value)}.", remedy)
        )


def check_positive(name: str, value, remedy: str = "") -> None:
    if _traced(value):
        return
    number = _number(value)
    if number is None or not 0 < number < math.inf:
        raise ValueError(
            _sentence(f"`{name}` must be positive and finite, got {_shown(value)}.", remedy)
        )


def check_nonnegative(name: str, value, remedy: str = "") -> None:
    if _traced(value):
        return
    number = _number(value)
    if number is None or not 0 <= number < math.inf:
        raise ValueError(
            _sentence(f"`{name}` must be finite and not negative, got {_shown(value)}.", remedy)
        )


def check_between(name: str, value, low, high, *, open: bool = False, remedy: str = "") -> None:
    if _traced(value):
        return
    number = _number(value)
    if number is None or not (low < number < high if open else low <= number <= high):
        interval = f"({low}, {high})" if open else f"[{low}, {high}]"
        raise ValueError(
            _sentence(f"`{name}` must lie in {interval}, got {_shown(value)}.", remedy)
        )


def check_probability(name: str, value) -> None:
    if _traced(value):
        return
    number = _number(value)
    if number is None or not 0 < number < 1:
        raise ValueError(
            f"`{name}` must be a probability strictly between 0 and 1, got {_shown(value)}."
        )


def check_count(
    name: str, value, least: int = 1, most: int | None = None, remedy: str = ""
) -> None:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    beyond = whole and int(value) > MOST_COUNT
    if beyond or not (whole and least <= int(value) and (most is None or int(value) <= most)):
        upper = "" if most is None and not beyond else f" and at most {_most(most)}"
        raise ValueError(
            _sentence(
                f"`{name}` must be a whole number of at least {least}{upper}, got {_shown(value)}.",
                remedy,
            )
        )


def _most(most: int | None) -> str:
    return f"{MOST_COUNT:,}" if most is None else str(most)


def check_flag(name: str, value) -> None:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"`{name}` must be True or False, got {_shown(value)}.")


def check_choice(name: str, value, options: Iterable[str]) -> None:
    options = tuple(options)
    if not isinstance(value, str) or value not in options:
        raise ValueError(
            f"`{name}` must be {listing(options)}, got "
            f"{_shown(value)}.{did_you_mean(value, options)}"
        )


def check_kind(
    name: str, value, kinds: type | tuple[type, ...], requirement: str, remedy: str = ""
) -> None:
    """An object of one of our own kinds; `requirement` says which in words."""
    if isinstance(value, kinds):
        return
    description = f"the class {value.__name__} itself" if isinstance(value, type) else _shown(value)
    raise ValueError(_sentence(f"`{name}` must be {requirement}, got {description}.", remedy))


def check_callable(name: str, value, requirement: str) -> None:
    if not callable(value) or isinstance(value, type):
        raise ValueError(f"`{name}` must be {requirement}, got {_shown(value)}.")


def check_takes(name: str, function: Callable, arguments: tuple[str, ...]) -> None:
    """Whether `function` can be called with so many arguments; what has no signature is let
    through.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise ValueError(
            f"`{name}` must hold functions of ({', '.join(arguments)}), got one that takes "
            f"{signature}."
        ) from error


def check_of_indices(name: str, function: Callable, indices: int) -> None:
    """Calls a function of a vector of `indices` numbers once, outside of JAX, which would clamp an
    index that is out of range; it must give one real number.
    """
    check_callable(name, function, "an activation or a function of the vector of indices")
    wanted = f"`{name}` must give one real number for a vector of {indices} indices"
    try:
        value = function(np.full(indices, 0.5))
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{wanted}, but it raises {type(error).__name__}: {error}.") from error
    if _number(value) is None:
        raise ValueError(f"{wanted}, got {_shown(value)}.")


def check_list(name: str, value, wanted: str) -> None:
    """Several things in order: a list, a tuple or an array, and no text."""
    if not isinstance(value, Sequence | np.ndarray | jax.Array) or isinstance(value, str | bytes):
        raise ValueError(f"`{name}` must be a list of {wanted}, got {_shown(value)}.")


def check_path(name: str, value) -> None:
    check_kind(name, value, (str, os.PathLike), "a path, as text or a `pathlib.Path`")


def check_progress(progress, arguments: tuple[str, ...] = ("done", "total")) -> None:
    if progress is not None:
        check_callable("progress", progress, f"a function of ({', '.join(arguments)})")
        check_takes("progress", progress, arguments)


def check_interval(interval) -> tuple[float, float]:
    """`interval` as two floats; it must be bounded, its lower end first."""
    try:
        low, high = (float(end) for end in interval)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`interval` must be a pair of numbers, got {interval!r}.") from error
    if not -math.inf < low < high < math.inf:
        raise ValueError(
            f"`interval` must be bounded with its lower end first, got ({low}, {high})."
        )
    return low, high


def as_key(seed) -> Key:
    """A typed key from a whole number below 2^63, or the key itself."""
    if isinstance(seed, Integral) and not isinstance(seed, bool):
        if not -(2**63) <= int(seed) < 2**63:
            raise ValueError(
                f"`key` must be a whole number of at most 63 bits, got {seed}. Take it modulo "
                "2**63."
            )
        return jax.random.key(int(seed))
    dtype = getattr(seed, "dtype", None)
    if dtype is None or not jnp.issubdtype(dtype, jax.dtypes.prng_key):
        raise ValueError(
            f"`key` must be a whole number or a typed key, got {seed!r}. Use "
            "`jax.random.key(seed)`."
        )
    if seed.shape:
        raise ValueError(
            f"`key` must be one key, got an array of keys of shape {seed.shape}. Take one of them."
        )
    return seed


def check_same_length(**named: Sequence) -> None:
    lengths = {name: len(value) for name, value in named.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"`{name}` has {length}" for name, length in lengths.items())
        raise ValueError(f"lengths must agree, but {counts}.")


def listing(options: Iterable[str]) -> str:
    """'a', 'b' or 'c'."""
    quoted = [repr(option) for option in options]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " or " + quoted[-1]


def did_you_mean(value, options: Iterable[str]) -> str:
    """A trailing ' Did you mean ...?' where one of the options is close, else nothing."""
    close = difflib.get_close_matches(str(value), list(options), n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else ""


def _number(value) -> float | None:
    """The value as a float where it is one real number, else None. True and False are no
    numbers.
    """
    if value is None or isinstance(
        value, bool | np.bool_ | str | bytes | complex | np.complexfloating
    ):
        return None
    try:
        return None if np.ndim(value) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _shown(value) -> str:
    """The value in a sentence: numbers as they print, modules by their class, all else by `repr`,
    long ones cut.
    """
    if isinstance(value, eqx.Module):
        return type(value).__name__
    plain = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    text = str(value) if plain else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _sentence(text: str, remedy: str) -> str:
    return f"{text} {remedy}" if remedy else text
