"""Where runs go, on surfaces whose truth is known: no network is trained here."""

import numpy as np
import pytest

from wideflow.observables.regime import LAZY, RICH
from wideflow.phase.axes import axis_of
from wideflow.phase.measurements import Measurements, choose
from wideflow.phase.refinement import (
    FIRST_FOLDS,
    closing_round,
    closing_runs,
    coarse,
    first_round,
    next_round,
)

AXES = (axis_of("richness"), axis_of("width"))
FOLDS, LEVELS = 5, np.array([0.5, 0.1])
NOISE, DIFFICULTY = 0.05, 0.3


def true_error(place) -> float:
    """A valley that bends, least inside the plane."""
    u, v = AXES[0].unit[place[0]], AXES[1].unit[place[1]]
    return 0.2 + 0.4 * (u - 0.7 * v) ** 2 + 0.2 * (v - 0.8) ** 2


def change(place) -> float:
    """Kernel change: lazy at the left, rich at the right."""
    return 0.01 * 1000 ** AXES[0].unit[place[0]]


def measure(done, seed: int) -> tuple[list, Measurements]:
    points = list(dict.fromkeys(place for place, _ in done))
    shape = (len(points), 2, FOLDS)
    validation, test, changes = (np.full(shape, np.nan) for _ in range(3))
    fold_effect = np.random.default_rng(seed).normal(size=FOLDS)
    for place, fold in done:
        own = np.random.default_rng([seed, *place, fold])
        at = (points.index(place), slice(None), fold)
        size = true_error(place) * np.exp(DIFFICULTY * fold_effect[fold])
        validation[at] = size * np.exp(NOISE * own.normal()) * np.array([1.3, 1.0])
        test[at] = size * np.exp(NOISE * own.normal()) * np.array([1.3, 1.0])
        changes[at] = change(place)
    unit = np.array([[a.unit[i] for a, i in zip(AXES, place)] for place in points])
    return points, Measurements(unit, LEVELS, validation, test, changes)


def search(runs: int, seed: int):
    done, kept = first_round(AXES, runs), closing_runs(FOLDS)
    while (count := min(8, runs - kept - len(done))) > 0:
        asked = next_round(AXES, measure(done, seed)[1], done, count, FOLDS, seed)
        if not asked:
            break
        done = done + asked
    points, measured = measure(done, seed)
    return done + closing_round(points, measured, done, kept, FOLDS)


def test_the_coarse_lattice_has_the_corners_and_half_of_the_runs():
    for runs in (16, 45, 120, 1000):
        places = coarse(AXES, runs)
        assert {(0, 0), (12, 0), (0, 5), (12, 5)} <= set(places)
        assert len(places) * FIRST_FOLDS <= max(8, runs // 2)


def test_no_run_is_asked_for_twice_and_no_fold_is_left_out():
    done = search(64, 0)
    assert len(set(done)) == len(done) <= 64
    for place in {place for place, _ in done}:
        assert sorted(fold for p, fold in done if p == place) == list(
            range(sum(p == place for p, _ in done))
        )


def test_the_same_results_ask_for_the_same_runs():
    assert search(40, 3) == search(40, 3)


@pytest.mark.parametrize("seed", range(6))
def test_a_fifth_of_the_dense_grid_finds_a_setting_within_one_standard_error_of_its_best(seed):
    places = [(i, j) for i in range(13) for j in range(6)]
    runs = len(places) * FOLDS // 5
    done = search(runs, seed)
    points, measured = measure(done, seed)
    best = points[choose(measured)[0]]
    least = min(map(true_error, places))
    # a mean over five fresh folds scatters by the folds' difficulty and the runs' noise
    standard_error = least * np.hypot(DIFFICULTY, NOISE) / np.sqrt(FOLDS)
    assert len(done) <= runs
    assert true_error(best) <= least + standard_error


def test_runs_gather_at_the_best_and_at_the_borders():
    done = search(120, 1)
    points = {place for place, _ in done}
    later = points - set(coarse(AXES, 120))
    near = [p for p in later if true_error(p) < 0.22]
    straddling = [p for p in later if min(abs(np.log(change(p) / b)) for b in (LAZY, RICH)) < 0.6]
    assert near
    assert straddling
    assert len(near) + len(straddling) > len(later) / 2


def test_when_every_point_has_all_folds_nothing_is_asked():
    small = (axis_of("share", (0.0, 1.0, 2)), axis_of("depth", (1, 2, 2)))
    done = [((i, j), fold) for i in range(2) for j in range(2) for fold in range(FOLDS)]
    shape = (4, 1, FOLDS)
    values = 1 + 0.1 * np.random.default_rng(0).normal(size=shape)
    unit = np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]])
    measured = Measurements(unit, LEVELS[:1], values, values, np.ones(shape))
    assert next_round(small, measured, done, 8, FOLDS, 0) == []
