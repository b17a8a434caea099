"""Mehler's series against mpmath, against the two-dimensional rule, and its own statements about
its error.
"""

import math
import warnings

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from wideflow._core.activations import activation
from wideflow._core.gaussian import _expect_on_grid, expect_pair, pair_matrix
from wideflow._core.mehler import TOLERANCE, coefficients, hermite_table, series


def exact(function, k11, k12, k22):
    """The double integral by the trapezoid rule in 30 digits with 16 points a unit: its error,
    exp(-2 pi 16 pi/(2 s)), is below 1e-40 here.
    """
    with mpmath.workdps(30):
        k11, k12, k22 = (mpmath.mpf(k) for k in (k11, k12, k22))
        slope, points = k12 / mpmath.sqrt(k11), [mpmath.mpf(i) / 8 for i in range(-76, 77)]
        rest = mpmath.sqrt(k22 - slope**2)
        weights = [mpmath.exp(-t * t / 2) / mpmath.sqrt(2 * mpmath.pi) / 8 for t in points]
        inner = lambda u: mpmath.fsum(
            w * function(slope * u + rest * t) for t, w in zip(points, weights)
        )
        outer = (w * function(mpmath.sqrt(k11) * t) * inner(t) for t, w in zip(points, weights))
        return float(mpmath.fsum(outer))


SLOPES = {
    "tanh": lambda z: 1 - mpmath.tanh(z) ** 2,
    "softplus": lambda z: 1 / (1 + mpmath.exp(-z)),
    "gelu": lambda z: mpmath.ncdf(z) + z * mpmath.npdf(z),
}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_agree_with_mpmath(name):
    k = (0.7, -0.5, 0.9)
    slope = activation(name).slope
    repeated = [jnp.full(40, value) for value in k]  # enough pairs for the series to be worth it
    value = series(slope, slope, *repeated, pair_cost=1e9)
    assert value.reached.all()
    assert_allclose(np.asarray(value.values), exact(SLOPES[name], *k), rtol=0, atol=2e-15)


@pytest.fixture(scope="module")
def covariance():
    """Twenty inputs of which two are nearly parallel, two opposite, one zero; deviations 0.5 to
    2.5.
    """
    x = np.random.default_rng(0).normal(size=(20, 4)) * np.geomspace(0.5, 2.0, 20)[:, None]
    x[1], x[2], x[3] = 1.0001 * x[0], -x[0], 0.0
    return jnp.asarray(x @ x.T / 4)


@pytest.mark.parametrize("name", ["tanh", "softplus", "sigmoid", "gelu"])
@pytest.mark.parametrize("order", [0, 1])
def test_matrices_agree_with_the_two_dimensional_rule(name, order, covariance):
    act = activation(name)
    function = act.slope if order else act.value
    diagonal = jnp.diagonal(covariance)
    grid = _expect_on_grid(function, function, diagonal[:, None], covariance, diagonal[None, :])
    scale = np.sqrt(np.outer(np.diag(grid), np.diag(grid)))
    values = pair_matrix(act, covariance, order=order)
    assert float(jnp.max(jnp.abs(values - grid) / jnp.where(scale > 0, scale, 1.0))) < 1e-12


def test_pairs_beyond_reach_are_handed_back(covariance):
    # tanh at deviation 2.5 has a slow series: the stated bound rho^Q tau decides, and it is kept
    # where the series speaks
    slope = activation("tanh").slope
    diagonal = jnp.diagonal(covariance)
    cheap = series(slope, slope, diagonal[:, None], covariance, diagonal[None, :], pair_cost=1.0)
    assert 0 < (~cheap.reached).sum() < cheap.reached.size
    grid = _expect_on_grid(slope, slope, diagonal[:, None], covariance, diagonal[None, :])
    error = np.abs(np.asarray(cheap.values - grid))
    assert error[cheap.reached].max() < 1e-13
    assert error[~cheap.reached].max() > 1e-10  # a short series would have been wrong there


def test_parseval_of_a_polynomial():
    # g(z) = z^3 = sqrt(6) h_3 + 3 h_1 at deviation 1: two coefficients, nothing after the fourth
    found = coefficients(lambda z: z**3, np.array([1.0]))
    expected = np.zeros(8)
    expected[1], expected[3] = 3.0, math.sqrt(6)
    assert_allclose(np.asarray(found.values[0, :8]), expected, atol=1e-13)
    assert_allclose(found.squares, 15.0, rtol=1e-13)
    assert found.tails(32)[0] <= TOLERANCE


def test_hermite_polynomials_are_orthonormal():
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    table = hermite_table(points, 40)
    assert_allclose((table * weights / math.sqrt(2 * math.pi)) @ table.T, np.eye(40), atol=1e-11)


def test_kinks_are_told():
    k = jnp.full(50, 1.0)
    kinked = lambda z: jnp.maximum(z, 0.3)
    with pytest.warns(UserWarning, match="do not converge"):
        expect_pair(kinked, kinked, k, 0.5 * k, k)


def test_gradients_still_pass():
    tanh = activation("tanh").value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slope = jax.grad(lambda q: expect_pair(tanh, tanh, 1.0, q, 1.0).sum())(0.5)
    # d/dk12 E[g(u)g(v)] = E[g'(u)g'(v)] (Price), 0.384747028441 at (1, 1/2, 1) (chen2022's check
    # value)
    assert_allclose(float(slope), 0.384747028441, atol=1e-6)
