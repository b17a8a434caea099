"""The process of one run: computes, shows figures on the way, listens to orders; ended by its parent."""

import contextlib
import os
import signal
import threading
import time
from multiprocessing.connection import Connection

from .messages import Event, Figure, Job, Order, Progress, State

MOST_FIGURES = 8.0  # a second
MOST_PROGRESS = 5.0


def work(pipe: Connection, compiled: str | None) -> None:
    """Waits for a `Job`, runs it, and stays to hand out its files until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    with contextlib.suppress(OSError):
        os.nice(5)  # the page comes first
    import jax

    if compiled:
        jax.config.update("jax_compilation_cache_dir", compiled)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
    from . import runner as performing

    try:
        pipe.send(State("ready"))
        job = pipe.recv()
        performing.perform(job, Show(pipe, job))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the tab is gone
    os._exit(0)  # threads that still judge theorems are not waited for


class Show:
    """Speaks to the parent: a watcher of `train` that draws, paces, pauses, and hands out files."""

    def __init__(self, pipe: Connection, job: Job):
        self.pipe, self.pace = pipe, job.pace
        self.lock = threading.Lock()
        self.awaited = self.paused = False
        self.drawn = self.told = self.recorded = 0.0
        self.take = lambda kind: None  # what makes the files; set by whoever runs the job

    def send(self, message) -> None:
        with self.lock:
            self.pipe.send(message)

    def progress(self, done: float, total: float, what: str) -> None:
        now = time.monotonic()
        if now - self.told > 1 / MOST_PROGRESS or done >= total:
            self.told = now
            self.send(Progress(done / total if total else 0.0, what))

    def listen(self, wait: float | None = 0.0) -> None:
        """Carries out the orders that have come; waits for `wait` seconds for one, None for ever."""
        while self.pipe.poll(wait):
            order: Order = self.pipe.recv()
            match order.word:
                case "pause" | "resume":
                    self.paused = order.word == "pause"
                    self.send(State("paused" if self.paused else "running"))
                case "seen":
                    self.awaited = False
                case "pace":
                    self.pace = order.value
                case "take":
                    self.send(self.take(order.value))
            if wait is None:
                return
            wait = 0.0

    def figure(self, make, final: bool = False) -> None:
        """Shows `make()` unless the last figure is too young or has not arrived; the final one waits for that."""
        ends = time.monotonic() + 10.0
        while final and self.awaited and time.monotonic() < ends:
            self.listen(0.2)
        now = time.monotonic()
        if final or (not self.awaited and now - self.drawn > 1 / MOST_FIGURES):
            self.drawn, self.awaited = now, True
            self.send(make())

    def after_record(self) -> None:
        """Keeps the pace and the pauses between two records."""
        self.listen()
        ready = self.recorded + self.pace
        while (left := ready - time.monotonic()) > 0:
            self.listen(left)
            ready = self.recorded + self.pace
        while self.paused:
            self.listen(None)
        self.recorded = time.monotonic()

    def event(self, step: int, at: float, sentence: str) -> None:
        self.send(Event(step, at, sentence))


__all__ = ["Figure", "Show", "work"]
