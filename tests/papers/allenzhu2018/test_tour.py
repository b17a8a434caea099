"""The tour's comparison at equal training error, on a table made by hand."""

import math

import numpy as np
import xarray as xr
from numpy.testing import assert_allclose

from wideflow.papers.allenzhu2018 import tour


def table(three_train, three_test):
    """Two layers end at training error 0.2 and test error 0.3; three layers as given.
    Variance 1.
    """
    train, test = np.r_[1.0, 0.2, three_train], np.r_[1.0, 0.3, three_test]
    count = len(three_train)
    return xr.Dataset(
        {
            "risk": ("step", train),
            "test_risk": ("step", test),
            "learner": ("step", np.r_[0, 0, np.ones(count, int)]),
        },
        {"step": np.arange(2 + count), "time": ("step", np.r_[0.0, 1.0, np.arange(count)])},
        {"variance": 1.0},
    )


def test_errors_are_compared_at_the_training_error_that_two_layers_ended_with():
    # on logarithms 0.2 lies half way between 0.4 and 0.1, where the test error is sqrt(0.4 * 0.1) =
    # 0.2: two thirds of 0.3
    one = table([1.0, 0.4, 0.1], [1.0, 0.4, 0.1])
    assert_allclose(tour.equal_fit_ratio(one), 2 / 3, rtol=1e-12)
    moment = tour.equal_fit(one)
    assert moment.time == 2.0
    assert "0.20" in moment.sentence
    assert "0.10 against 0.30" in moment.sentence


def test_there_is_no_comparison_before_three_layers_fit_as_well():
    one = table([1.0, 0.4], [1.0, 0.1])
    assert math.isnan(tour.equal_fit_ratio(one))
    assert tour.equal_fit(one) is None
