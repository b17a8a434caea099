"""Coefficients against mpmath's Taylor expansion, majorants against summed series."""

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from wideflow.papers.allenzhu2018.laws.power_series import SERIES, polynomial, smooth

WITNESS = {
    "exp": mpmath.exp,
    "sin": mpmath.sin,
    "sinh": mpmath.sinh,
    "cos": mpmath.cos,
    "cosh": mpmath.cosh,
    "erf": mpmath.erf,
    "gaussian": lambda z: mpmath.exp(-(z**2)),
    "sigmoid": lambda z: 1 / (1 + mpmath.exp(-z)),
    "tanh": mpmath.tanh,
    "arctan": mpmath.atan,
}


def test_every_series_has_a_witness():
    assert set(WITNESS) == set(SERIES)


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("frequency", [1.0, -0.7])
def test_coefficients_are_taylor_coefficients(name, frequency):
    with mpmath.workdps(60):
        taylor = mpmath.taylor(lambda z: WITNESS[name](frequency * z), 0, 13)
    expected = np.array([float(c) for c in taylor])
    assert_allclose(smooth(name, frequency).coefficients(13), expected, rtol=1e-12, atol=1e-25)


@pytest.mark.parametrize("name", SERIES)
def test_value_is_the_sum_of_the_series(name):
    phi = smooth(name, 0.8)
    z = np.linspace(-0.9, 0.9, 7)
    powers = z[:, None] ** np.arange(401)
    assert_allclose(phi(z), powers @ phi.coefficients(400), rtol=1e-12, atol=1e-14)
    assert_allclose(phi(z), [float(WITNESS[name](0.8 * v)) for v in z], rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", SERIES)
def test_majorant_is_the_sum_of_absolute_terms(name):
    phi, u = smooth(name, -0.5), 1.4
    total = np.sum(np.abs(phi.coefficients(600)) * u ** np.arange(601.0))
    assert_allclose(phi.majorant(u), total, rtol=1e-12)
    assert_allclose(phi.log_majorant(u), math.log(total), rtol=1e-12)


def test_majorants_beyond_the_range_of_doubles():
    assert smooth("exp").log_majorant(1e4) == 1e4
    assert smooth("exp").majorant(1e4) == math.inf
    # erfi(u) ~ exp(u^2) / (u sqrt(pi)) (1 + 1 / (2 u^2))
    assert_allclose(
        smooth("erf").log_majorant(100.0),
        1e4 - math.log(100 * math.sqrt(math.pi)) + 0.5e-4,
        rtol=1e-11,
    )
    assert smooth("tanh").majorant(2.0) == math.inf
    assert smooth("sigmoid", 2.0).majorant(1.6) == math.inf


def test_polynomials():
    phi = polynomial((0.5, -1.0, 2.0, 1.5))
    assert_allclose(phi(2.0), 0.5 - 2 + 8 + 12)
    assert_allclose(phi.majorant(2.0), 0.5 + 2 + 8 + 12)
    assert_allclose(phi.scaled(3.0).coefficients(3), [0.5, -3.0, 18.0, 40.5])
    assert phi.taylor_degree(1e-9) == 3
    assert phi.tail(3) == 0.0
    assert polynomial((0.25,)).majorant(0.0) == 0.25


@pytest.mark.parametrize(
    ("name", "degree", "error"),
    # measured maximal errors on [-1, 1] quoted with the paper's examples, to the digits given
    [
        ("sigmoid", 7, 1.9e-5),
        ("sigmoid", 9, 2.0e-6),
        ("sigmoid", 11, 2.0e-7),
        ("tanh", 9, 6e-3),
        ("tanh", 15, 4e-4),
        ("tanh", 21, 2.8e-5),
    ],
)
def test_truncation_errors(name, degree, error):
    phi = smooth(name)
    z = np.linspace(-1, 1, 401)
    assert_allclose(np.max(np.abs(phi(z) - phi.truncated(degree)(z))), error, rtol=0.09)
    assert phi.tail(degree) >= error * 0.9


def test_taylor_degree_is_the_smallest():
    for name in ("exp", "cos", "tanh"):
        phi = smooth(name)
        degree = phi.taylor_degree(1e-6)
        assert phi.tail(degree) <= 1e-6 < phi.tail(degree - 1)


@pytest.mark.parametrize("frequency", [0.5, 0.999])
def test_the_tail_of_a_slow_series_is_whole(frequency):
    # arctan(w z): sum_{i odd > 10} w^i / i = artanh(w) - sum_{i odd <= 9} w^i / i
    exact = math.atanh(frequency) - sum(frequency**i / i for i in range(1, 10, 2))
    assert_allclose(smooth("arctan", frequency).tail(10), exact, rtol=1e-9)


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match=r"`name`.*relu"):
        smooth("relu")
    with pytest.raises(ValueError, match="`coefficients`"):
        polynomial(())
    with pytest.raises(ValueError, match="`frequency`"):
        smooth("tanh", 2.0).taylor_degree(1e-3)
