"""How long a sweep will take, from runs that are there or from two that are made to find out."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..records import DamagedRecordError, read_record
from ..store import Store
from .plan import Plan, PlannedRun, Survey

SAMPLE = 20  # records that are read to learn the pace (chosen); all of a large sweep take long


@dataclass(frozen=True)
class Estimate:
    """Seconds of one worker for all that is missing, and from how many finished runs they were
    learnt.
    """

    seconds: float
    learnt_from: int


def work_of(settings: Mapping[str, Any]) -> float:
    """How much a run is compared with another: the product of its whole numbers (width, steps,
    samples, ...).
    """
    counts = [value for value in settings.values() if type(value) is int and value > 0]
    lists = [
        sum(value)
        for value in settings.values()
        if isinstance(value, tuple) and value and all(type(v) is int for v in value)
    ]
    return float(math.prod(counts) * math.prod(total for total in lists if total > 0))


def calibration(plan: Plan, missing: Iterable[PlannedRun]) -> list[PlannedRun]:
    """The runs to make first: two of the cheapest group, one with and one without its
    compilation.
    """
    groups: dict[str, list[PlannedRun]] = {}
    for run in missing:
        groups.setdefault(run.group, []).append(run)
    return min(groups.values(), key=lambda runs: work_of(runs[0].settings))[:2] if groups else []


def estimate(
    plan: Plan, store: Store, survey: Survey, read: Callable = read_record
) -> Estimate | None:
    """Each missing run takes what finished ones took, in proportion to its work; every group
    compiles once.
    """
    done = [run for run in plan.by_address.values() if run.address in survey.done]
    missing = [run for run in plan.by_address.values() if run.address not in survey.done]
    times: dict[str, list[float]] = {}
    step = max(1, len(done) // SAMPLE)
    for run in done[::step]:
        try:
            seconds = read(store.folder / plan.file_name(run)).seconds
        except (DamagedRecordError, OSError):
            continue
        times.setdefault(run.group, []).append(seconds)
    if not times:
        return None
    works = {run.group: work_of(run.settings) for run in plan.by_address.values()}
    # The fastest run of a group found its program compiled, the slowest may have compiled it.
    steady = {group: min(group_times) for group, group_times in times.items()}
    compiling = max(max(group_times) - min(group_times) for group_times in times.values())
    pace = sum(steady.values()) / sum(works[group] for group in steady)
    each = [steady.get(run.group, pace * works[run.group]) for run in missing]
    new = {run.group for run in missing} - steady.keys()
    return Estimate(sum(each) + compiling * len(new), sum(map(len, times.values())))
