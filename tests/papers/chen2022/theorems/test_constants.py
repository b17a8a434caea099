"""Constants of chen2022 against hand values, quadrature and the printed counterexamples."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from wideflow._core.activations import activation, leaky_relu
from wideflow.papers.chen2022 import theorems as ch


@pytest.mark.parametrize(
    ("act", "interval", "floor"),
    [
        ("relu", (0.0, 2.0), 1.0),
        ("relu", (-1.0, 2.0), 0.0),
        (leaky_relu(0.1), (-1.0, 2.0), 0.1),
        ("tanh", (-1.0, 1.0), 1 / math.cosh(1) ** 2),
        ("tanh", (-0.5, 2.0), 1 / math.cosh(2) ** 2),
        ("sigmoid", (-1.5, 1.5), 1 / (2 + 2 * math.cosh(1.5))),
        ("erf", (-1.0, 1.0), 2 / math.sqrt(math.pi) / math.e),
        ("sin", (-1.0, 2.0), 0.0),  # cos changes sign at pi/2
        ("linear", (-3.0, 1.0), 1.0),
        ("abs", (0.0, 1.0), 1.0),
        ("abs", (-1.0, 1.0), 0.0),  # a neuron that sticks to the kink has any slope in [-1, 1]
    ],
    ids=str,
)
def test_slope_floor(act, interval, floor):
    assert ch.slope_floor(act, interval) == pytest.approx(floor, abs=1e-12)


@pytest.mark.parametrize(
    ("act", "variance", "end"),
    [("relu", 1.0, 2.71), ("relu", 4.0, 5.42), ("tanh", 1.0, 1.37), ("tanh", 0.3, 1.29)],
)
def test_suggested_interval(act, variance, end):
    assert ch.suggested_interval(act, variance)[1] == pytest.approx(end, abs=0.02)


def test_kappa_by_hand():
    # l1 = 1, l2 = 4, G_max = 3, K = 1/2, len = 2
    assert ch.kappa(1, 4, 3, 0.5, (-1, 1)) == pytest.approx(9 * 4 / (math.sqrt(2) * 0.5 * 2))
    assert ch.kappa(1, 4, 3, 0.5, (-1, 1), "sharp") == pytest.approx(
        9 * math.sqrt(3) / (math.sqrt(2) * 0.5 * 2)
    )
    assert ch.kappa(1, 4, 3, 0.5, (-1, 1), "printed") == pytest.approx(9 * 4 * 2 / (2 * 0.5))


def test_sharp_is_never_larger():
    rng = np.random.default_rng(0)
    for _ in range(50):
        root = rng.normal(size=(4, 6))
        gram = root @ root.T
        values, diagonal = np.linalg.eigvalsh(gram), np.diag(gram).max()
        parts = values[0], values[-1], diagonal, 0.3, (-1.0, 2.0)
        assert ch.kappa(*parts, "sharp") <= ch.kappa(*parts) * (1 + 1e-12)


@pytest.mark.parametrize("interval", [(-1.0, 1.0), (0.0, 2.7), (2.0, 3.0), (-0.3, 0.1)])
@pytest.mark.parametrize("variance", [0.2, 1.0, 5.0])
def test_the_bound_on_the_active_share_is_below_the_exact_one(interval, variance):
    third = (interval[1] - interval[0]) / 3
    mass = norm.cdf(interval[1] - third, scale=variance**0.5) - norm.cdf(
        interval[0] + third, scale=variance**0.5
    )
    exact = ch.active_floor_exact(interval, [variance])
    assert exact == pytest.approx(mass / 2, rel=1e-10)
    assert ch.active_floor(interval, variance, variance) <= exact


def test_the_printed_bound_on_the_active_share_is_false():
    # I = (2, 3), G = 1: printed 3.31e-3 against the true 2.99e-3
    printed = ch.active_floor((2.0, 3.0), 1.0, 1.0, "printed")
    assert printed == pytest.approx(3.31e-3, rel=2e-3)
    assert printed > ch.active_floor_exact((2.0, 3.0), [1.0]) == pytest.approx(2.99e-3, rel=2e-3)


def test_proxies_with_and_without_offset():
    assert_allclose(ch.output_proxies(activation("tanh"), 2.0, [1.0, 3.0]), [4.0, 12.0])
    # sigmoid: sigma(0) = 1/2, L = 1/4: 2 * 4 * (1/4 + g/16)
    assert_allclose(ch.output_proxies(activation("sigmoid"), 2.0, [1.0, 3.0]), [2.5, 3.5])


def test_widths_by_hand():
    # sum v = 2, n = 2, p = 0.1, |y| = 1
    assert ch.width_for_loss([1.0, 1.0], 1.0, 0.1) == pytest.approx(
        4 * math.log(40) / (math.sqrt(2) - 1) ** 2
    )
    assert ch.width_for_activity(0.1, 5, 0.05) == pytest.approx(math.log(100) / 0.02)
    assert ch.width_for_activity(1e-200, 5, 0.05) == math.inf  # beyond 1e308


def test_features_for_gram_has_the_stated_leading_term():
    # D_min(p/2, l/2) ~ 16 b^2 n^2 log(4 n^2/p) / l^2 for small l
    b, n, p, l = 1.3, 7, 0.1, 1e-6
    assert ch.features_for_gram(b, n, p / 2, l / 2) == pytest.approx(
        16 * b**2 * n**2 * math.log(4 * n**2 / p) / l**2, rel=1e-5
    )
    assert ch.sub_gaussian_bound([[3.0, 4.0], [1.0, 0.0]], 2.0) == pytest.approx(4 * 8 / 3 * 25 / 2)


def test_psi_two_norm_of_a_gaussian():
    # E exp(Z^2 / t^2) = (1 - 2/t^2)^(-1/2) = 2 at t^2 = 8/3
    square = 8 / 3
    assert_allclose((1 - 2 / square) ** -0.5, 2.0)
