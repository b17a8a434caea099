"""What a run receives besides its inputs: the request for a flow, checkpoints, a callback for
records, and progress.

An experiment gets a `Session` and passes it to `train`. There is no global state: a session that is
not passed on has no effect.
"""

import dataclasses
import pathlib
from collections.abc import Callable
from dataclasses import dataclass, field

import xarray as xr

from .checkpoint import AbstractCheckpointer

OnRecord = Callable[[Callable[[], xr.Dataset]], None]
"""Called at every record with a function that builds the table so far. Waiting pauses the run,
raising ends it.
"""

Progress = Callable[[float | int, float | int, str], None]
"""Called with (done, total, what) where done and total share any unit."""


def silent(done: float | int, total: float | int, what: str) -> None:
    """A progress that shows nothing."""


@dataclass
class Counts:
    """What has happened in a session so far; shared by all sessions that come from one by a change
    of fields.
    """

    trainings: int = 0
    flows: int = 0  # descents that became flows


@dataclass(frozen=True)
class Session:
    """How runs are carried out, apart from what is computed.

    Attributes:
        flow: full-batch descent of rate eta for k steps becomes the gradient flow to time k eta,
            recorded at the same times.
        checkpointer: keeps checkpoints, so that a killed run goes on with the same numbers.
        on_record: shown the table at every record; see `OnRecord`.
        progress: see `Progress`; calling the session itself reports progress too.
        counts: trainings so far; shared by the sessions that `within` and `showing` derive from
            this one.
        folder: the folder of runs, where a run may find data that were put beside it.
    """

    flow: bool = False
    checkpointer: AbstractCheckpointer | None = None
    on_record: OnRecord | None = None
    progress: Progress = silent
    counts: Counts = field(default_factory=Counts)
    folder: pathlib.Path | None = None

    def __call__(self, done: float | int, total: float | int, what: str) -> None:
        self.progress(done, total, what)

    def within(
        self, start: float | int, total: float | int, what: str = "", weight: float | int = 1.0
    ) -> "Session":
        """The same session for a part of the work: its progress from 0 to 1 is shown as `start` to
        `start + weight` of `total`.
        """
        show = self.progress
        report = lambda done, whole, inner: show(
            start + weight * done / whole, total, what or inner
        )
        return dataclasses.replace(self, progress=report)

    def showing(self, finished: Callable[[xr.Dataset], xr.Dataset]) -> "Session":
        """The same session, whose `on_record` receives `finished(table)` in place of every
        table.
        """
        if self.on_record is None:
            return self
        show = self.on_record
        return dataclasses.replace(self, on_record=lambda so_far: show(lambda: finished(so_far())))

    def descending(self) -> "Session":
        """The same session without the wish for a flow: for trainings that only measure something
        of the one that flows.
        """
        return dataclasses.replace(self, flow=False)
