"""The seconds that this process has spent compiling, so that the time left of a computation never
comes from them.
"""

import functools
import threading
import time

import jax

COMPILATION = "/jax/core/compile/"  # tracing, lowering and compiling report under this name


MOST = 256  # intervals that a later one may still swallow


class Intervals:
    """The length of a union of intervals that come in the order of their ends; one that spans
    earlier ones swallows them.

    >>> union = Intervals()
    >>> union.add(1.0, 2.0), union.add(3.0, 4.0), union.add(0.0, 3.5)
    (None, None, None)
    >>> union.length
    4.0
    """

    def __init__(self):
        self.length = 0.0
        self._recent: list[tuple[float, float]] = []  # disjoint, in order
        self._lock = threading.Lock()

    def add(self, begin: float, end: float) -> None:
        with self._lock:
            while self._recent and self._recent[-1][1] >= begin:
                first, last = self._recent.pop()
                self.length -= last - first
                begin, end = min(begin, first), max(end, last)
            self._recent = [*self._recent[-MOST:], (begin, end)]
            self.length += end - begin


_spent = Intervals()


@functools.cache
def _listen() -> None:
    """From the first call on; JAX reports each compilation with its duration when it ends."""

    def heard(event: str, duration_secs: float, **_) -> None:
        if event.startswith(COMPILATION):
            now = time.monotonic()
            _spent.add(now - duration_secs, now)

    jax.monitoring.register_event_duration_secs_listener(heard)


def working_time() -> float:
    """Seconds of a clock that stands still while JAX compiles; only differences mean anything."""
    _listen()
    return time.monotonic() - _spent.length
