"""What is read off a path at given losses."""

import numpy as np

from wideflow.phase.levels import at_levels


def test_an_exponential_decay_is_interpolated_exactly():
    # loss e^(-2t) and value t: linear in log loss, so that the level l is reached at t = -log(l) /
    # 2
    times = np.linspace(0, 3, 7)
    levels = [0.9, 0.5, 0.1, 0.01]
    np.testing.assert_allclose(
        at_levels(np.exp(-2 * times), times, levels), -np.log(levels) / 2, rtol=1e-12
    )


def test_a_level_that_is_never_reached_is_nan_and_the_first_crossing_counts():
    losses = np.array([1.0, 0.4, 0.6, 0.1])
    values = np.array([[0.0, 0.0], [1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    reached = at_levels(losses, values, [0.4, 0.05])
    np.testing.assert_allclose(reached[0], [1.0, 10.0], rtol=1e-12)
    assert np.isnan(reached[1]).all()
