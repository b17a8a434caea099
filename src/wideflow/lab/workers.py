"""The processes behind the tabs: one a run, taken from a spare that is kept warm."""

import contextlib
import multiprocessing
import threading
from collections.abc import Callable
from typing import Any

from .messages import Job, Order, State
from .worker import work

MOST_RUNS = 12
WARM_AFTER = 3.0  # seconds
SPAWN = multiprocessing.get_context("spawn")  # JAX must not be forked


class Worker:
    """A process that waits for a job. What it says goes to `hear`, called from a thread of its own."""

    def __init__(self, compiled: str | None):
        self.pipe, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=work, args=(theirs, compiled), daemon=True)
        self.process.start()
        theirs.close()
        self.hear: Callable[[Any], None] | None = None
        self.listening: threading.Thread | None = None

    def begin(self, job: Job, hear: Callable[[Any], None]) -> None:
        """Hands over the job; `hear` gets every message, and a `State("failed", ...)` if the process dies."""
        self.hear = hear
        self.pipe.send(job)
        self.listening = threading.Thread(target=self._listen, daemon=True)
        self.listening.start()

    def order(self, word: str, value: Any = None) -> None:
        with contextlib.suppress(OSError):  # it has just died; `_listen` tells
            self.pipe.send(Order(word, value))

    def _listen(self) -> None:
        assert self.hear is not None
        while True:
            try:
                message = self.pipe.recv()
            except (EOFError, OSError):
                if self.hear is not None:
                    self.hear(State("failed", "The process of this run has ended. Start again."))
                return
            if self.hear is not None and message != State("ready"):
                self.hear(message)

    def end(self) -> None:
        """Ends the process and everything it holds."""
        self.hear = None
        self.process.kill()
        self.process.join(5.0)
        self.pipe.close()


class Workers:
    """Gives out warm processes, and ends them all when the server ends."""

    def __init__(self, compiled: str | None = None):
        self.compiled, self.lock = compiled, threading.Lock()
        self.spare: Worker | None = None
        self.given: set[Worker] = set()
        self.ended = False

    def warm(self) -> None:
        """Starts the spare if there is none."""
        with self.lock:
            if self.ended:
                return
            if self.spare is None or not self.spare.process.is_alive():
                self.spare = Worker(self.compiled)

    def take(self) -> Worker:
        """The warm process; another one is started in its place a little later.

        Raises:
            ValueError: too many runs are under way.
        """
        if len(self.given) >= MOST_RUNS:
            raise ValueError(f"{MOST_RUNS} runs are under way in other tabs. Reset or close one.")
        self.warm()
        with self.lock:
            assert self.spare is not None
            worker, self.spare = self.spare, None
            self.given.add(worker)
        later = threading.Timer(WARM_AFTER, self.warm)  # the run that begins now goes before
        later.daemon = True
        later.start()
        return worker

    def give_back(self, worker: Worker) -> None:
        with self.lock:
            self.given.discard(worker)
        worker.end()

    def end(self) -> None:
        with self.lock:
            every = [*self.given, *([self.spare] if self.spare else [])]
            self.given, self.spare, self.ended = set(), None, True
        for worker in every:
            worker.end()
