"""The plane as a figure: maps of error and regime with their borders, and slices through the best
setting.
"""

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from ..figures import FigureSpec, Heatmap, HLine, Line, Mark, Panel, Points
from ..observables.regime import LAZY, RICH
from .measurements import TINY, error_surface, regime_surface, scores

if TYPE_CHECKING:
    from .phase import Phase

FINE = 41  # places along each side of a map (chosen)
BORDERS = (("lazy | between", LAZY, "dashed"), ("between | rich", RICH, "solid"))


def figure(plane: "Phase") -> FigureSpec:
    """Two maps over the plane, then the error along each axis through the best setting."""
    maps = [map_of(plane, "error"), map_of(plane, "regime")]
    slices = [_slice(plane, number) for number in (0, 1)]
    caption = (
        "Rings are the points that were run (mean over folds, corrected for the difficulty of each "
        "fold); the colour between them is the fitted surface. Small marks: settings that cannot "
        "be distinguished from the recommended one. "
        f"Regimes by the relative kernel change: lazy below {LAZY:g}, rich above {RICH:g}. "
        "Bands: 95 % of the surface, from the noise of comparisons between points on the same fold."
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


def map_of(plane: "Phase", what: str) -> Panel:
    """The map of the validation error (`what` = "error") or of the kernel change ("regime")."""
    x, y, grid = _fine(plane)
    measured, verdict = plane.measured, plane.answer
    changes = regime_surface(measured, grid).mean
    levels = measured.best_levels()
    if what == "error":
        smooth = np.exp(error_surface(measured, grid).mean)
        dots = np.where(levels >= 0, np.exp(scores(measured)[0]), np.nan)
        title, label = "Validation error", f"error ({plane.kind})"
    else:
        smooth = changes / np.log(10)
        means = _means(measured.at(measured.kernel_change, levels))
        dots = np.log10(np.maximum(means, TINY))
        title, label = "Kernel change", "log₁₀ ‖Θ − Θ₀‖ / ‖Θ₀‖"
    places = np.array(
        [[axis.values[i] for axis, i in zip(plane.axes, place)] for place in plane.places], float
    )
    reached = np.isfinite(dots)
    marks: list[Mark] = [
        Heatmap(x, y, smooth.reshape(FINE, FINE).T, label),
        Points(places[reached, 0], places[reached, 1], values=dots[reached], size=6),
    ]
    if not reached.all():
        marks.append(_points(places[~reached], "loss not reached", group="loss not reached"))
    marks += _contours(x, y, np.exp(changes).reshape(FINE, FINE))
    same = [i for i in verdict.same if i != verdict.best]
    if what == "error" and same:
        marks.append(_points(places[same], "not distinguishable from the best", size=3.5))
    marks.append(_points(places[[verdict.best]], "recommended", size=10))
    first, second = plane.axes
    return Panel(title, first.label, second.label, marks, first.scale, second.scale)


def _points(
    places: np.ndarray, label: str, size: float | int = 5.0, group: str | None = None
) -> Points:
    """At places (point, axis)."""
    return Points(places[:, 0], places[:, 1], label, size=size, group=group)


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
        for piece in map(np.asarray, generator.lines(border)):
            lines.append(Line(piece[:, 0], piece[:, 1], label, dash=dash, group=label))
    return lines


def _slice(plane: "Phase", number: int) -> Panel:
    """The surface of the validation error along one axis through the best setting, with its points;
    and the limits.
    """
    axis, other = plane.axes[number], plane.axes[1 - number]
    measured = plane.measured
    home = plane.places[plane.answer.best][1 - number]
    along = np.full((FINE, 2), other.unit[home])
    along[:, number] = np.linspace(0, 1, FINE)
    smooth = error_surface(measured, along)
    low, mean, high = (np.exp(smooth.mean + k * smooth.deviation) for k in (-1.96, 0.0, 1.96))
    errors = np.where(measured.best_levels() >= 0, np.exp(scores(measured)[0]), np.nan)
    here = [
        i for i, p in enumerate(plane.places) if p[1 - number] == home and np.isfinite(errors[i])
    ]
    x = [axis.values[plane.places[i][number]] for i in here]
    marks = [
        Line(_fine(plane)[number], mean, "surface", low=low, high=high, group="surface"),
        Points(x, errors[here], "runs", group="runs"),
        HLine(_validation(plane.lazy), plane.limit),
    ]
    if plane.rich is not None and np.isfinite(plane.rich["validation"]).any():
        marks.append(HLine(_validation(plane.rich), plane.rich_limit))
    title = f"At {other.name} = {other.values[home]:g}"
    return Panel(title, axis.label, f"validation error ({plane.kind})", marks, axis.scale)


def _validation(limit: xr.Dataset) -> float:
    """A limit's validation error at each fold's best level, over the folds that are there."""
    errors = limit["validation"].values
    return float(errors[np.isfinite(errors).any(axis=1)].min(axis=1).mean())
