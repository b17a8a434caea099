"""The runs of a sweep: expanded, checked, addressed, grouped by shape; and what the store has of
them.
"""

import dataclasses
import itertools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..json_encoding import encode
from ..provenance import sources
from ..records import Damage, DamagedRecordError, check_whole
from ..runner import settings_of
from ..store import Store, address
from .lines import Path
from .reservations import Reservations
from .spec import SweepSpec
from .troubles import Troubles


@dataclass(frozen=True)
class PlannedRun:
    """One run: where it stands on the axes, with what, and the address under which the store keeps
    it.

    Runs of one `group` differ in seed and in real numbers alone, so that one compiled program
    serves them all.
    """

    position: tuple[int, ...]
    settings: Mapping[str, Any]
    seed: int
    address: str
    group: str


@dataclass(frozen=True)
class Plan:
    """All runs of a sweep, in the order of its axes, the seeds last."""

    spec: SweepSpec
    runs: tuple[PlannedRun, ...]

    @property
    def by_address(self) -> dict[str, PlannedRun]:
        """Each different run once: two points of the axes may ask for the same one."""
        return {run.address: run for run in self.runs}

    @property
    def groups(self) -> dict[str, list[PlannedRun]]:
        groups: dict[str, list[PlannedRun]] = {}
        for run in self.by_address.values():
            groups.setdefault(run.group, []).append(run)
        return groups

    def file_name(self, run: PlannedRun) -> str:
        return f"{self.spec.experiment.name}-{self.spec.size}-{run.address}.nc"

    def describe(self, run: PlannedRun) -> str:
        """The run in words: its values along the axes."""
        names = [name for axis in self.spec.axes for name in axis.fields]
        return " ".join(
            [*(f"{name}={short(run.settings[name])}" for name in names), f"seed={run.seed}"]
        )

    told = describe  # its name before 0.2.0


@dataclass(frozen=True)
class Survey:
    """What the store holds of a plan: addresses by what became of them."""

    done: frozenset[str]
    running: frozenset[str]
    failed: Mapping[str, str]
    unfinished: frozenset[str]
    damaged: tuple[Damage, ...]
    outdated: frozenset[str] = frozenset()  # done by other sources of wideflow than the present


def expand(spec: SweepSpec) -> Plan:
    """Every run of the sweep; a combination that is wrong is named with its field, value and
    line.
    """
    runs = []
    for position in itertools.product(*(range(len(axis.points)) for axis in spec.axes)):
        overrides = dict(spec.fixed)
        paths: dict[str, Path] = {name: ("set", name) for name in spec.fixed}
        for axis, i in zip(spec.axes, position, strict=True):
            overrides.update(axis.points[i])
            paths.update(axis.paths[i])
        try:
            values = dataclasses.asdict(settings_of(spec.experiment, spec.size, overrides))
        except ValueError as error:
            named = [name for name in re.findall(r"`(\w+)`", str(error)) if name in paths]
            path = paths[named[0]] if named else next(iter(paths.values()), ())
            raise spec.source.error(path, str(error)) from error
        group = encode(
            {name: value for name, value in values.items() if not isinstance(value, float)}
        )
        for k, seed in enumerate(spec.seeds):
            where = address(spec.experiment.name, values, seed)
            runs.append(PlannedRun((*position, k), values, seed, where, group))
    return Plan(spec, tuple(runs))


def survey(plan: Plan, store: Store) -> Survey:
    """Looks through the folder once; damaged files count as missing and are named."""
    there = {entry.name for entry in os.scandir(store.folder)} if store.folder.is_dir() else set()
    reservations, troubles = Reservations(store.folder), Troubles(store.folder)
    waiting = troubles.all() if troubles.folder.is_dir() else {}
    done, running, unfinished, outdated, damaged = set(), set(), set(), set(), []
    present = sources().encode()
    for where, run in plan.by_address.items():
        path = store.folder / plan.file_name(run)
        if path.name in there:
            try:
                payload, _ = check_whole(path)
            except (DamagedRecordError, OSError) as error:
                damaged.append(Damage(path, str(error)))
            else:
                done.add(where)
                # twelve digits of a hash stand in a file for nothing else
                if present not in payload:
                    outdated.add(where)
                continue
        if "reservations" in there and reservations.held(where):
            running.add(where)
    if "checkpoints" in there:
        unfinished = {path.name for path in store.unfinished()} & plan.by_address.keys()
    failed = {
        where: sentence
        for where, sentence in waiting.items()
        if where in plan.by_address and where not in done
    }
    return Survey(
        frozenset(done),
        frozenset(running),
        failed,
        frozenset(unfinished - done),
        tuple(damaged),
        frozenset(outdated),
    )


def short(value: Any) -> str:
    """A setting as a label."""
    if isinstance(value, list | tuple):
        return ",".join(map(short, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
