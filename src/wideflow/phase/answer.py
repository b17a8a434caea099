"""What a plane says: the recommended setting, its honest error, lazy against rich, and what each
axis brings.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ..observables.regime import verdict_of
from .axes import Axis
from .comparisons import Interval, interval, log_ratio, nested_errors
from .measurements import Measurements, choose


@dataclass(frozen=True)
class Enough:
    """Beyond `value` nothing significant is gained; `noise` is the largest half width of those
    comparisons, as a log ratio.
    """

    value: float | int
    noise: float


@dataclass(frozen=True)
class Answer:
    """The recommendation and what is known of it.

    Attributes:
        best: number of the recommended point.
        level: training loss at which its training is to stop.
        setting: its values on the two axes.
        regime: of the recommended setting.
        error: of the procedure that led to it: on every fold the setting is chosen without the rows
            that judge it.
        flattered: of the recommended setting itself, which was chosen with a look at all rows.
        lazy_limit: of kernel regression, its level chosen the same way.
        rich_limit: of the mean-field limit at the largest richness, likewise; None without
            `particles`.
        regimes: verdict of every point, 'unknown' where no level was reached.
        rich_over_lazy: log of the error of the best rich over that of the best lazy setting, each
            chosen within the fold; None without both.
        best_over_limit: log of the procedure's error over the lazy limit's.
        same: points that cannot be distinguished from the recommended one.
        enough: for each axis the least value beyond which nothing significant is gained; None where
            there is no such value.
    """

    best: int
    level: float
    setting: Mapping[str, float | int]
    regime: str
    error: Interval
    flattered: Interval
    lazy_limit: Interval
    rich_limit: Interval | None
    regimes: tuple[str, ...]
    rich_over_lazy: Interval | None
    best_over_limit: Interval
    same: tuple[int, ...]
    enough: Mapping[str, Enough | None]


def answer(
    axes: tuple[Axis, Axis],
    places: list[tuple[int, int]],
    measured: Measurements,
    lazy: Mapping[str, np.ndarray],
    folds: int,
    rich: xr.Dataset | None = None,
) -> Answer:
    """From all that was measured.

    Args:
        places: of the points, on the axes' lattices.
        lazy: validation and test error of the lazy limit, (fold, level).
        folds: $K$ of the split.
        rich: the same of the mean-field limit, if there is one.
    """
    best, level = choose(measured)
    if best < 0:
        raise ValueError(
            f"no run reached a training loss of {measured.levels[0]:g}: no conclusion is possible. "
            "Take a higher loss, more steps or other axes."
        )
    levels = measured.best_levels()
    changes = measured.at(measured.kernel_change, levels)
    regimes = tuple(verdict_of(_mean(row)) for row in changes)
    tests = measured.at(measured.test, levels)
    nested, limit = nested_errors(measured), _of_limit(lazy)
    setting = dict(
        zip((a.name for a in axes), (a.values[i] for a, i in zip(axes, places[best])), strict=True)
    )
    return Answer(
        best,
        float(measured.levels[level]),
        setting,
        regimes[best],
        interval(nested, folds),
        interval(tests[best], folds),
        interval(limit, folds),
        None if rich is None else interval(_of_limit(rich), folds),
        regimes,
        _against(measured, regimes, folds),
        interval(log_ratio(nested, limit), folds),
        _same(tests, best, folds),
        {
            axis.name: _enough(measured, axis, [p[i] for p in places], folds)
            for i, axis in enumerate(axes)
        },
    )


def _mean(values: np.ndarray) -> float:
    """Over the folds that are there; NaN where none is."""
    there = values[np.isfinite(values)]
    return float(there.mean()) if there.size else float("nan")


def _of_limit(errors) -> np.ndarray:
    """Fold by fold the test error at the level that the fold's validation rows choose."""
    levels = np.argmin(np.asarray(errors["validation"]), axis=1)
    tests = np.take_along_axis(np.asarray(errors["test"]), levels[:, None], axis=1)[:, 0]
    return np.where(np.isfinite(tests), tests, np.nan)


def _against(measured: Measurements, regimes: tuple[str, ...], folds: int) -> Interval | None:
    is_rich, is_lazy = (np.array([r == name for r in regimes]) for name in ("rich", "lazy"))
    if not (is_rich.any() and is_lazy.any()):
        return None
    rich, lazy = nested_errors(measured, is_rich), nested_errors(measured, is_lazy)
    comparison = interval(log_ratio(rich, lazy), folds)
    return comparison if comparison.count > 1 else None


def _same(tests: np.ndarray, best: int, folds: int) -> tuple[int, ...]:
    """Points whose test errors, fold by fold, cannot be distinguished from the best; points with
    too few common folds are left out.
    """
    comparisons = [interval(log_ratio(row, tests[best]), folds) for row in tests]
    return tuple(
        i
        for i, one in enumerate(comparisons)
        if i == best or (one.count > 1 and one.mean - one.half <= 0)
    )


def _enough(measured: Measurements, axis: Axis, numbers: list[int], folds: int) -> Enough | None:
    """The least value of the axis whose best error differs significantly from that at no larger
    value.
    """
    present = sorted(set(numbers))
    errors = {k: nested_errors(measured, np.array([n == k for n in numbers])) for k in present}
    comparable = [k for k in present if np.isfinite(errors[k]).sum() > 1]
    for i, k in enumerate(comparable[:-1]):
        gains = [
            interval(log_ratio(errors[k], errors[later]), folds) for later in comparable[i + 1 :]
        ]
        if all(gain.count > 1 and gain.mean - gain.half <= 0 for gain in gains):
            return Enough(axis.values[k], max(gain.half for gain in gains))
    return None
