"""The surface against scikit-learn's kernel and the formulas by plain inverses."""

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from wideflow.phase.surface import _posterior, matern, surface

PLACES = np.random.default_rng(0).uniform(size=(9, 2))
ASKED = np.random.default_rng(1).uniform(size=(5, 2))


def test_the_correlation_is_scikit_learns():
    lengths = (0.3, 0.8)
    np.testing.assert_allclose(
        matern(PLACES, ASKED, lengths), Matern(lengths, nu=2.5)(PLACES, ASKED), rtol=1e-12
    )


def test_the_posterior_is_that_of_an_unknown_constant():
    values, noise = np.sin(5 * PLACES[:, 0]) + 3.0, np.full(9, 0.02)
    kernel, across = Matern(0.5, nu=2.5)(PLACES), Matern(0.5, nu=2.5)(ASKED, PLACES)
    inverse = np.linalg.inv(2.0 * kernel + np.diag(noise))
    constant = inverse.sum(axis=0) @ values / inverse.sum()
    got = _posterior(PLACES, values, noise, ASKED, (0.5, 0.5), 2.0)
    mean = constant + 2.0 * across @ inverse @ (values - constant)
    np.testing.assert_allclose(got.mean, mean, rtol=1e-9)
    covariance = 2.0 * Matern(0.5, nu=2.5)(ASKED) - 4.0 * across @ inverse @ across.T
    np.testing.assert_allclose(got.covariance, covariance, rtol=1e-8, atol=1e-12)


def test_without_noise_it_goes_through_its_points_and_finds_the_long_axis():
    values = np.sin(6 * PLACES[:, 0])  # nothing along the second axis
    got = surface(PLACES, values, np.zeros(9), PLACES)
    np.testing.assert_allclose(got.mean, values, atol=1e-6)
    assert got.lengths[1] > got.lengths[0]


def test_moving_and_stretching_the_values_moves_and_stretches_the_surface():
    values, noise = np.cos(4 * PLACES[:, 1]), np.full(9, 0.01)
    one = surface(PLACES, values, noise, ASKED)
    two = surface(PLACES, 7 + 3 * values, 9 * noise, ASKED)
    np.testing.assert_allclose(two.mean, 7 + 3 * one.mean, rtol=1e-9)
    np.testing.assert_allclose(two.deviation, 3 * one.deviation, rtol=1e-7)
