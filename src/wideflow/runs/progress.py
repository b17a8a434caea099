"""Progress as plain lines, for logs and for machines without a terminal."""

import time
from typing import TextIO


class PrintedProgress:
    """Prints how far a computation is, at most every `every` seconds, with the time left."""

    def __init__(self, stream: TextIO, every: float = 10.0):
        self.stream, self.every = stream, every
        self._began = self._last = time.monotonic()

    def __call__(self, done: float, total: float, what: str) -> None:
        now = time.monotonic()
        if now - self._last < self.every:
            return
        self._last = now
        share = done / total if total else 0.0
        left = f", {duration((now - self._began) * (1 - share) / share)} left" if share > 0 else ""
        print(
            f"{100 * share:5.1f} % after {duration(now - self._began)}{left}: {what}",
            file=self.stream,
            flush=True,
        )


def duration(seconds: float) -> str:
    """'0.8 s', '42 s', '3 min 05 s', '2 h 07 min'."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
