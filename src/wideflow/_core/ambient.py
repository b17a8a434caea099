"""What everything inside a block of code sees without being handed it."""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import TypeVar

Value = TypeVar("Value")


@contextlib.contextmanager
def holding(variable: contextvars.ContextVar, value: Value) -> Iterator[Value]:
    """`variable` has that value inside the block, and afterwards the one it had."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)
