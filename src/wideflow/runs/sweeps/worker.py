"""What runs in a worker: chunks of runs, each saved the moment it is finished; and the worker
process itself.

    python -m wideflow.runs.sweeps.worker tls://127.0.0.1:8786

is a worker of the embedded cluster: it ends with the process that started it.
"""

import asyncio
import dataclasses
import gc
import os
import pathlib
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._core.status import Status
from ...experiments import registry
from ...experiments.base import Experiment
from ...experiments.of_function import experiment_of
from ..records import DamagedRecordError, check_whole
from ..runner import compute
from ..store import Store, address
from .reservations import Reservations
from .troubles import Troubles

GOOD = {status.sentence for status in Status if status.good} | {"finished"}


@dataclass(frozen=True)
class Task:
    """A run as it travels to a worker."""

    address: str
    file_name: str
    settings: Mapping[str, Any]
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    `kind` is "done" (computed now), "found" (it was there), "busy" (somebody else is at work on it)
    or "failed"; `sentence` says what the user should know: why it failed, or that a finished run
    diverged.
    """

    address: str
    kind: str
    sentence: str = ""
    seconds: float = 0.0


def work(
    folder: str, experiment: str | Callable, size: str, tasks: Sequence[Task]
) -> tuple[str, list[Outcome]]:
    """Performs the tasks one after the other with one compiled program; tells who did it.

    Runs of equal shape are not fused into one: a fused program may differ in the last bit from the
    run alone.
    """
    store = Store(folder, small=True)
    target = experiment_of(experiment) if callable(experiment) else registry.experiment(experiment)
    return _my_address(), [_one(store, target, size, task) for task in tasks]


def _one(store: Store, experiment: Experiment, size: str, task: Task) -> Outcome:
    troubles = Troubles(store.folder)
    try:
        with Reservations(store.folder).take(task.address) as ours:
            if not ours:
                return Outcome(task.address, "busy")
            if is_there(store.folder / task.file_name):  # checked while nobody else can write it
                return Outcome(task.address, "found")
            settings = type(experiment.settings[size])(**task.settings)
            if address(experiment.name, dataclasses.asdict(settings), task.seed) != task.address:
                raise ValueError(
                    f"the worker's code of `experiment` is another than yours ({experiment.name} "
                    "there). A worker imports modules from their files: pass what you changed in "
                    "one as a setting, or start the workers anew."
                )
            record = compute(experiment, store, settings, size=size, seed=task.seed)
    except Exception as error:  # whatever it is, the other runs go on
        text = " ".join(str(error).split()) or "no message"
        sentence = text if isinstance(error, ValueError) else f"{type(error).__name__}: {text}"
        troubles.note(task.address, sentence)
        return Outcome(task.address, "failed", sentence)
    troubles.clear(task.address)
    remark = "" if set(record.status.split("; ")) <= GOOD else record.status
    return Outcome(task.address, "done", remark, record.seconds)


def is_there(path: pathlib.Path) -> bool:
    try:
        check_whole(path)
    except (DamagedRecordError, OSError):
        return False
    return True


def _my_address() -> str:
    from distributed import get_worker

    try:
        return get_worker().address
    except ValueError:  # called outside the engine
        return ""


async def _serve(address: str) -> None:
    from distributed import Worker

    from .security import security_of

    folder = os.environ.get("WIDEFLOW_CERTIFICATES")
    async with Worker(
        address,
        nthreads=1,
        memory_limit=0,
        dashboard=False,
        local_directory=os.environ["WIDEFLOW_SCRATCH"],
        security=None if folder is None else security_of(folder),
    ) as worker:
        await worker.finished()


def _end_with_parent() -> None:
    """The parent holds the other end of stdin and never writes: end of file means that it is
    gone.
    """
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    gc.freeze()  # what was imported stays, and need not be looked through for garbage
    threading.Thread(target=_end_with_parent, daemon=True).start()
    asyncio.run(_serve(sys.argv[1]))
