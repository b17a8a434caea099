"""The engine's machines: an embedded Dask cluster sized to this one, or a scheduler that is already
running.
"""

import contextlib
import logging
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import dask.config
from distributed import Client, LocalCluster

from ..._core.foreign import untyped
from ..._core.precision import jax_flag
from .security import security_of, write_certificates

ATTEMPTS = 10  # deaths of workers that a chunk may see before it is sent run by run (chosen)
REACH = 10.0  # seconds in which a scheduler must answer (chosen)
LOST = "the connection to the scheduler was lost."
QUIET_WORKER = {  # Dask's own clocks, which cost a small run more than its saving does
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "500ms",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "2s",
}
SHORT_LIFE = 5.0  # seconds (chosen): a worker that dies sooner has never worked


class EngineError(RuntimeError):
    """The engine cannot go on; what is in the store is kept."""


def thread_environment(threads: int) -> dict[str, str]:
    """Variables that hold XLA and BLAS to so many threads.

    The number is the same however many workers there are: sums are then cut in the same way, and
    results are the same.
    """
    flags = (
        f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'} "
        f"intra_op_parallelism_threads={threads}"
    )
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")
    return {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()} | dict.fromkeys(
        names, str(threads)
    )


def own_threads() -> str:
    """How many threads XLA was given in this process, as its environment says; "" where it takes
    one a core.
    """
    return os.environ.get("NPROC", "")


def warn_of_threads(workers: Mapping[str, str], threads: int) -> None:
    """Warns where workers of somebody's own cluster cut their sums otherwise than the embedded ones
    would.

    The same program on the same data differs in the last bit between one thread and two, from sizes
    on at which XLA shares a product among its threads: a run that such a worker repeats after a
    kill is then not the undisturbed one bit for bit.
    """
    others = sorted(name for name, count in workers.items() if count != str(threads))
    if others and not gpus():
        warnings.warn(
            f"{len(others)} of {len(workers)} workers have no XLA of {threads} threads "
            f"({others[0]} is the first): "
            "results may differ in the last bit from those of other workers. Start them with "
            f"NPROC={threads} and the other variables of "
            f"`wideflow.runs.sweeps.cluster.thread_environment({threads})`.",
            stacklevel=2,
        )


def gpus() -> tuple[str, ...]:
    """The GPUs that workers may use, without waking them in this process."""
    if os.environ.get("JAX_PLATFORMS", "").startswith("cpu"):
        return ()
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return tuple(part for part in visible.split(",") if part and part != "-1")
    if shutil.which("nvidia-smi") is None:
        return ()
    listed = subprocess.run(
        ["nvidia-smi", "--list-gpus"], capture_output=True, text=True, timeout=30
    )
    return tuple(
        str(i) for i, line in enumerate(listed.stdout.splitlines()) if line.startswith("GPU")
    )


def device_environment(number: int, workers: int, devices: tuple[str, ...]) -> dict[str, str]:
    """Pins worker `number` to one GPU; where several share one, each gets its part of the
    memory.
    """
    if not devices:
        return {}
    pinned = {"CUDA_VISIBLE_DEVICES": devices[number % len(devices)]}
    sharing = -(-workers // len(devices))
    if sharing > 1:
        # a tenth is left for the contexts of the processes, which XLA does not count (chosen)
        pinned["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{0.9 / sharing:.3f}"
    return pinned


def default_workers(threads: int) -> int:
    """One worker a GPU, else as many as the cores allow."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return len(gpus()) or max(1, cores // threads)


@contextlib.contextmanager
def connected(
    scheduler: str | None,
    workers: int | None,
    threads: int,
    security: str | os.PathLike | None = None,
) -> Iterator["Engine"]:
    """A client of the scheduler at that address, with the certificates in the folder `security` if
    given, or of an embedded cluster.
    """
    with _quiet():
        if scheduler is None:
            yield from _embedded(workers or default_workers(threads), threads)
            return
        try:
            known: dict[str, Any] = {} if security is None else {"security": security_of(security)}
            client = Client(scheduler, timeout=REACH, **known)
        except (OSError, ValueError, TimeoutError) as error:
            raise EngineError(f"there is no Dask scheduler at {scheduler}: {error}") from error
        with client:
            warn_of_threads(untyped(client.run)(own_threads), threads)
            yield Engine(client, None)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Dask's own log is silenced: the sweep itself reports lost workers and schedulers."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    handlers = {handler for name in names for handler in logging.getLogger(name).handlers}
    levels = {handler: handler.level for handler in handlers}
    for handler in handlers:
        handler.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for handler, level in levels.items():
            handler.setLevel(level)


def _embedded(workers: int, threads: int) -> Iterator["Engine"]:
    settings = {
        "distributed.scheduler.allowed-failures": ATTEMPTS,
        "distributed.comm.timeouts.connect": "60s",  # on a busy machine workers start slowly
        "distributed.worker.daemon": False,
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.interval": "500ms",
        "distributed.admin.system-monitor.interval": "2s",
    }
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(settings))
        scratch = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="wideflow-sweep-", ignore_cleanup_errors=True)
        )
        certificates = write_certificates(pathlib.Path(scratch) / "certificates")
        cluster = LocalCluster(
            n_workers=0,
            processes=True,
            protocol="tls://",
            security=security_of(certificates),
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )
        stack.enter_context(cluster)
        client = stack.enter_context(Client(cluster))
        crew = Crew(
            cluster.scheduler_address, workers, threads, pathlib.Path(scratch), certificates
        )
        stack.callback(crew.dismiss)
        crew.hire()
        yield Engine(client, crew)


@contextlib.contextmanager
def _lost_is_an_engine_error() -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError) as error:
        raise EngineError(LOST) from error


@dataclass
class Engine:
    """A client, and the workers that it looks after where they are its own."""

    client: Client
    crew: "Crew | None"
    _seen: tuple[float, frozenset[str]] = (-1.0, frozenset())

    @property
    def dashboard(self) -> str:
        return self.client.dashboard_link or ""

    def workers(self) -> frozenset[str]:
        """The addresses of all workers, looked up at most twice a second."""
        now = time.monotonic()
        if now - self._seen[0] > 0.5 and self.client.status == "running":
            with _lost_is_an_engine_error():
                self._seen = now, frozenset(untyped(self.client.nthreads)())
        return self._seen[1]

    def at_work(self) -> frozenset[str]:
        """The keys of all tasks that some worker has."""
        with _lost_is_an_engine_error():
            processing = untyped(self.client.processing)()
            return frozenset(key for keys in processing.values() for key in keys)

    def size(self) -> int:
        """How many workers there are."""
        return len(self.workers())

    def check(self) -> None:
        """Raises where nothing can be expected any more."""
        if self.client.status != "running":
            raise EngineError(LOST)
        if self.crew is not None and self.crew.trouble:
            raise EngineError(self.crew.trouble)


@dataclass
class Crew:
    """Worker processes; one that dies is replaced."""

    address: str
    workers: int
    threads: int
    scratch: pathlib.Path
    certificates: pathlib.Path | None = (
        None  # the folder that lets a worker in; None for a scheduler without TLS
    )
    trouble: str = ""
    replaced: int = 0
    processes: list[subprocess.Popen] = field(default_factory=list)

    def hire(self) -> None:
        self._over = threading.Event()
        self._born = [0.0] * self.workers
        self._short = 0
        self._devices = gpus()
        self.processes = [self._start(i) for i in range(self.workers)]
        self._watch = threading.Thread(target=self._replace_the_dead, daemon=True, name="crew")
        self._watch.start()

    def dismiss(self) -> None:
        self._over.set()
        self._watch.join()
        for process in self.processes:
            process.kill()  # every finished run is on disk
        for process in self.processes:
            process.wait()
            if process.stdin:
                process.stdin.close()

    def _environment(self, number: int) -> Mapping[str, str]:
        cache = jax_flag("jax_compilation_cache_dir")
        cache_setting = {"JAX_COMPILATION_CACHE_DIR": str(cache)} if cache else {}
        return {
            **os.environ,
            **cache_setting,
            **thread_environment(self.threads),
            **device_environment(number, self.workers, self._devices),
            "WIDEFLOW_SCRATCH": str(self.scratch),
            **QUIET_WORKER,
            **(
                {}
                if self.certificates is None
                else {"WIDEFLOW_CERTIFICATES": str(self.certificates)}
            ),
        }

    def _start(self, number: int) -> subprocess.Popen:
        self._born[number] = time.monotonic()
        with open(self.scratch / f"worker-{number}.log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.worker", self.address],
                stdin=subprocess.PIPE,  # closed by the system when this process ends: so does it
                stdout=log,
                stderr=log,
                env=self._environment(number),
            )

    def _replace_the_dead(self) -> None:
        while not self._over.wait(0.1):
            for number, process in enumerate(self.processes):
                if process.poll() is None:
                    continue
                # A negative code is a signal from outside, such as `kill -9`, and says nothing
                # against the next worker. Two rounds of workers that exit at once say that none
                # will ever start.
                by_itself = (
                    process.returncode > 0 and time.monotonic() - self._born[number] < SHORT_LIFE
                )
                self._short = self._short + 1 if by_itself else 0
                if self._short > 2 * self.workers:
                    self.trouble = f"workers do not start: {self._last_words(number)}"
                    return
                self.replaced += 1
                self.processes[number] = self._start(number)

    def _last_words(self, number: int) -> str:
        lines = (
            (self.scratch / f"worker-{number}.log").read_text(errors="replace").strip().splitlines()
        )
        return lines[-1] if lines else "they print nothing."
