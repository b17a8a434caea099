"""The plane as a figure: maps of error and regime with their borders, and slices through the best setting."""

from typing import TYPE_CHECKING

import numpy as np

from ..figures import FigureSpec, Heatmap, HLine, Line, Panel, Points
from ..observables.regime import LAZY, RICH
from .comparisons import interval
from .measurements import TINY, error_surface, regime_surface

if TYPE_CHECKING:
    from .phase import Phase

FINE = 41  # places a side of a map
BORDERS = (("lazy | between", LAZY, "dashed"), ("between | rich", RICH, "solid"))


def figure(plane: "Phase") -> FigureSpec:
    """Two maps over the plane, then the error along each axis through the best setting."""
    maps = [_map(plane, "error"), _map(plane, "regime")]
    slices = [_slice(plane, number) for number in (0, 1)]
    caption = (
        f"Dots are runs (mean over folds); the colour between them is the surface they give. Star: recommended; rings: settings that cannot be told from it. "
        f"Regimes by the relative kernel change: lazy below {LAZY:g}, rich above {RICH:g}. Bands: 95 % over folds."
    )
    return FigureSpec(f"Phase plane of {plane.name}", [*maps, *slices], columns=2, caption=caption)


def _fine(plane: "Phase") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values along both axes, and the places between them on the unit square."""
    unit = np.linspace(0, 1, FINE)
    values = []
    for axis in plane.axes:
        ends = np.asarray([axis.values[0], axis.values[-1]], float)
        values.append(
            np.exp(np.interp(unit, [0, 1], np.log(ends)))
            if axis.scale == "log"
            else np.interp(unit, [0, 1], ends)
        )
    grid = np.stack(np.meshgrid(unit, unit, indexing="ij"), axis=-1).reshape(-1, 2)
    return values[0], values[1], grid


def _map(plane: "Phase", what: str) -> Panel:
    x, y, grid = _fine(plane)
    measured, verdict = plane.measured, plane.answer
    changes = regime_surface(measured, grid).mean
    levels = measured.best_levels()
    if what == "error":
        smooth = np.exp(error_surface(measured, grid).mean)
        dots = _means(measured.at(measured.validation, levels))
        title, label = "Validation error", plane.kind
    else:
        smooth = changes / np.log(10)
        means = _means(measured.at(measured.kernel_change, levels))
        dots = np.log10(np.maximum(means, TINY))
        title, label = "Kernel change", "log₁₀ ‖Θ − Θ₀‖ / ‖Θ₀‖"
    places = np.array(
        [[axis.values[i] for axis, i in zip(plane.axes, place)] for place in plane.places], float
    )
    known = np.isfinite(dots)
    marks = [
        Heatmap(x, y, smooth.reshape(FINE, FINE).T, label),
        Points(places[known, 0], places[known, 1], values=dots[known], size=6),
    ]
    if not known.all():
        marks.append(Points(*places[~known].T, "loss not reached", group="loss not reached"))
    marks += _contours(x, y, np.exp(changes).reshape(FINE, FINE))
    same = [i for i in verdict.same if i != verdict.best]
    if what == "error" and same:
        marks.append(Points(*places[same].T, "not told from the best", size=3.5))
    marks.append(Points(*places[[verdict.best]].T, "recommended", size=10))
    first, second = plane.axes
    return Panel(title, first.label, second.label, marks, first.scale, second.scale)


def _means(values: np.ndarray) -> np.ndarray:
    """Over the folds that are there; NaN for points without any."""
    there = np.isfinite(values)
    total = np.where(there, values, 0.0).sum(axis=1)
    return np.where(there.any(axis=1), total / np.maximum(there.sum(axis=1), 1), np.nan)


def _contours(x: np.ndarray, y: np.ndarray, changes: np.ndarray) -> list[Line]:
    """Where the kernel change (x, y) crosses the regimes' borders."""
    from contourpy import contour_generator

    lines = []
    generator = contour_generator(x, y, changes.T)
    for label, border, dash in BORDERS:
        for piece in generator.lines(border):
            lines.append(Line(piece[:, 0], piece[:, 1], label, dash=dash, group=label))
    return lines


def _slice(plane: "Phase", number: int) -> Panel:
    """Test error along one axis, at each value the point nearest to the best on the other."""
    axis, other = plane.axes[number], plane.axes[1 - number]
    measured, verdict = plane.measured, plane.answer
    home = plane.places[verdict.best][1 - number]
    tests = measured.at(measured.test, measured.best_levels())
    rows = []
    for value in sorted({place[number] for place in plane.places}):
        here = [i for i, p in enumerate(plane.places) if p[number] == value and np.isfinite(tests[i]).any()]
        if here:
            nearest = min(here, key=lambda i: abs(plane.places[i][1 - number] - home))
            if plane.places[nearest][1 - number] == home:
                one = interval(tests[nearest], plane.folds)
                rows.append((axis.values[value], one.mean, one.half if np.isfinite(one.half) else 0.0))
    x, mean, half = np.array(rows).T
    low = np.maximum(mean - half, 0.0)
    marks = [
        Line(x, mean, "test error", low=low, high=mean + half, group="test error"),
        Points(x, mean, "test error", group="test error"),
        HLine(verdict.lazy_limit.mean, "kernel regression (lazy limit)"),
    ]
    title = f"At {other.name} = {other.values[home]:g}"
    return Panel(title, axis.label, plane.kind, marks, axis.scale)
