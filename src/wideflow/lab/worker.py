"""The process behind a tab: computes one job after the other, shows figures on the way, listens to
orders; ended by its parent.
"""

import contextlib
import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection

from .messages import Event, Job, Order, Progress, State, Taken

MOST_FIGURES = 8.0  # per second (chosen): more are not seen as motion, and cost the browser time
MOST_PROGRESS = 5.0  # reports per second (chosen)
REFRESH = 0.1  # seconds between two looks at what a held run waits for (chosen)


def work(pipe: Connection, compiled: str | None, rehearsed: Sequence[str] | None = None) -> None:
    """Compiles what tabs begin with, then computes every `Job` that comes until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    with contextlib.suppress(OSError):
        os.nice(5)  # the page comes first
    gc.freeze()  # what was imported stays, in memory that all tabs share
    import jax

    if compiled:
        # a page needs some two hundred small programs: all of them are kept, not only those that
        # take long
        jax.config.update("jax_compilation_cache_dir", compiled)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    from . import rehearsal, runner

    lock, present = threading.Lock(), []
    main = threading.get_ident()

    def heed(
        *_, **__
    ) -> None:  # after every compilation: a tab does not wait for those of a run that it has left
        if present and threading.get_ident() == main:
            present[-1].listen()

    def show(job: Job, mute: bool = False) -> Show:
        present[:] = [Show(pipe, job, lock, mute)]
        return present[-1]

    jax.monitoring.register_event_duration_secs_listener(heed)
    try:
        job = rehearsal.rehearse(show, rehearsed)
        while True:
            job = runner.perform(job, show(job))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the tab is gone
    os._exit(0)  # threads that still judge theorems are not waited for


class NextJob(BaseException):
    """Another job has come; no handler of errors inside an experiment may swallow it."""

    def __init__(self, job: Job):
        self.job = job


class Rehearsed(BaseException):
    """Everything that a job needs is compiled, and nobody has asked for it."""


class Show:
    """Speaks to the parent for one job: draws, paces, holds, pauses, and hands out files.

    While it is `mute` the job is a rehearsal, and nobody listens. A tab that asks for the same job
    takes it over as it stands.
    """

    def __init__(self, pipe: Connection, job: Job, lock: threading.Lock, mute: bool = False):
        self.pipe, self.job, self.lock, self.mute = pipe, job, lock, mute
        self.pace, self.held, self.number = job.pace, job.held, job.number
        self.awaited, self.paused, self.ready = False, False, False
        self.drawn = self.reported = self.recorded = 0.0
        self.last = None  # the figure that was drawn last
        self.take: Callable[[str], Taken | None] = lambda kind: (
            None
        )  # what makes the files; set by whoever runs the job

    def send(self, message) -> None:
        if not self.mute:
            with self.lock:
                self.pipe.send((self.number, message))

    def take_over(self, job: Job) -> None:
        """The rehearsal becomes the run of a tab: what was drawn is sent."""
        self.mute, self.number, self.pace, self.held = False, job.number, job.pace, job.held
        if self.last is not None:
            self.awaited = True
            self.send(self.last)
        if self.ready:
            self.send(State("ready"))

    def progress(self, done: float, total: float, what: str) -> None:
        self.listen()
        now = time.monotonic()
        if now - self.reported > 1 / MOST_PROGRESS or done >= total:
            self.reported = now
            self.send(Progress(done / total if total else 0.0, what))

    def listen(self, wait: float | None = 0.0) -> None:
        """Carries out the orders that have come; waits for `wait` seconds for one, None for ever.

        Raises:
            NextJob: the tab asks for another run.
        """
        while self.pipe.poll(wait):
            order: Order | Job = self.pipe.recv()
            if isinstance(order, Job):
                # A rehearsal that still holds at its first record is that run already, bit for bit
                if not (self.mute and self.held and order.same_run(self.job)):
                    raise NextJob(order)
                self.take_over(order)
                continue
            match order.word:
                case "pause" | "resume":
                    self.paused = order.word == "pause"
                    self.send(State("paused" if self.paused else "running"))
                case "go":
                    self.held = False
                case "seen":
                    self.awaited = False
                case "pace":
                    self.pace = order.value
                case "take":
                    self.send(self.take(order.value))
            if wait is None:
                return
            wait = 0.0

    def hold(self, refresh: Callable[[], bool] = lambda: False) -> None:
        """Waits for "go" where the job is held; files are handed out and other jobs heard of
        meanwhile.

        Args:
            refresh: shows what has come since; True while more is to come.

        Raises:
            Rehearsed: the job was for practice, and nobody has taken it over.
        """
        if not self.held:
            return
        self.ready = True
        self.send(State("ready"))
        while self.held:
            more = refresh()
            if self.mute and not more and not self.job.stays:
                raise Rehearsed
            if self.held:  # a compilation in `refresh` listens too, and may have heard the "go"
                self.listen(REFRESH if more else None)
        self.send(State("running"))

    def figure(self, make, final: bool = False) -> None:
        """Shows `make()` unless the last figure is too young or has not arrived; the final one
        waits for that.
        """
        ends = time.monotonic() + 10.0  # seconds (chosen); a page that is gone never answers
        while final and self.awaited and time.monotonic() < ends:
            self.listen(0.2)
        now = time.monotonic()
        if final or (not self.awaited and now - self.drawn > 1 / MOST_FIGURES):
            self.drawn, self.awaited, self.last = now, not self.mute, make()
            self.send(self.last)

    def after_record(self) -> None:
        """Keeps the pace and the pauses between two records."""
        self.listen()
        ready = self.recorded + self.pace
        while (seconds := ready - time.monotonic()) > 0:
            self.listen(seconds)
            ready = self.recorded + self.pace
        while self.paused:
            self.listen(None)
        self.recorded = time.monotonic()

    def event(self, step: int, at: float, sentence: str) -> None:
        self.send(Event(step, at, sentence))
