"""How far a computation is and how long it will take, and progress as plain lines for logs."""

import time
from collections import deque
from typing import TextIO

from .._core.compile_time import working_time

WINDOW = (
    60.0  # seconds of work from which the rate is read (chosen); older work may have been slower
)
ENOUGH = 2.0  # seconds that must lie between two marks before their rate says anything (chosen)
# share of the whole below which a rate says nothing (chosen): a flow's first steps are its smallest
LEAST = 1e-3


class TimeLeft:
    """The time that the rest will take, from the rate at which work has been done of late.

    What passes before the first piece of work is done counts for nothing, and times are those of a
    clock that stands still during compilation (`working_time`). Marks are (time, share done); the
    rate is that between the newest mark and the oldest within `WINDOW`.
    """

    def __init__(self):
        self._marks: deque[tuple[float, float]] = deque()

    def mark(self, now: float, share: float) -> None:
        """Notes that the `share` of the whole, between 0 and 1, is done at time `now` (seconds)."""
        if share <= 0:
            return
        if self._marks and share < self._marks[-1][1]:  # another count begins
            self._marks.clear()
        if not self._marks or share > self._marks[-1][1]:
            self._marks.append((now, share))
        # the oldest mark goes once the one after it is already a window away
        while len(self._marks) > 2 and now - self._marks[1][0] > WINDOW:
            self._marks.popleft()

    @property
    def rate(self) -> float | None:
        """The share of the whole done in a second, or None as long as it is not known."""
        if len(self._marks) < 2:
            return None
        (began, first), (last, share) = self._marks[0], self._marks[-1]
        reliable = last - began >= ENOUGH and share >= LEAST
        return (share - first) / (last - began) if reliable else None

    def seconds(self, now: float) -> float | None:
        """The seconds that are left at time `now`, or None as long as no rate is known."""
        if self.rate is None:
            return None
        last, share = self._marks[-1]
        return max(0.0, (1 - share) / self.rate - (now - last))


class PrintedProgress:
    """Prints how far a computation is, at most every `every` seconds, with the time left once a
    rate is known.
    """

    def __init__(self, stream: TextIO, every: float = 10.0):
        self.stream, self.every = stream, every
        self._began = self._last = time.monotonic()
        working_time()  # from here on it counts compilations
        self._left = TimeLeft()

    def __call__(self, done: float, total: float, what: str) -> None:
        now, worked = time.monotonic(), working_time()
        share = done / total if total else 0.0
        self._left.mark(worked, share)
        if now - self._last < self.every:
            return
        self._last = now
        seconds = self._left.seconds(worked)
        left = "" if seconds is None else f", {duration(seconds)} left"
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
