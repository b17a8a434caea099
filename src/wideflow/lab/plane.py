"""A phase plane as a map to click on: the runs of each point as they were saved, and where the
point lies from lazy to rich.
"""

import functools
import pathlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from .._core.counted import counted
from ..experiments.base import SIZES, Experiment
from ..figures import FigureSpec, HLine, Line, Panel, Points
from ..observables.regime import LAZY, RICH

if TYPE_CHECKING:
    from ..phase.phase import Phase

NAME = "plane"
MAPS = {"regime": "Kernel change", "error": "Validation error"}
CHOSEN = "chosen point"
RUNS = ("kernel_change", "linearisation_gap", "validation", "test")


@dataclass(frozen=True)
class Settings:
    """`folder` is that of the plane, as the server knows it; `point` the number of one of its
    points.
    """

    folder: str = ""
    point: int = 0


def plane_at(folder: str | pathlib.Path) -> "Phase":
    """The plane in `folder`; a file that was written anew is read anew."""
    from ..phase.saved import FILE

    path = pathlib.Path(folder) / FILE
    return _read(str(folder), path.stat().st_mtime_ns if path.is_file() else 0)


@functools.lru_cache(maxsize=2)
def _read(folder: str, written: int) -> "Phase":
    from ..phase.saved import read_plane

    return read_plane(folder)


def nearest(plane: "Phase", x: float, y: float) -> int:
    """The number of the point closest to (x, y) on the map, in the axes' own scales."""
    positive = lambda axis, value: max(value, 1e-300) if axis.scale == "log" else value
    place = [axis.position(positive(axis, value)) for axis, value in zip(plane.axes, (x, y))]
    distances = np.linalg.norm(plane.measured.places - np.array(place), axis=1)
    return int(np.argmin(distances))


def values_of(plane: "Phase", point: int) -> dict[str, float | int]:
    """The point's values on both axes."""
    return {a.name: a.values[i] for a, i in zip(plane.axes, plane.places[point])}


def describe(plane: "Phase", point: int) -> str:
    """Such as "richness 0.1, width 64: lazy"."""
    where = ", ".join(f"{name} {value:.3g}" for name, value in values_of(plane, point).items())
    mark = " (recommended)" if point == plane.answer.best else ""
    return f"{where}: {plane.answer.regimes[point]}{mark}"


def python(plane: "Phase", point: int) -> str:
    """An estimator with the point's settings, as it is typed; it stops at the loss that was best
    there.
    """
    settings = dict(plane.recommended)
    for axis in plane.axes:
        settings |= axis.setting(values_of(plane, point)[axis.name])
    level = _best_level(plane, point)
    settings |= {} if level is None else {"loss": float(plane.measured.levels[level])}
    arguments = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    return (
        "from wideflow.phase.estimator import PhaseRegressor\n\nfitted = "
        f"PhaseRegressor({arguments}).fit(X, y)"
    )


def run(settings: Settings, key, session) -> xr.Dataset:
    """The saved runs of one point: no number is computed."""
    plane = plane_at(settings.folder)
    place = plane.places[settings.point]
    rows = [row for row, (at, _) in enumerate(plane.done) if at == place]
    table = plane.table.isel(run=rows)
    attributes = {"folder": settings.folder, "point": settings.point, "status": _status(table)}
    return table[[*RUNS, "time", "final_loss"]].assign_attrs(attributes)


def _status(table: xr.Dataset) -> str:
    """How its runs ended: each sentence once."""
    return "; ".join(dict.fromkeys(str(one) for one in table["run_status"].values))


def _best_level(plane: "Phase", point: int) -> int | None:
    level = int(plane.measured.best_levels()[point])
    return level if level >= 0 else None


def dial(table: xr.Dataset) -> dict[str, Any]:
    """The kernel change at the loss where the point's error is best, mean over its folds; it alone
    decides, as on the map.
    """
    plane, point = plane_at(table.attrs["folder"]), int(table.attrs["point"])
    level = _best_level(plane, point)
    numbers = {"kernel_change": float("nan"), "linearisation_gap": float("nan")}
    if level is not None:
        numbers = {name: float(table[name].isel(level=level).mean()) for name in numbers}
    return {
        **numbers,
        "richness": numbers["kernel_change"],
        "verdict": plane.answer.regimes[point],
        "lazy": LAZY,
        "rich": RICH,
    }


def live(table: xr.Dataset) -> FigureSpec:
    """Both maps with the chosen point, and its runs over the training loss."""
    plane, point = plane_at(table.attrs["folder"]), int(table.attrs["point"])
    maps = [_with_choice(plane, what, point) for what in MAPS]
    return FigureSpec(
        f"Phase plane of {plane.name}",
        [*maps, _errors(plane, table), _changes(plane, table)],
        columns=2,
        caption=f"{describe(plane, point).capitalize()}; {counted(table.sizes['run'], 'run')}, "
        f"saved in {pathlib.Path(table.attrs['folder']).name}. {plane.sentence}",
    )


def _with_choice(plane: "Phase", what: str, point: int) -> Panel:
    panel, (x, y) = _map(plane, what), values_of(plane, point).values()
    return replace(panel, marks=[*panel.marks, Points([x], [y], CHOSEN, size=14)])


@functools.lru_cache(maxsize=4)
def _map(plane: "Phase", what: str) -> Panel:
    """Fitting the surface takes a second; it is the same for every point."""
    from ..phase.figure import map_of

    return map_of(plane, what)


def _curves(plane: "Phase", table: xr.Dataset, name: str, label: str, dash: str) -> list[Line]:
    """A curve a fold over the training loss, without numbers where a fold has no run: so figures of
    all points have the same marks.
    """
    losses, folds = table["level"].values, table["fold"].values
    curves = []
    for fold in range(plane.folds):
        row = np.flatnonzero(folds == fold)
        heights = table[name].values[row[0]] if len(row) else np.full(len(losses), np.nan)
        curves.append(Line(losses, heights, label, dash=dash, group=label))
    return curves


def _errors(plane: "Phase", table: xr.Dataset) -> Panel:
    curves = [
        *_curves(plane, table, "validation", "validation rows", "solid"),
        *_curves(plane, table, "test", "fold held out", "dashed"),
    ]
    note = "one curve per fold; training proceeds to the left"
    return Panel(
        "Errors of this point",
        "training loss",
        f"error ({plane.kind})",
        curves,
        "log",
        "log",
        note=note,
    )


def _changes(plane: "Phase", table: xr.Dataset) -> Panel:
    marks = [
        *_curves(plane, table, "kernel_change", "kernel change", "solid"),
        *_curves(plane, table, "linearisation_gap", "linearisation gap", "dashed"),
        HLine(LAZY, "lazy below"),
        HLine(RICH, "rich above", "dotted"),
    ]
    return Panel("From lazy to rich", "training loss", "relative change", marks, "log", "log")


EXPERIMENT = Experiment(
    name="plane",
    paper="",
    title="A saved phase plane",
    figure="",
    settings=dict.fromkeys(SIZES, Settings()),
    run=run,
    draw=live,
    claims=lambda table: (),
)
