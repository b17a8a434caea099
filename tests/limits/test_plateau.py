"""Plateaus of curves drawn by hand."""

import numpy as np
import pytest

from wideflow.limits import plateau


def test_a_staircase():
    t = np.arange(1.0, 101.0)
    # flat at 0.5 from 10 to 50, then exponential to an asymptote, which is no plateau to escape
    # from
    error = np.where(t < 10, 5 / t, np.where(t <= 50, 0.5, 0.01 + 0.49 * np.exp(-(t - 50))))
    flat = plateau(t, error)
    assert (flat.begin, flat.escape, flat.level) == (10.0, 50.0, 0.5)
    assert flat.length == 40.0


def test_noise_far_below_the_curve_is_no_plateau():
    t = np.arange(1.0, 101.0)
    error = np.where(t < 20, np.exp(-2 * t), 1e-17)
    error[-1] = 1e-19
    assert plateau(t, error) is None
    assert plateau(t, error, floor=0.0).escape == 99.0


def test_no_plateau():
    t = np.arange(1.0, 20.0)
    assert plateau(t, 1 / t) is None
    with pytest.raises(ValueError, match="times"):
        plateau([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])
