"""The runs of a plane as arrays, and what is chosen from them.

Shapes are (point, level, fold). A level that a run did not reach has error infinity: it cannot be
chosen. A run that is missing is NaN.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from .axes import Axis
from .surface import Surface, surface

TINY = 1e-6  # errors are compared by their logarithm; a perfect prediction counts as this


@dataclass(frozen=True)
class Measurements:
    """Of the points visited so far.

    Attributes:
        places: (point, 2) on the unit square.
        levels: of the training loss.
        validation, test: errors.
        kernel_change: at every level.
    """

    places: np.ndarray
    levels: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    kernel_change: np.ndarray

    @property
    def runs(self) -> np.ndarray:
        """(point, fold): which runs are there."""
        return ~np.all(np.isnan(self.validation), axis=1)

    @property
    def reached(self) -> np.ndarray:
        """(point, level): whether every run of the point reached the level."""
        missing = ~self.runs[:, None, :]
        return np.all(np.isfinite(self.validation) | missing, axis=2)

    def best_levels(self) -> np.ndarray:
        """For every point the level of least mean validation error among those that all of its runs
        reached; -1 where there is none.
        """
        mean = np.where(self.reached, _mean(self.validation), np.inf)
        return np.where(np.isfinite(mean.min(axis=1)), np.argmin(mean, axis=1), -1)

    def at(self, values: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """`values` (point, level, fold) at one level a point, NaN where there is none: (point,
        fold).
        """
        index = np.maximum(levels, 0)[:, None, None]
        at_levels = np.take_along_axis(values, index, axis=1)[:, 0]
        return np.where((levels[:, None] < 0) | ~self.runs, np.nan, at_levels)


def measurements_of(
    table: xr.Dataset,
    axes: tuple[Axis, Axis],
    done: list[tuple[tuple[int, int], int]],
    levels: Sequence[float],
    folds: int,
) -> tuple[list[tuple[int, int]], Measurements]:
    """The points, in the order in which they were first asked for, and what their runs measured.

    Args:
        table: one row a run, with `run_status` and the measured values at every level.
        done: of each row its place, numbers of the axes' values, and its fold.
    """
    points = list(dict.fromkeys(place for place, _ in done))
    shape = (len(points), len(levels), folds)
    arrays = {n: np.full(shape, np.nan) for n in ("validation", "test", "kernel_change")}
    for row, (place, fold) in enumerate(done):
        if str(table["run_status"].values[row]) == "missing":
            continue
        at = (points.index(place), slice(None), fold)
        for name, array in arrays.items():
            values = table[name].sel(level=list(levels)).values[row]
            array[at] = np.where(np.isfinite(values), values, np.inf)  # not reached
    unit = np.array([[a.unit[i] for a, i in zip(axes, place)] for place in points])
    return points, Measurements(unit, np.asarray(levels), **arrays)


def additive(values: np.ndarray) -> tuple[np.ndarray, float]:
    """Means of the points (point,) once the folds' own difficulty is taken off, and the variance of
    one run about the two.

    Least squares of `values` (point, fold) on point plus fold, folds summing to zero; NaN are runs
    that are not there. Points share their folds, so that this noise is that of comparisons between
    points, which is smaller than that of errors.
    """
    there = np.isfinite(values)
    point, fold = np.nonzero(there)
    points, folds = values.shape
    design = np.zeros((len(point) + 1, points + folds))
    design[np.arange(len(point)), point] = 1
    design[np.arange(len(point)), points + fold] = 1
    design[-1, points:] = there.any(axis=0)  # the folds' effects sum to zero
    y = np.append(values[there], 0.0)
    solution = np.linalg.lstsq(design, y, rcond=None)[0]
    residual = (y - design @ solution)[:-1]
    freedom = len(point) - there.any(axis=1).sum() - there.any(axis=0).sum() + 1
    variance = float(residual @ residual) / freedom if freedom > 0 else float("nan")
    means = np.where(there.any(axis=1), solution[:points], np.nan)
    return means, variance


def scores(measured: Measurements, folds: slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
    """The logarithm of each point's validation error at its best level, free of the folds'
    difficulty, and its variance.

    Points without any level reached score as the worst of the others: they are no answer, and no
    hole either.
    """
    errors = np.log(np.maximum(measured.at(measured.validation, measured.best_levels()), TINY))[
        :, folds
    ]
    means, variance = additive(errors)
    # One fold alone says nothing about the noise: half of the points' own deviation (chosen).
    if np.isnan(variance):
        variance = float(np.nanvar(means)) / 4
    count = np.maximum(np.isfinite(errors).sum(axis=1), 1)
    worst = np.nanmax(means) if np.isfinite(means).any() else 0.0
    # the floor keeps the surface's matrix regular where runs happen to agree to all digits
    return np.where(np.isfinite(means), means, worst), np.maximum(variance, 1e-8) / count


def error_surface(measured: Measurements, new_places: np.ndarray) -> Surface:
    """Of the logarithm of the validation error."""
    means, variances = scores(measured)
    return surface(measured.places, means, variances, new_places)


def regime_surface(measured: Measurements, new_places: np.ndarray) -> Surface:
    """Of the logarithm of the kernel change at the points' best levels."""
    changes = measured.at(measured.kernel_change, measured.best_levels())
    logs = np.log(np.maximum(changes, TINY))
    has_change = np.isfinite(logs).any(axis=1)
    if not has_change.any():
        return Surface(np.zeros(len(new_places)), np.eye(len(new_places)), (1.0, 1.0))
    means, variance = additive(np.where(np.isfinite(logs), logs, np.nan)[has_change])
    variance = variance if np.isfinite(variance) else float(np.var(means)) / 4
    count = np.isfinite(logs).sum(axis=1)[has_change]
    return surface(
        measured.places[has_change], means, np.maximum(variance, 1e-6) / count, new_places
    )


def choose(measured: Measurements, allowed: np.ndarray | None = None) -> tuple[int, int]:
    """The recommended (point, level): least smoothed validation error among the `allowed` points;
    (-1, -1) where none reached a level.

    Smoothing by the surface keeps a lucky run from being chosen.
    """
    levels = measured.best_levels()
    able = (levels >= 0) if allowed is None else (levels >= 0) & allowed
    if not able.any():
        return -1, -1
    smooth = error_surface(measured, measured.places).mean
    best = int(np.argmin(np.where(able, smooth, np.inf)))
    return best, int(levels[best])


def within_fold(measured: Measurements, fold: int) -> Measurements:
    """What is known from one fold alone: for a choice that never saw the rows that judge it."""
    there = measured.runs[:, fold]
    cut = lambda values: values[there][:, :, [fold]]
    return Measurements(
        measured.places[there],
        measured.levels,
        cut(measured.validation),
        cut(measured.test),
        cut(measured.kernel_change),
    )


def _mean(values: np.ndarray) -> np.ndarray:
    """Over folds, of those that are there."""
    there = ~np.isnan(values)
    total = np.where(there, values, 0.0).sum(axis=2)
    return np.where(there.any(axis=2), total / np.maximum(there.sum(axis=2), 1), np.inf)
