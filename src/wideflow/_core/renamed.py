"""Keyword arguments that had another name in version 0.1: the old names go on working until version
0.3.
"""

import functools
from collections.abc import Callable


def renamed(**names: str) -> Callable[[Callable], Callable]:
    """A decorator: `@renamed(old="new")` passes an argument given under its old name on under the
    new one.

    >>> @renamed(deviation="weight_std")
    ... def spread(weight_std=1.0):
    ...     return 2 * weight_std
    >>> spread(deviation=3.0)
    6.0
    """

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **under_new_names(kwargs, names))

        return wrapper

    return decorate


def under_new_names(kwargs: dict, names: dict[str, str]) -> dict:
    """Keyword arguments with every old name replaced; an argument given under both names is
    refused.
    """
    for old, new in names.items():
        if old in kwargs and new in kwargs:
            raise ValueError(f"`{old}` is the old name of `{new}`; give `{new}` alone.")
    return {names.get(name, name): value for name, value in kwargs.items()}
