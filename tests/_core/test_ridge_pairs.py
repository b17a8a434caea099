"""Pairs of ridge functions against nested Gauss-Legendre quadrature, split at the kinks."""

import numpy as np
import pytest
from scipy.special import erf

from wideflow._core.activations import activation, hermite, sign, two_slopes
from wideflow._core.ridge_pairs import ridge_pair

# value and slope, written again with NumPy
FUNCTIONS = {
    "erf": (erf, lambda z: 2 / np.sqrt(np.pi) * np.exp(-(z**2))),
    "relu": (lambda z: np.maximum(z, 0), lambda z: (z > 0) * 1.0),
    "leaky_relu": (lambda z: np.where(z > 0, z, 0.01 * z), lambda z: np.where(z > 0, 1.0, 0.01)),
    "abs": (np.abs, np.sign),
    "sign": (np.sign, None),
    "square": (np.square, lambda z: 2 * z),
    "he3": (lambda z: (z**3 - 3 * z) / 6**0.5, lambda z: (z**2 - 1) * 1.5**0.5),
    "two_slopes": (
        lambda z: np.where(z > 0, 2 * z, -0.5 * z),
        lambda z: np.where(z > 0, 2.0, -0.5),
    ),
    "tanh": (np.tanh, lambda z: 1 / np.cosh(z) ** 2),
}
COVARIANCE = np.array([[1.3, 0.6], [0.6, 0.8]])
NODE, WEIGHT = np.polynomial.legendre.leggauss(80)
FINE, FINE_WEIGHT = np.polynomial.legendre.leggauss(200)


def expectation(function):
    """E[function(u, v)] with panels that end where u = 0 or v = 0; 11 standard deviations leave out
    1e-27.
    """
    (k11, k12), (_, k22) = COVARIANCE
    reach, rest = 11 * np.sqrt(k22), np.sqrt(k11 - k12**2 / k22)
    total = 0.0
    for side in (-1, 1):
        v = side * reach * (NODE + 1) / 2
        dv = WEIGHT * reach / 2 * np.exp(-(v**2) / (2 * k22)) / np.sqrt(2 * np.pi * k22)
        mean = v * k12 / k22
        zero = np.zeros_like(v)
        below = np.minimum(mean - 11 * rest, 0), zero
        above = zero, np.maximum(mean + 11 * rest, 0)
        for a, b in (below, above):
            u = a[:, None] + (b - a)[:, None] * (NODE + 1) / 2
            density = np.exp(-((u - mean[:, None]) ** 2) / (2 * rest**2))
            du = WEIGHT * (b - a)[:, None] / 2 * density / np.sqrt(2 * np.pi) / rest
            total += np.sum(dv[:, None] * du * function(u, np.broadcast_to(v[:, None], u.shape)))
    return total


def act(name):
    return {
        "sign": sign,
        "he3": lambda: hermite(3),
        "two_slopes": lambda: two_slopes(-0.5, 2.0),
    }.get(name, lambda: activation(name))()


CLOSED = [n for n in FUNCTIONS if n != "tanh"]
CASES = [(f, g) for f in CLOSED if f != "sign" for g in CLOSED]
CASES += [("tanh", "tanh"), ("tanh", "erf"), ("square", "tanh")]


@pytest.mark.parametrize(("left", "right"), CASES)
def test_values_and_steins_lemma(left, right):
    (f, df), (g, _) = FUNCTIONS[left], FUNCTIONS[right]
    (k11, k12), (_, k22) = COVARIANCE
    pair = ridge_pair(act(left), act(right), k11, k12, k22)
    np.testing.assert_allclose(pair.value, expectation(lambda u, v: f(u) * g(v)), atol=1e-11)
    # E[f'(u) z g(v)] = Cov(z, u) E[f''g] + Cov(z, v) E[f'g'] at z = u and z = v
    for z, own, other in ((0, k11, k12), (1, k12, k22)):
        expected = expectation(lambda u, v, z=z: df(u) * (u, v)[z] * g(v))
        np.testing.assert_allclose(own * pair.first + other * pair.mixed, expected, atol=1e-11)


def test_both_orders_agree():
    one = ridge_pair(act("erf"), act("he3"), 1.3, 0.6, 0.8)
    two = ridge_pair(act("he3"), act("erf"), 0.8, 0.6, 1.3)
    np.testing.assert_allclose(one.second, two.first, rtol=1e-13)
    np.testing.assert_allclose(one.mixed, two.mixed, rtol=1e-13)


def test_a_unit_with_itself():
    # E relu^2 = k/2, E relu'^2 = 1/2; E[relu'' relu] = E[delta(u) relu(u)] = 0
    pair = ridge_pair(act("relu"), act("relu"), 2.0, 2.0, 2.0)
    np.testing.assert_allclose([pair.value, pair.mixed, pair.first], [1.0, 0.5, 0.0], atol=1e-15)
    np.testing.assert_allclose(ridge_pair(act("sign"), act("sign"), 2.0, 2.0, 2.0).value, 1.0)


def test_a_kink_beside_a_smooth_function_is_refused():
    with pytest.raises(ValueError, match="no closed form"):
        ridge_pair(act("tanh"), act("relu"), 1.0, 0.5, 1.0)


@pytest.mark.parametrize("variance", [1.0, 3.0, 4.0])
def test_quadrature_fits_its_spacing_to_the_variance(variance):
    """Gauss-Legendre on each axis, good to 1e-13, against the rule for smooth activations."""
    t, w = 10 * FINE, 10 * FINE_WEIGHT * np.exp(-((10 * FINE) ** 2) / 2) / np.sqrt(2 * np.pi)
    u, v = np.sqrt(variance) * t[:, None], np.sqrt(variance) * (0.8 * t[:, None] + 0.6 * t)
    mean = lambda values: np.einsum("a,b,ab->", w, w, values)
    slope = lambda z: 1 / np.cosh(z) ** 2
    pair = ridge_pair(act("tanh"), act("tanh"), variance, 0.8 * variance, variance)
    np.testing.assert_allclose(pair.value, mean(np.tanh(u) * np.tanh(v)), atol=1e-11)
    np.testing.assert_allclose(pair.mixed, mean(slope(u) * slope(v)), atol=1e-11)
    bend = mean(-2 * np.tanh(u) * slope(u) * np.tanh(v))
    np.testing.assert_allclose(pair.first, bend, atol=1e-11)
