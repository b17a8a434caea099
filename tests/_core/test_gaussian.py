"""Pair expectations: printed values, mpmath quadrature, degenerate covariances."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from mpmath import fp
from numpy.testing import assert_allclose

from wideflow._core.activations import TABLE, activation, leaky_relu
from wideflow._core.gaussian import expect, expect_pair, pair, pair_derivative, pair_matrix

# specification of chen2022, section 3.1: (1, .5, 1) both, then E[s s] at (1, .5, 2)
PRINTED = {
    "relu": (0.304498890522, 0.333333333333, 0.364298881694),
    "erf": (0.216346895939, 0.450158158079, 0.166257971481),
    "tanh": (0.186324413203, 0.384747028441, 0.146754115460),
    "sigmoid": (0.271428325632, 0.043190020462, 0.268812465054),
}


@pytest.mark.parametrize("name", PRINTED)
def test_printed_values(name):
    act, (both, slopes, wider) = activation(name), PRINTED[name]
    assert_allclose(pair(act, 1.0, 0.5, 1.0), both, atol=6e-13)
    assert_allclose(pair_derivative(act, 1.0, 0.5, 1.0), slopes, atol=6e-13)
    assert_allclose(pair(act, 1.0, 0.5, 2.0), wider, atol=6e-13)


def test_printed_values_of_leaky_relu():
    act = leaky_relu(0.1)
    assert_allclose(pair(act, 1.0, 0.5, 1.0), 0.296644101323, atol=6e-13)
    assert_allclose(pair_derivative(act, 1.0, 0.5, 1.0), 0.37, atol=6e-13)


def mpmath_pair(f, k11, k12, k22):
    """The double integral in whitened coordinates, with the kinks of both factors as break points;
    tanh-sinh in double precision.
    """
    s1, slope = math.sqrt(k11), k12 / math.sqrt(k11)
    rest = math.sqrt(k22 - slope**2)
    density = lambda t: math.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)

    def inner(t):
        kink = -slope * t / rest
        return fp.quad(lambda r: f(slope * t + rest * r) * density(r), [-9, kink, 9])

    return fp.quad(lambda t: f(s1 * t) * inner(t) * density(t), [-9, 0, 9])


ORACLES = {
    "relu": lambda z: max(z, 0.0),
    "abs": abs,
    "sin": fp.sin,
    "cos": fp.cos,
    "softplus": lambda z: fp.log(1 + fp.exp(z)),
    "square": lambda z: z**2,
    "gelu": lambda z: z * fp.ncdf(z),
    "unit_erf": lambda z: fp.erf(fp.sqrt(fp.pi) * z / 2),
}


@pytest.mark.parametrize("name", ORACLES)
def test_against_mpmath(name):
    k = (0.7, -0.3, 1.1)
    assert_allclose(pair(activation(name), *k), mpmath_pair(ORACLES[name], *k), rtol=1e-9)


@pytest.mark.parametrize("name", [n for n in TABLE if n not in ("smoothed_leaky_relu", "exp")])
def test_slopes_are_the_covariance_derivative(name):
    # Price's theorem: d/dk12 E[s(u) s(v)] = E[s'(u) s'(v)]
    act, h = activation(name), 1e-5
    difference = (pair(act, 0.8, 0.2 + h, 1.3) - pair(act, 0.8, 0.2 - h, 1.3)) / (2 * h)
    assert_allclose(pair_derivative(act, 0.8, 0.2, 1.3), difference, rtol=2e-8, atol=1e-9)


@pytest.mark.parametrize("name", ["relu", "abs", "erf", "sin", "linear", "tanh", "softplus"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_fully_correlated_pairs(name, sign):
    # u = s t, v = +-s t: a one-dimensional integral, by Gauss-Legendre on each side of the kink
    act, s = activation(name), 0.9
    x, w = np.polynomial.legendre.leggauss(200)
    t, w = np.concatenate([4.5 * x - 4.5, 4.5 * x + 4.5]), np.tile(4.5 * w, 2)
    density = np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)
    expected = np.sum(w * density * act(s * t) * act(sign * s * t))
    assert_allclose(pair(act, s**2, sign * s**2, s**2), expected, rtol=1e-11, atol=1e-14)


def test_quadrature_agrees_with_closed_forms_where_both_exist():
    k11, k12, k22 = jnp.array([0.3, 2.0]), jnp.array([0.1, -1.2]), jnp.array([0.5, 1.5])
    for name in ("erf", "sin", "cos", "square"):
        act = activation(name)
        numbers = expect_pair(act.value, act.value, k11, k12, k22)
        assert_allclose(numbers, pair(act, k11, k12, k22), rtol=1e-11)


def test_one_dimensional_expectation():
    # E[cos(s t)] = exp(-s^2/2)
    assert_allclose(expect(jnp.cos, jnp.array([0.5, 2.0])), np.exp([-0.125, -2.0]), rtol=1e-13)


def test_matrix_form_is_the_elementwise_form():
    gram = jnp.array([[1.0, 0.2], [0.2, 2.0]])
    matrix = pair_matrix(activation("relu"), gram)
    assert_allclose(matrix[0, 1], pair(activation("relu"), 1.0, 0.2, 2.0), rtol=1e-15)
    assert_allclose(jnp.diagonal(matrix), [0.5, 1.0], rtol=1e-15)  # E[relu^2] = k/2


def test_kinked_functions_without_closed_form_are_refused():
    from dataclasses import replace

    kinked = replace(activation("relu"), name="unknown_kink")
    with pytest.raises(ValueError, match="no closed form"):
        pair(kinked, 1.0, 0.5, 1.0)
