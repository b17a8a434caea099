"""Sends the missing runs of a plan to the workers and reports what became of each."""

import collections
import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import distributed
from distributed import Future, KilledWorker
from distributed.client import FutureCancelledError, FuturesCancelledError

from ..._core.counted import counted
from ..._core.foreign import untyped
from ..store import Store
from .cluster import LOST, Engine, EngineError
from .plan import Plan, PlannedRun
from .reservations import Reservations
from .worker import Outcome, Task, is_there, work

# seconds that a chunk of runs takes (chosen): long against what the engine spends on a chunk, short
# enough that workers end together and little is lost with one that dies
CHUNK_SECONDS = 1.5
MOST_IN_CHUNK = 64  # runs, whatever the pace says (chosen)
PATIENCE = 120.0  # seconds without any worker of our own before giving up (chosen)
# seconds for a result, which is small (chosen); it takes longer where its worker has just died
FETCH = 5.0

Tell = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Flight:
    """A chunk of runs under way; `worker` is the address that it was sent to, "" for whoever is
    free.
    """

    group: str
    chunk: list[PlannedRun]
    worker: str


@dataclass
class Dispatch:
    """One client's work on a plan. Runs of one group go to the same worker where they can."""

    engine: Engine
    plan: Plan
    store: Store
    tell: Tell
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def perform(self, missing: Iterable[PlannedRun]) -> dict[str, Outcome]:
        """Runs what is missing; ends when every run has an outcome."""
        self._waiting: dict[str, collections.deque[PlannedRun]] = {}
        for run in missing:
            self._queue(run)
        self._flying: dict[Future, Flight] = {}
        self._busy: dict[str, PlannedRun] = {}
        self._pace: dict[str, float] = {}
        self._total = sum(map(len, self._waiting.values()))
        self._saw_workers = time.monotonic()
        while self._waiting or self._flying or self._busy:
            self._tell()
            self.engine.check()
            self._fill()
            self._land()
            self._send_again()
            self._ask_for_the_busy()
        self._tell()
        return self.outcomes

    def _tell(self) -> None:
        others = f", {len(self._busy)} at work elsewhere" if self._busy else ""
        count = self.engine.size()
        bad = sum(outcome.kind == "failed" for outcome in self.outcomes.values())
        self.tell(
            len(self.outcomes),
            self._total,
            (counted(count, "worker") if count else "waiting for workers")
            + others
            + (f", {bad} failed" if bad else ""),
        )

    def _queue(self, run: PlannedRun, first: bool = False) -> None:
        queue = self._waiting.setdefault(run.group, collections.deque())
        queue.appendleft(run) if first else queue.append(run)

    def _fill(self) -> None:
        """Keeps two chunks a worker under way, so that none waits for the client.

        Somebody else's scheduler gets more, even where it has no worker yet: a cluster that grows
        with its work must see some. A queue of jobs may keep its workers back for hours, so that
        they are waited for.
        """
        workers = self.engine.size()
        if workers:
            self._saw_workers = time.monotonic()
        elif self.engine.crew and time.monotonic() - self._saw_workers > PATIENCE:
            raise EngineError(f"no worker has appeared for {PATIENCE:.0f} s.")
        most = 2 * workers if self.engine.crew else 4 * workers + 8
        while self._waiting and len(self._flying) < most:
            group = max(self._waiting, key=lambda name: len(self._waiting[name]))
            self._send(group)

    def _send(self, group: str, worker: str = "") -> None:
        """A chunk of the group to `worker`, or to whoever is free."""
        queue = self._waiting[group]
        remaining = sum(map(len, self._waiting.values()))
        share = -(-remaining // (2 * max(1, self.engine.size())))
        pace = self._pace.get(group)
        # The first chunk of a group is a single run: it compiles, and its time gives the pace. At
        # the end `share` spreads what remains over two chunks for every worker.
        count = (
            1
            if pace is None
            else max(1, min(int(CHUNK_SECONDS / max(pace, 1e-3)), MOST_IN_CHUNK, share))
        )
        chunk = [queue.popleft() for _ in range(min(count, len(queue)))]
        if not queue:
            del self._waiting[group]
        self._submit(Flight(group, chunk, worker))

    def _submit(self, flight: Flight) -> None:
        tasks = [
            Task(run.address, self.plan.file_name(run), run.settings, run.seed)
            for run in flight.chunk
        ]
        spec = self.plan.spec
        where = {"workers": [flight.worker], "allow_other_workers": True} if flight.worker else {}
        future = self.engine.client.submit(
            work,
            str(self.store.folder.resolve()),
            spec.function or spec.experiment.name,
            spec.size,
            tasks,
            pure=False,
            **where,
        )
        self._flying[future] = flight

    def _send_again(self) -> None:
        """Chunks that wait for a worker that has died go to whoever is free.

        Dask moves such a task by itself only where another worker is there at that moment. Where
        none is, the task waits for the old address for ever, `allow_other_workers` or not, for the
        replacement has a new one. A chunk is sent again once: after that Dask counts the deaths it
        sees.
        """
        there = self.engine.workers()
        orphans = {
            future: flight
            for future, flight in self._flying.items()
            if flight.worker and flight.worker not in there and not future.done()
        }
        at_work = self.engine.at_work() if orphans else frozenset()
        for future, flight in orphans.items():
            if future.key not in at_work:
                del self._flying[future]
                future.cancel()
                self._submit(dataclasses.replace(flight, worker=""))

    def _land(self) -> None:
        if not self._flying:
            time.sleep(0.2)
            return
        try:
            landed = self._landed()
        except (FutureCancelledError, FuturesCancelledError, OSError) as error:
            raise EngineError(LOST) from error
        for future, result, error in landed:
            flight = self._flying.pop(future)
            if error is not None:
                self._note_error(flight.chunk, error)
                continue
            worker, outcomes = result
            self._note(flight.group, flight.chunk, outcomes)
            if flight.group in self._waiting:  # its program is compiled there
                self._send(flight.group, worker)

    def _landed(self) -> list[tuple[Future, Any, BaseException | None]]:
        """The chunks that came back within half a second: each with its result or its error."""
        try:
            done = untyped(distributed.wait)(
                list(self._flying), timeout=0.5, return_when="FIRST_COMPLETED"
            ).done
        except TimeoutError:
            return []
        landed = []
        for future in done:
            if future.status == "error":
                landed.append((future, None, future.exception()))
                continue
            # a worker that dies with results takes them along: Dask then computes them again, or
            # cannot (see `_send_again`)
            with contextlib.suppress(TimeoutError):
                try:
                    landed.append((future, future.result(timeout=FETCH), None))
                except KilledWorker as error:
                    landed.append((future, None, error))
        return landed

    def _note(self, group: str, chunk: list[PlannedRun], outcomes: list[Outcome]) -> None:
        for run, outcome in zip(chunk, outcomes, strict=True):
            if outcome.kind == "busy":
                self._busy[run.address] = run
                continue
            if outcome.kind == "done":
                if (
                    not self.outcomes
                    and not (self.store.folder / self.plan.file_name(run)).is_file()
                ):
                    raise EngineError(
                        f"the workers wrote to a folder other than {self.store.folder}: it must be "
                        "on a file system that all of them share."
                    )
                # down at once, up by halves: the first run of a group compiles, and is no measure
                last = self._pace.get(group, outcome.seconds)
                self._pace[group] = min(outcome.seconds, 0.5 * (last + outcome.seconds))
            self.outcomes[run.address] = outcome

    def _note_error(self, chunk: list[PlannedRun], error: BaseException | None) -> None:
        """A chunk that many workers died with is sent again run by run; a single run is
        reported.
        """
        if not isinstance(error, KilledWorker):
            for run in chunk:
                self.outcomes[run.address] = Outcome(
                    run.address, "failed", f"the engine reports {type(error).__name__}: {error}"
                )
            return
        unfinished = [
            run for run in chunk if not is_there(self.store.folder / self.plan.file_name(run))
        ]
        for run in chunk:
            if run not in unfinished:
                self.outcomes[run.address] = Outcome(run.address, "done")
        if len(chunk) == 1 and unfinished:
            self.outcomes[unfinished[0].address] = Outcome(
                unfinished[0].address,
                "failed",
                "every worker that took it died, perhaps because it ran out of memory.",
            )
            return
        for run in reversed(unfinished):
            self._pace.pop(run.group, None)
            self._queue(run, first=True)

    def _ask_for_the_busy(self) -> None:
        """Runs that another client has taken: found when it is done, ours when it died."""
        reservations = Reservations(self.store.folder)
        for address, run in list(self._busy.items()):
            path: pathlib.Path = self.store.folder / self.plan.file_name(run)
            if reservations.held(address):
                continue
            del self._busy[address]
            if is_there(path):
                self.outcomes[address] = Outcome(address, "found")
            else:
                self._queue(run)
