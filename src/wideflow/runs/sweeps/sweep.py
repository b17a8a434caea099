"""`sweep`: all runs of a description, from the store or computed now, as one table."""

import contextlib
import pathlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import xarray as xr

from ..._core.errors import check_path, check_progress
from ...training.session import Progress, silent
from ..store import Store
from .cluster import Engine, EngineError, connected
from .collect import collect
from .engine import Dispatch
from .plan import Plan, PlannedRun, Survey, expand, survey
from .security import check_security
from .spec import read_spec
from .worker import Outcome

OUTDATED = "found, from a different version of the code"


@dataclass(frozen=True)
class Swept:
    """What became of a sweep.

    Attributes:
        plan: its runs.
        found: addresses that were in the store before.
        outcomes: by address, what became of every other run; without an entry it was not reached.
        before: the store as it was.
        replaced: worker processes that died and were replaced.
        stopped: why the engine could not go on, or nothing.
    """

    plan: Plan
    store: Store
    found: frozenset[str]
    outcomes: Mapping[str, Outcome]
    before: Survey
    replaced: int = 0
    stopped: str = ""

    @property
    def table(self) -> xr.Dataset:
        """Everything that is there, with the axes as dimensions."""
        return collect(self.plan, self.store)

    @property
    def computed(self) -> int:
        return sum(outcome.kind == "done" for outcome in self.outcomes.values())

    @property
    def missing(self) -> list[PlannedRun]:
        """The runs that have no result."""
        there = self.found | {
            a for a, outcome in self.outcomes.items() if outcome.kind in ("done", "found")
        }
        return [run for address, run in self.plan.by_address.items() if address not in there]

    @property
    def troubles(self) -> list[tuple[str, str, str]]:
        """(what, which run or file, why) of all that the user should know."""
        rows = [
            ("damaged, run again", damage.path.name, damage.reason)
            for damage in self.before.damaged
        ]
        if self.before.outdated:
            rows.append(
                (
                    OUTDATED,
                    f"{len(self.before.outdated)} of {len(self.plan.by_address)} runs",
                    "wideflow's sources have changed since they were computed, so their numbers "
                    "may be out of date; to compute them again give another folder `out`, or "
                    "delete their files",
                )
            )
        for address, run in self.plan.by_address.items():
            outcome = self.outcomes.get(address)
            if outcome is not None and outcome.sentence:
                rows.append(
                    (
                        "failed" if outcome.kind == "failed" else "warning",
                        self.plan.describe(run),
                        outcome.sentence,
                    )
                )
        return rows


def sweep(
    spec: str | pathlib.Path | Mapping[str, Any],
    out: str | pathlib.Path = "runs/sweeps",
    *,
    workers: int | None = None,
    threads: int = 1,
    scheduler: str | None = None,
    security: str | pathlib.Path | None = None,
    progress: Progress = silent,
    only: Iterable[PlannedRun] | None = None,
    plan: Plan | None = None,
    engine: Engine | None = None,
) -> Swept:
    """Performs every run of `spec` that is not in the folder `out` yet.

    Args:
        spec: a YAML file, or the same as a dictionary; `wideflow.runs.sweeps.spec` describes it. In
            a dictionary `experiment` may be a Python function:
            `wf.sweep({"experiment": final_loss, "grid": {"width": [64, 256]}, "seeds": 5})`.
        out: the folder for runs; a second sweep, or `wideflow run --out`, finds them there.
        workers: number of processes of the embedded cluster; default one per GPU, else one per
            core.
        threads: number of threads for XLA and BLAS in each worker. Results may depend on it in the
            last bit, but never on `workers`.
        scheduler: address of a running Dask scheduler, instead of the embedded cluster.
        security: folder with the certificate and key of that scheduler (see
            `wideflow.runs.sweeps.security`). The embedded cluster creates its own.
        progress: called with (done, total, what).
        only: a selection of the missing runs; the others are left for later.
        plan: the plan of `spec`, if it has already been made.
        engine: machines that are running and are kept for further sweeps; `workers`, `threads`,
            `scheduler` and `security` are then ignored.

    Returns:
        A `Swept`. A run that raises is an outcome, not an exception; if the engine is lost,
            `stopped` says why.
    """
    for name, value in {"workers": workers, "threads": threads}.items():
        if value is not None and not (type(value) is int and value >= 1):
            raise ValueError(f"`{name}` must be a whole number of at least 1, got {value!r}.")
    if engine is None:
        check_security(scheduler, security)
    check_path("out", out)
    check_progress(progress, ("done", "total", "what"))
    plan = plan or expand(read_spec(spec))
    store = Store(out, small=True)
    before = survey(plan, store)
    missing = [run for address, run in plan.by_address.items() if address not in before.done]
    if only is not None:
        addresses = {run.address for run in only}
        missing = [run for run in missing if run.address in addresses]
    outcomes: dict[str, Outcome] = {}
    if not missing:
        return Swept(plan, store, before.done, outcomes, before)
    store.check_writable()
    stopped, replaced = "", 0
    try:
        there = connected(scheduler, workers, threads, security)
        with there if engine is None else contextlib.nullcontext(engine) as engine:
            progress(
                0,
                len(missing),
                f"dashboard {engine.dashboard}" if engine.dashboard else "starting workers",
            )
            Dispatch(engine, plan, store, progress, outcomes).perform(missing)
            replaced = engine.crew.replaced if engine.crew else 0
    except EngineError as error:
        stopped = str(error)
    return Swept(plan, store, before.done, outcomes, before, replaced, stopped)
