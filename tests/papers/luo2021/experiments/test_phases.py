"""What is read off the movements, on planes whose exponents are known."""

import numpy as np

from wideflow.papers.luo2021.experiments.phases import (
    boundary,
    exponents,
    participation,
    zero_line,
)


def test_exponents_of_power_laws():
    widths, slopes = np.array([10.0, 40.0, 160.0]), np.array([-0.5, 0.0, 0.25])
    movement = widths[None, :, None] ** slopes[:, None, None] * np.array([0.9, 1.1])
    np.testing.assert_allclose(exponents(movement, widths), slopes, atol=1e-12)


def test_the_zero_line_of_an_exact_plane_is_the_boundary():
    gamma, prime = np.linspace(0.5, 2.5, 9), np.array([-0.5, 0.0, 0.5, 1.0, 2.5])
    line = zero_line(gamma, gamma[:, None] - boundary(prime))
    np.testing.assert_allclose(line[:4], [1.0, 1.0, 1.5, 2.0], atol=1e-12)
    assert np.isnan(line[4])  # beyond the plane


def test_participation_counts_equal_masses():
    assert participation(np.array([0.25, 0.25, 0.25, 0.25, 0.0])) == 4
