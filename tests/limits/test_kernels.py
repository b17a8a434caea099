import math

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from numpy.testing import assert_allclose

from wideflow._core.activations import activation, leaky_relu
from wideflow.limits.kernels import kappa, mean_ntk, nngp, spectrum


def mehler(function, deviation_left, deviation_right, cosine, terms=100, order=200):
    """E[g(u) g(v)] as the sum over orthonormal Hermite coefficients times powers of the
    correlation.
    """
    nodes, weights = hermegauss(order)
    weights = weights / weights.sum()
    polynomials = [np.ones_like(nodes), nodes]
    for q in range(2, terms):
        polynomials.append(
            (nodes * polynomials[-1] - math.sqrt(q - 1) * polynomials[-2]) / math.sqrt(q)
        )
    basis = np.stack(polynomials)
    left = basis @ (weights * function(deviation_left * nodes))
    right = basis @ (weights * function(deviation_right * nodes))
    return float(np.sum(left * right * cosine ** np.arange(terms)))


def test_relu_kernels_at_sixty_degrees():
    # |x| = |x'| = 1, cos = 1/2, d = 2: E[s's'] = (pi - pi/3)/(2 pi) = 1/3, so the kernel is
    # (1/4)(1/3); K = (sin + (pi - pi/3)/2)/(4 pi).
    inputs = np.array([[1.0, 0.0], [0.5, math.sqrt(3) / 2]])
    assert_allclose(mean_ntk(inputs, "relu"), [[1 / 4, 1 / 12], [1 / 12, 1 / 4]], rtol=1e-14)
    off = (math.sqrt(3) / 2 + math.pi / 3) / (4 * math.pi)
    assert_allclose(nngp(inputs, "relu"), [[1 / 4, off], [off, 1 / 4]], rtol=1e-14)


def test_leaky_relu_slopes():
    # p = 1/3 as above; E = (1 + b^2) p + b (1 - 2 p)
    inputs = np.array([[1.0, 0.0], [0.5, math.sqrt(3) / 2]])
    expected = 0.25 * ((1 + 0.04) / 3 + 0.2 / 3)
    assert_allclose(mean_ntk(inputs, leaky_relu(0.2))[0, 1], expected, rtol=1e-14)


@pytest.mark.parametrize("name", ["tanh", "softplus", "sigmoid", "sin", "unit_erf", "erf"])
def test_smooth_kernels_agree_with_the_hermite_series(name):
    act = activation(name)
    inputs = np.array([[0.3, -0.8, 0.1], [0.9, 0.2, -0.3]])
    stds = np.linalg.norm(inputs, axis=1) / math.sqrt(3)
    cosine = inputs[0] @ inputs[1] / np.prod(np.linalg.norm(inputs, axis=1))
    slope = mehler(lambda z: np.asarray(act.derivative(z)), stds[0], stds[1], cosine)
    value = mehler(lambda z: np.asarray(act(z)), stds[0], stds[1], cosine)
    assert_allclose(mean_ntk(inputs, name)[0, 1], inputs[0] @ inputs[1] / 3 * slope, rtol=1e-11)
    assert_allclose(nngp(inputs, name)[0, 1], value, rtol=1e-11)


def test_sine_in_closed_form():
    inputs, other = np.array([[1.0, 0.5]]), np.array([[0.2, -1.0]])
    covariance, half = (0.2 - 0.5) / 2, (1.25 + 1.04) / 4
    assert_allclose(
        mean_ntk(inputs, "sin", other),
        [[covariance * math.exp(-half) * math.cosh(covariance)]],
        rtol=1e-14,
    )
    assert_allclose(
        nngp(inputs, "sin", other), [[math.exp(-half) * math.sinh(covariance)]], rtol=1e-14
    )


@pytest.mark.parametrize(
    ("name", "factor", "zero"),
    [
        ("relu", 2.0, True),
        ("relu", -1.0, False),
        ("tanh", -1.0, True),
        ("softplus", -1.0, False),
        ("sin", 1.0, True),
    ],
)
def test_parallel_inputs_and_the_smallest_eigenvalue(name, factor, zero):
    # Duplicates are fatal for every activation, positive multiples for ReLU, negatives where sigma'
    # is even.
    first = np.array([0.6, 0.0, 0.3])
    found = spectrum(mean_ntk(np.stack([first, factor * first, [0.0, 0.7, 0.1]]), name))
    assert (found.smallest < 1e-12) == zero
    assert found.resolved == (not zero)


def test_linear_activation_has_rank_of_the_dimension():
    inputs = np.random.default_rng(0).normal(size=(5, 3))
    assert kappa(inputs, "linear") == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("relu", 3.7e-3), ("tanh", 1.2e-5), ("softplus", 1.5e-5), ("sin", 3.3e-6)],
)
def test_kappa_of_a_hundred_points_on_the_sphere(name, expected):
    # Magnitudes of another draw at n = 100, d = 50: the draw moves them by some per cent.
    inputs = np.random.default_rng(1).normal(size=(100, 50))
    inputs /= np.linalg.norm(inputs, axis=1, keepdims=True)
    assert kappa(inputs, name) == pytest.approx(expected, rel=0.25)


def test_wrong_inputs_are_named():
    with pytest.raises(ValueError, match="`inputs` must have shape"):
        mean_ntk(np.ones(3), "relu")
    with pytest.raises(ValueError, match="`other` must have 3 features"):
        mean_ntk(np.ones((2, 3)), "relu", np.ones((2, 4)))
