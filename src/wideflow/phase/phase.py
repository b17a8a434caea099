"""`phase`: which regime is best on these data, as a plane of runs refined where it matters."""

import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import xarray as xr

from .._core.errors import check_count, check_kind, check_path, check_positive, check_progress
from ..data.dataset import Dataset
from ..figures import FigureSpec
from ..training.session import Progress, silent
from .answer import Answer, answer
from .axes import QUANTITIES, Axis, plane_of
from .errors_of_predictions import two_classes
from .lazy_end import lazy_errors
from .measurements import Measurements, measurements_of
from .network import Network, Training
from .point import phase_point
from .refinement import RunAt, closing_round, closing_runs, first_round, next_round
from .rich_end import check_particles, rich_errors, rich_points
from .sentence import sentence
from .splits import split_rows
from .tables import save_table

if TYPE_CHECKING:
    from ..runs.sweeps.sweep import Swept
    from .estimator import PhaseRegressor

BATCH = 8  # runs of a later round (chosen): few, to learn from them; enough for some workers
OF_VARIANCE, OF_ROWS = "share of the variance", "share of the rows"


@dataclass(frozen=True, eq=False)
class Phase:
    """A plane of runs and what it says. `print` shows the sentence.

    Attributes:
        name: of the data.
        axes: the two axes with their lattices.
        places: of the points, numbers of the axes' values.
        settings: what all runs share.
        table: every run, with dimensions point, fold and level; NaN where a level was not reached.
        lazy: errors of the lazy limit, with dimensions fold and level.
        rich: the same of the mean-field limit at the largest richness; None without `particles`.
        measured: the same as plain arrays.
        answer: the recommendation with its statistics.
        kind: what an error is a share of.
        folds: $K$ of the split.
        stopped: why refinement ended.
        done: of every run, in the table's order, its place and its fold.
    """

    name: str
    axes: tuple[Axis, Axis]
    places: list[tuple[int, int]]
    settings: Mapping[str, Any]
    table: xr.Dataset
    lazy: xr.Dataset
    rich: xr.Dataset | None
    measured: Measurements
    answer: Answer
    kind: str
    folds: int
    stopped: str
    done: list[tuple[tuple[int, int], int]]

    @property
    def runs(self) -> int:
        """How many runs the plane rests on."""
        return int(self.measured.runs.sum())

    @property
    def recommended(self) -> dict[str, Any]:
        """The settings of the recommended network, ready for `PhaseRegressor`."""
        settings = {f.name: self.settings[f.name] for f in (*fields(Network), *fields(Training))}
        for axis in self.axes:
            settings |= axis.setting(self.answer.setting[axis.name])
        del settings["levels"]
        return settings | {"loss": self.answer.level}

    @property
    def sentence(self) -> str:
        settings = {n: self.settings[n] for n in ("width", "activation", "samples")}
        settings = {n: v for n, v in settings.items() if n not in {a.name for a in self.axes}}
        settings["samples"] = int(self.table["train_rows"].max())
        return sentence(
            self.name, self.axes, self.answer, settings, self.kind, self.limit, self.rich_limit
        )

    @property
    def limit(self) -> str:
        """What the lazy limit beside the plane is: that of its own networks, or of one hidden layer
        where they are deep.
        """
        deep = self.settings["depth"] or "depth" in {axis.name for axis in self.axes}
        return f"kernel regression ({'one hidden layer' if deep else 'the lazy limit'})"

    @property
    def rich_limit(self) -> str:
        """What the mean-field limit beside the plane is; empty without one."""
        if self.rich is None:
            return ""
        return (
            f"mean field at richness {self.rich.attrs['richness']:g} "
            f"({self.rich.attrs['particles']} particles)"
        )

    def __str__(self) -> str:
        return self.sentence

    def figure(self) -> FigureSpec:
        """Maps of error and regime, and slices through the best."""
        from .figure import figure

        return figure(self)

    def estimator(self, **changed) -> "PhaseRegressor":
        """A scikit-learn estimator with the recommended settings, ready to fit."""
        from .estimator import PhaseRegressor

        return PhaseRegressor(**self.recommended | changed)

    def write(self, folder: str | pathlib.Path) -> tuple[pathlib.Path, ...]:
        """`phase.html`, `.nc`, `.json`, `.png` and `.pdf` in `folder`."""
        from .report import write

        return write(self, pathlib.Path(folder))


def phase(
    data: Dataset,
    axes: Sequence[str] | Mapping[str, object] = ("richness", "width"),
    *,
    runs: int = 120,
    minutes: float | int | None = None,
    loss: float | int | Sequence[float] | None = None,
    samples: int = 400,
    folds: int = 5,
    particles: int = 0,
    seed: int = 0,
    out: str | pathlib.Path = "runs/phase",
    workers: int | None = None,
    threads: int = 1,
    scheduler: str | None = None,
    security: str | pathlib.Path | None = None,
    progress: Progress = silent,
    **settings,
) -> Phase:
    r"""Trains networks over a plane of two axes, refined where regime or error change, and
    recommends one.

    Every run is saved as soon as it is done: a second call, or one after an interruption, finds the
    finished runs in `out` and continues.

    Args:
        data: raw, with one real target per row; two different values are treated as classes.
            Columns are standardised on each fold's training rows, and a bias column is added.
        axes: two of richness, alpha, width, share, tail, weight_std, depth, rate; as a dictionary
            with ranges (low, high), (low, high, count) or lists of values.
        runs, minutes: the budget. The first round, half of `runs`, is never cut short; a later
            round is left out if it would end too late.
        loss: training loss (the remaining share of the variance, initially 1) to which networks are
            trained; several, in decreasing order, are compared by their validation error. Default
            thirteen, from 0.8 to 0.01.
        samples: maximum number of training rows per run.
        folds: number of folds, which is also the maximum number of runs per point.
        particles: number of particles for the mean-field limit at the rich end of a plane of
            richness and width, one run per fold in addition to the budget; 0 omits it. Kernel
            regression, the limit at the lazy end, costs nothing and is always computed.
        seed: for folds and networks.
        out: folder for the runs.
        workers, threads, scheduler, security, progress: as in `wf.sweep`.
        settings: of all networks: width, richness, scaling ('mean-field', 'ntk', 'zipf'), share,
            tail, weight_std, depth, activation, rate, steps, dynamics ('descent' or 'flow'),
            precision.

    Returns:
        A `Phase`: `print` it, `.write(folder)`, `.estimator().fit(X, y)`.
    """
    pair = plane_of(axes)
    shared = _shared(pair, settings, loss)
    _check(data, runs, minutes, samples, folds, seed)
    for name, value in (("workers", workers), ("threads", threads)):
        if value is not None:
            check_count(name, value)
    check_particles(particles, pair, shared)
    split_rows(seed, len(data), 0, folds, samples)  # refuses too few rows before anything runs
    check_path("out", out)
    check_progress(progress, ("done", "total", "what"))
    if scheduler is not None or security is not None:
        from ..runs.sweeps.security import check_security

        check_security(scheduler, security)
    folder = pathlib.Path(out)
    shared |= {"data": save_table(folder, data), "folds": folds, "samples": samples}
    search = _Search(pair, shared, folder, runs, minutes, folds, seed, progress)
    with _machines(scheduler, workers, threads, security) as engine:
        stopped = search.run(engine)
        rich = search.rich_end(particles, engine) if particles else None
    return search.result(data, stopped, rich)


def _check(data, runs, minutes, samples, folds, seed) -> None:
    check_kind(
        "data", data, Dataset, "a `Dataset`", "Arrays become one by `Dataset(inputs, targets)`."
    )
    if data.targets.ndim != 1:
        raise ValueError(
            f"`data` must have one target per row, got targets of shape {data.targets.shape}. Take "
            "one column, or two classes as two numbers."
        )
    check_count("runs", runs, least=16)
    if minutes is not None:
        check_positive("minutes", minutes)
    check_count("samples", samples, least=10)
    check_count("folds", folds, least=3)
    check_count("seed", seed, least=0)


def _shared(axes: tuple[Axis, Axis], settings: dict[str, Any], loss) -> dict[str, Any]:
    """What all runs have in common, checked and completed with the defaults."""
    possible = [f.name for f in (*fields(Network), *fields(Training)) if f.name != "levels"]
    names = {axis.name for axis in axes}
    for name in settings:
        if name not in possible:
            raise ValueError(
                f"`phase` has no setting {name!r}. It has {', '.join(possible)}, and as axes "
                f"{', '.join(QUANTITIES)}."
            )
        if name in names:
            raise ValueError(f"`{name}` is both an axis and a setting; keep one of them.")
    if names & {"share", "tail"}:
        settings = {"scaling": "zipf"} | settings
        if settings["scaling"] != "zipf":
            raise ValueError(
                f"`scaling` must be 'zipf' where {' and '.join(names & {'share', 'tail'})} vary, "
                f"got {settings['scaling']!r}."
            )
    if "rate" in names and settings.get("dynamics", "descent") != "descent":
        raise ValueError(
            "`dynamics` must be 'descent' if the rate varies, because a flow has none."
        )
    levels = (
        {} if loss is None else {"levels": tuple(loss) if isinstance(loss, Sequence) else (loss,)}
    )
    network = Network(**{n: v for n, v in settings.items() if n in Network.__dataclass_fields__})
    try:
        training = Training(
            **levels, **{n: v for n, v in settings.items() if n in Training.__dataclass_fields__}
        )
    except ValueError as error:
        raise ValueError(str(error).replace("`levels`", "`loss`")) from error
    return dataclasses.asdict(network) | dataclasses.asdict(training)


@contextlib.contextmanager
def _machines(scheduler, workers, threads, security):
    """The engine of all rounds, made when the first run is missing."""
    from ..runs.sweeps.cluster import connected

    with contextlib.ExitStack() as stack:
        cache: list = []

        def engine():
            if not cache:
                cache.append(stack.enter_context(connected(scheduler, workers, threads, security)))
            return cache[0]

        yield engine


class _Search:
    """The rounds of one plane."""

    def __init__(self, axes, shared, folder, runs, minutes, folds, seed, progress):
        self.axes, self.shared, self.folder = axes, shared, folder
        self.runs, self.minutes, self.folds = runs, minutes, folds
        self.seed, self.progress = seed, progress
        self.done: list[RunAt] = []
        self.began = time.monotonic()

    def run(self, engine) -> str:
        """All rounds; says why they ended."""
        reserve = min(closing_runs(self.folds), self.runs // 4)
        pending, closing, late = first_round(self.axes, self.runs), False, False
        while pending:
            began = time.monotonic()
            trouble = self._perform(pending, engine)
            self.done += pending
            if trouble:
                return trouble
            if closing:
                break
            pace = (time.monotonic() - began) / len(pending)
            measured, count = self._measured(), min(BATCH, self.runs - reserve - len(self.done))
            end = time.monotonic() - self.began + (count + reserve) * pace
            late = self.minutes is not None and end > 60 * self.minutes
            pending = []
            if count > 0 and not late:
                pending = next_round(self.axes, measured, self.done, count, self.folds, self.seed)
            if not pending:
                closing, rest = True, self.runs - len(self.done)
                rest = min(reserve, rest) if late else rest
                pending = closing_round(self._points, measured, self.done, rest, self.folds)
        return self._reason(late)

    def _reason(self, late: bool) -> str:
        if late:
            return f"the {self.minutes:g} minutes were used up"
        if len(self.done) == self.runs:
            return f"all {self.runs} runs were used"
        return f"nothing was left to run after {len(self.done)} of {self.runs} runs"

    def rich_end(self, particles: int, engine) -> xr.Dataset:
        """The mean-field limit on every fold that the plane has used."""
        from ..runs.sweeps.collect import collect

        points = rich_points(self.axes, sorted({fold for _, fold in self.done}), particles)
        plan = self._plan(points)
        self._sweep(plan, engine, "mean-field limit, ")
        table = collect(plan, self._store).isel(seed=0)
        return rich_errors(table, points, self.shared["levels"], self.folds)

    def _perform(self, pending: list[RunAt], engine) -> str:
        swept = self._sweep(self._plan(self._settings(pending)), engine)
        return swept.stopped or self._broken(swept)

    def _sweep(self, plan, engine, what: str = "") -> "Swept":
        from ..runs.sweeps.plan import survey
        from ..runs.sweeps.sweep import sweep

        before = len(self.done)
        missing = len(plan.by_address) - len(survey(plan, self._store).done)
        show = lambda done, _, state: self.progress(
            min(before + done, self.runs), self.runs, what + state
        )
        return sweep(
            {}, self.folder, plan=plan, progress=show, engine=engine() if missing else None
        )

    @property
    def _store(self):
        from ..runs.store import Store

        return Store(self.folder, small=True)

    def _broken(self, swept: "Swept") -> str:
        """A reason to stop: every run of a round failed."""
        failed = [o.sentence for o in swept.outcomes.values() if o.kind == "failed"]
        if failed and len(failed) == len(swept.plan.by_address):
            raise ValueError(f"no run of the plane finished: {failed[0]}")
        return ""

    def _settings(self, pending: list[RunAt]) -> list[dict[str, Any]]:
        """What each run has of its own: its fold and its values on the axes."""
        points = []
        for place, fold in pending:
            values: dict[str, Any] = {"fold": fold}
            for axis, number in zip(self.axes, place, strict=True):
                values |= axis.setting(axis.values[number])
            points.append(values)
        return points

    def _plan(self, points: list[dict[str, Any]]):
        from ..runs.sweeps.plan import expand
        from ..runs.sweeps.spec import read_spec

        varied = set().union(*points)
        fixed = {name: value for name, value in self.shared.items() if name not in varied}
        return expand(
            read_spec(
                {
                    "name": "phase",
                    "experiment": phase_point,
                    "set": fixed,
                    "list": points,
                    "seeds": [self.seed],
                }
            )
        )

    def _table(self) -> xr.Dataset:
        """All runs so far, as (run, level)."""
        from ..runs.sweeps.collect import collect

        return collect(self._plan(self._settings(self.done)), self._store).isel(seed=0)

    def _measured(self) -> Measurements:
        return self._arrays(self._table())

    @property
    def _points(self) -> list[tuple[int, int]]:
        return list(dict.fromkeys(place for place, _ in self.done))

    def _arrays(self, table: xr.Dataset) -> Measurements:
        return measurements_of(table, self.axes, self.done, self.shared["levels"], self.folds)[1]

    def result(self, data: Dataset, stopped: str, rich: xr.Dataset | None) -> Phase:
        table = self._table()
        measured = self._arrays(table)
        if not measured.runs.any():
            raise RuntimeError(f"no run of the plane finished: {stopped}")
        levels, key = self.shared["levels"], jax.random.key(self.seed)
        used = np.flatnonzero(measured.runs.any(axis=0))
        limits = [
            lazy_errors(
                data,
                key,
                int(fold),
                self.folds,
                self.shared["samples"],
                self.shared["activation"],
                levels,
                self.shared["weight_std"],
            )
            for fold in used
        ]
        lazy = {n: np.full((self.folds, len(levels)), np.nan) for n in ("validation", "test")}
        for name, values in lazy.items():
            values[:] = np.inf
            values[used] = [limit[name] for limit in limits]
        kind = OF_ROWS if two_classes(data.targets) else OF_VARIANCE
        points = self._points
        verdict = answer(self.axes, points, measured, lazy, self.folds, rich)
        return Phase(
            data.name,
            self.axes,
            points,
            self.shared,
            self._labelled(table, kind),
            xr.Dataset(
                {n: (("fold", "level"), v) for n, v in lazy.items()}, {"level": list(levels)}
            ),
            rich,
            measured,
            verdict,
            kind,
            self.folds,
            stopped,
            self.done,
        )

    def _labelled(self, table: xr.Dataset, kind: str) -> xr.Dataset:
        """The table with each run's values on the axes, and what an error is."""
        for number, axis in enumerate(self.axes):
            values = [axis.values[place[number]] for place, _ in self.done]
            table = table.assign_coords({axis.name: ("point", values, {"label": axis.label})})
        return table.rename(point="run").assign_attrs(error=kind)
