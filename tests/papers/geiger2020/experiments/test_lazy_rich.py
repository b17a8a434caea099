"""What is read off kernel changes and errors, on tables made by hand."""

import numpy as np
import xarray as xr
from scipy import stats

from wideflow.papers.geiger2020.experiments.lazy_rich import border, lazy_less_rich


def test_the_border_of_a_power_law_is_where_it_is_one():
    strength = np.logspace(-1, 3, 9)
    np.testing.assert_allclose(border(strength, 2.5 / strength), 2.5, rtol=1e-12)
    assert np.isnan(border(strength, np.full(9, 0.1)))


def test_the_difference_of_the_sides_has_students_interval():
    errors = np.random.default_rng(0).uniform(size=(4, 1, 3))
    table = xr.Dataset({"test_error": (("seed", "width", "strength"), errors)})
    mean, half = lazy_less_rich(table)
    low, high = stats.ttest_1samp(errors[:, 0, 2] - errors[:, 0, 0], 0).confidence_interval()
    np.testing.assert_allclose([mean - half, mean + half], [low, high], rtol=1e-10)
