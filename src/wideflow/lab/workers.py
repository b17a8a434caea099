"""The processes behind the tabs: one a tab, taken from a spare that has compiled every scene
already.
"""

import contextlib
import multiprocessing
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from .messages import Job, Order, State
from .worker import work

MOST_TABS = 12  # each has a process of its own, with its compiled programs in memory (chosen)
# A process in which JAX computes must not be forked. On Linux one that has imported everything and
# computed nothing is: a tab's process then starts at once, where importing takes two seconds of a
# core. Elsewhere each starts from nothing.
if sys.platform == "linux":
    CONTEXT = multiprocessing.get_context("forkserver")
    CONTEXT.set_forkserver_preload(["wideflow.lab.rehearsal"])
else:
    CONTEXT = multiprocessing.get_context("spawn")


class Worker:
    """A process that computes jobs. What it says goes to `hear`, called from a thread of its own
    with the job's number.

    It is started in that thread, for the first one waits until everything is imported; jobs wait in
    the pipe.
    """

    def __init__(self, compiled: str | None, rehearsed: Sequence[str] | None = None):
        self.pipe, theirs = CONTEXT.Pipe()
        self.process = CONTEXT.Process(target=work, args=(theirs, compiled, rehearsed), daemon=True)
        self.hear: Callable[[int, Any], None] | None = None
        self.number = 0
        self.started, self.over = threading.Event(), threading.Event()
        threading.Thread(target=self._run, args=(theirs,), daemon=True).start()

    @property
    def alive(self) -> bool:
        """Whether it computes, or will as soon as it has started."""
        return not self.started.is_set() or self.process.is_alive()

    def begin(self, job: Job, hear: Callable[[int, Any], None]) -> None:
        """Hands over a job, in place of the one before; `hear` gets every message, and a
        `State("failed", ...)` if the process dies.
        """
        self.hear, self.number = hear, job.number
        with contextlib.suppress(OSError):  # it has just died; `_run` tells
            self.pipe.send(job)
        if self.over.is_set():  # it was dead already, and nobody listened
            self._tell_end()

    def order(self, word: str, value: Any = None) -> None:
        with contextlib.suppress(OSError):
            self.pipe.send(Order(word, value))

    def _run(self, theirs: Connection) -> None:
        with contextlib.suppress(OSError, EOFError):  # no process: the pipe's end says so below
            self.process.start()
        self.started.set()
        theirs.close()
        with contextlib.suppress(EOFError, OSError):
            while True:
                number, message = self.pipe.recv()
                if self.hear is not None:
                    self.hear(number, message)
        self.over.set()
        self._tell_end()

    def _tell_end(self) -> None:
        if self.hear is not None:
            ended = State("failed", "The process of this run has ended. Start again.")
            self.hear(self.number, ended)

    def end(self) -> None:
        """Ends the process and everything it holds."""
        self.hear = None
        self.started.wait()
        if self.process.pid is not None:
            # not asked to end: it may be deep in a compilation, and nothing of it is to be saved
            self.process.kill()
            self.process.join(5.0)  # takes the dead process off the system's table
        self.pipe.close()


class Workers:
    """Gives out processes, and ends them all when the server ends.

    Args:
        compiled: folder in which compiled programs are kept.
        rehearsed: names of the tours that a spare rehearses beside free play; None is all of them.
    """

    def __init__(self, compiled: str | None = None, rehearsed: Sequence[str] | None = None):
        self.compiled, self.rehearsed, self.lock = compiled, rehearsed, threading.Lock()
        self.spare: Worker | None = None
        self.in_use: set[Worker] = set()
        self.ended = False

    def warm(self) -> None:
        """Starts the spare if there is none."""
        with self.lock:
            if self.ended:
                return
            if self.spare is None or not self.spare.alive:
                self.spare = Worker(self.compiled, self.rehearsed)

    def take(self) -> Worker:
        """The spare; whoever takes it asks for another one by `warm` when its own first picture is
        there.

        Raises:
            ValueError: too many tabs are open.
        """
        if len(self.in_use) >= MOST_TABS:
            raise ValueError(f"{MOST_TABS} runs are open in other tabs. Close one.")
        self.warm()
        with self.lock:
            assert self.spare is not None
            worker, self.spare = self.spare, None
            self.in_use.add(worker)
        return worker

    def give_back(self, worker: Worker) -> None:
        with self.lock:
            self.in_use.discard(worker)
        worker.end()

    def end(self) -> None:
        with self.lock:
            every = [*self.in_use, *([self.spare] if self.spare else [])]
            self.in_use, self.spare, self.ended = set(), None, True
        for worker in every:
            worker.end()
