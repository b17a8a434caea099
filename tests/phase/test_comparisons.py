"""Choices and intervals: against SciPy, closed forms and simulations in which the truth is
known.
"""

import numpy as np
import pytest
from scipy import stats

from wideflow.phase.comparisons import interval, nested_errors
from wideflow.phase.measurements import Measurements, additive, choose

FOLDS = 5


def noisy(generator, truth, spread: float, difficulty: float = 0.0) -> Measurements:
    """Runs whose validation and test errors scatter independently about the truth (point, level);
    folds have a difficulty of their own.
    """
    shape = (*truth.shape, FOLDS)
    fold = np.exp(difficulty * generator.standard_normal(FOLDS))
    draw = lambda: truth[:, :, None] * fold * np.exp(spread * generator.standard_normal(shape))
    places = np.stack(np.meshgrid([0, 0.5, 1], [0, 0.5, 1]), -1).reshape(-1, 2)[: len(truth)]
    levels = np.linspace(0.5, 0.1, truth.shape[1])
    return Measurements(places, levels, draw(), draw(), np.ones(shape))


def test_the_interval_is_students_with_the_variance_of_overlapping_folds():
    values = np.array([0.1, -0.2, 0.4, 0.05])
    scale = np.sqrt(np.var(values, ddof=1) * (1 / 4 + 1 / 4))  # K = 5: 1 / (K - 1)
    low, high = stats.t.interval(0.95, 3, values.mean(), scale)
    got = interval([*values, np.nan], FOLDS)
    np.testing.assert_allclose([got.mean - got.half, got.mean + got.half], [low, high], rtol=1e-12)
    assert got.count == 4
    np.testing.assert_allclose(got.standard_error, scale, rtol=1e-12)


@pytest.mark.parametrize("values", [[], [0.3]])
def test_from_fewer_than_two_folds_nothing_is_told(values):
    assert not interval(values, FOLDS).resolved


def test_additive_on_a_full_table_is_the_two_way_analysis_of_variance():
    values = np.random.default_rng(0).normal(size=(4, 3))
    means, variance = additive(values)
    np.testing.assert_allclose(means, values.mean(axis=1), rtol=1e-12)
    left = values - values.mean(1, keepdims=True) - values.mean(0) + values.mean()
    np.testing.assert_allclose(variance, np.sum(left**2) / (3 * 2), rtol=1e-12)


def test_additive_sees_through_hard_folds_that_only_some_points_ran_on():
    point, fold = np.array([1.0, 2.0, 3.0]), np.array([-4.0, 0.0, 4.0])
    values = point[:, None] + fold
    values[0, 2] = values[1, 0] = np.nan
    means, variance = additive(values)
    np.testing.assert_allclose(np.diff(means), [1.0, 1.0], atol=1e-10)
    assert variance < 1e-20


def test_a_level_that_one_fold_did_not_reach_cannot_be_chosen():
    measured = noisy(np.random.default_rng(1), np.full((4, 2), 0.3), 0.05)
    measured.validation[:, 1] = 0.01
    measured.validation[:, 1, 2] = np.inf
    assert (measured.best_levels() == 0).all()
    measured.validation[2] = np.inf
    assert measured.best_levels()[2] == -1
    assert choose(measured)[0] != 2


def test_choosing_within_folds_does_not_flatter():
    """All settings are equally good: the least validation error promises too much, the nested test
    error is the truth within 4 standard errors.
    """
    generator, truth = np.random.default_rng(2), np.full((9, 3), 0.3)
    nested, flattered = [], []
    for _ in range(60):
        measured = noisy(generator, truth, 0.2)
        nested += list(np.log(nested_errors(measured)))
        flattered.append(np.log(measured.validation.min(axis=(0, 1)).mean()))
    error = np.std(nested, ddof=1) / np.sqrt(len(nested))
    assert abs(np.mean(nested) - np.log(0.3)) < 4 * error
    assert np.mean(flattered) < np.log(0.3) - 10 * error


def test_the_interval_covers_a_true_difference_of_zero():
    """Independent folds are the easy case: at least 95 % less three binomial standard errors
    of 400.
    """
    generator = np.random.default_rng(3)
    held = [not interval(generator.normal(size=FOLDS), FOLDS).resolved for _ in range(400)]
    assert np.mean(held) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 400)


def test_the_better_setting_is_chosen_where_it_is_clearly_better():
    truth = np.full((9, 2), 0.4)
    truth[4] = 0.2
    assert choose(noisy(np.random.default_rng(4), truth, 0.1, difficulty=0.5))[0] == 4
