"""The Gaussian law of neurons at time zero, and the rate equations of stage 2."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from wideflow.papers.li2020.limits import hermite
from wideflow.papers.li2020.limits.gaussian_cloud import (
    gaussian_cloud_field,
    gaussian_cloud_loss,
    radial_mean,
    width_excess,
)
from wideflow.papers.li2020.limits.stage_rates import B0, C1, C2, potential, stage_flow, stage_rates


@pytest.mark.parametrize(("d", "expected"), [(10, 3.75295e-3), (30, 1.41543e-3), (100, 4.42786e-4)])
def test_loss_of_the_gaussian_cloud(d, expected):
    assert_allclose(gaussian_cloud_loss(np.full(d, 1 / d)), expected, rtol=2e-6)


def test_radial_mean_by_hand():
    # E|u_1| on the sphere: 1 on the line, 2/pi on the circle, 1/2 in space (Archimedes)
    assert_allclose([radial_mean(d) for d in (1, 2, 3)], [1, 2 / math.pi, 0.5], rtol=1e-14)


def test_a_fine_cloud_on_the_circle_is_the_gaussian_cloud():
    # in the plane the law N(0, I/2) meets 1-homogeneous functions only through E|w|^2 = 1 and
    # uniform angles
    t = np.pi * (np.arange(4000) + 0.5) / 4000
    ring = np.stack([np.cos(t), np.sin(t)], axis=1)
    a = np.array([0.3, 0.7])
    assert_allclose(hermite.population_loss(ring, a), gaussian_cloud_loss(a), rtol=1e-5)
    v = np.array([[0.3, -1.1], [2.0, 0.1]])
    assert_allclose(hermite.field(v, ring, a), gaussian_cloud_field(v, a), atol=1e-5)


def test_mean_excess_of_finite_networks():
    # mean over 400 networks against L_inf + excess, within four standard errors
    d, m, rng = 6, 8, np.random.default_rng(0)
    a = np.full(d, 1 / d)
    losses = np.array(
        [hermite.population_loss(rng.normal(size=(m, d)) / math.sqrt(d), a) for _ in range(400)]
    )
    expected = float(gaussian_cloud_loss(a)) + width_excess(d, m)
    assert abs(losses.mean() - expected) < 4 * losses.std() / 20


def test_rates_of_a_learned_and_of_a_lone_direction():
    # at gamma = a, beta = 0 nothing moves; constants are 2 b_2 and twice the sum of 4 c_{2j}, j >=
    # 2
    a = np.array([0.2, 0.8])
    assert_allclose(np.stack(stage_rates(a, 0 * a, a)), 0, atol=1e-15)
    assert_allclose(C2, 2 * 4 * (1 - 3 / math.pi), rtol=1e-14)
    gamma, beta = np.array([0.1, 0.8]), np.array([0.05, 0.0])
    grow, fade = stage_rates(gamma, beta, a)
    delta = 2 * B0 * -0.05
    assert_allclose(grow[0], 0.1 * (-delta + C1 * 0.05 + C2 * 0.1), rtol=1e-12)
    assert_allclose(fade[0], 0.05 * (-delta + C1 * 0.05), rtol=1e-12)


def test_growth_rate_of_a_basis_neuron_in_the_exact_field():
    # P: basis neurons of mass gamma on every axis. A basis neuron's squared length grows at the
    # rate equation's rate, exactly so because basis neurons meet only their own axis in every
    # order >= 2.
    d, g = 5, 0.15
    a = np.full(d, 1 / d)
    w = math.sqrt(d * g) * np.eye(d)
    rate = -2 * np.diag(hermite.population_gradient(w, a)) * np.diag(w) / d
    grow, _ = stage_rates(np.full(d, g), np.zeros(d), a)
    assert_allclose(rate, grow, rtol=1e-12)


def test_flow_reaches_the_target_and_the_potential_falls():
    a = np.full(4, 0.25)
    gamma, beta = stage_flow(np.full(4, 0.05), np.full(4, 0.2), a, np.linspace(0, 400, 5))
    # as beta fades the slow law is beta' = -(C1 C2/(C1 + C2)...) quadratic: small at the end, gamma
    # near a
    assert_allclose(gamma[-1] + beta[-1], a, atol=2e-3)
    phi = [float(potential(g, b, a)["Phi"]) for g, b in zip(gamma, beta)]
    assert all(later < earlier for earlier, later in itertools.pairwise(phi))
    assert float(potential(a, 0 * a, a)["Phi"]) == 0
