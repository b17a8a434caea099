"""Conditionally symmetric clouds against brute enumeration of their orbits."""

import math

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from wideflow.papers.li2020.limits import hermite
from wideflow.papers.li2020.limits.sign_averages import (
    plateau_drift,
    sign_cumulants,
    sign_moments,
    symmetric_order_field,
    symmetric_order_losses,
)
from wideflow.papers.li2020.limits.symmetric_cloud import (
    SymmetricCloud,
    coupling,
    evolve,
    sign_group,
)


def draw(particles=3, features=4, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.uniform(0.5, 1.5, features)
    return rng.normal(size=(particles, features)) / math.sqrt(features), a / a.sum()


def all_signs(features):
    return np.array(np.meshgrid(*[[1, -1]] * features)).reshape(features, -1).T


def test_cumulants_of_a_random_sign():
    # tanh t = sum kappa_{2k} t^{2k-1} / (2k-1)!
    t = 0.1
    series = sum(
        k * t ** (2 * i + 1) / math.factorial(2 * i + 1) for i, k in enumerate(sign_cumulants(8))
    )
    assert_allclose(series, math.tanh(t), rtol=1e-15)


@pytest.mark.parametrize("order", [2, 4, 6, 8, 12, 16, 24])
def test_sign_moments_by_enumeration(order):
    x, y = np.random.default_rng(0).normal(size=(2, 2, 5)) / 2
    sums = np.einsum("sr,ir,jr->sij", all_signs(5), x, y)
    assert_allclose(sign_moments(x, y, order)[-1], (sums**order).mean(0), rtol=1e-9)


@pytest.mark.parametrize("order", [0, 2, 4, 6, 8, 12, 16])
def test_symmetric_orders_are_those_of_the_orbit(order):
    w, a = draw()
    orbit = np.concatenate([s * w for s in all_signs(4)])
    particles = np.concatenate([draw(5, seed=1)[0], 1.2 * np.eye(4)])  # zero coordinates too
    exact = hermite.order_field(particles, orbit, a, (order,))[0]
    assert_allclose(
        symmetric_order_field(particles, w, a, order), exact, atol=1e-10 * abs(exact).max()
    )
    assert_allclose(
        symmetric_order_losses(w, a, (order, 1)),
        [hermite.order_losses(orbit, a, order)[0], 0],
        rtol=1e-9,
        atol=1e-14,
    )


def test_printed_order_four_gradient_is_far_off():
    # (3.3) without multinomial coefficients replaces M_4 = 3 P_2^2 - 2 P_4 by P_2^2
    w, _a = draw()
    u = w / np.linalg.norm(w, axis=1, keepdims=True)
    squares = (u**2) @ (u**2).T
    assert abs(sign_moments(u, u, 4)[2] / squares**2 - 1).max() > 0.5


@pytest.mark.parametrize(
    ("kind", "variant"),
    [("full", "abs"), ("full", "relu2"), ("hadamard", "relu1"), ("pairs", "abs")],
)
def test_groups_are_closed_and_the_loss_is_that_of_the_orbit(kind, variant):
    group = sign_group(4, kind, variant)
    rows = {tuple(row) for row in group}
    assert all(
        tuple(x * y) in rows or (variant == "abs" and tuple(-x * y) in rows)
        for x in group
        for y in group
    )
    w, a = draw()
    cloud = SymmetricCloud(w, group, variant)
    assert_allclose(
        cloud.loss(a), hermite.population_loss(cloud.orbit(), a, variant=variant), rtol=1e-11
    )
    assert_allclose(
        cloud.field(w, a),
        hermite.population_gradient(cloud.orbit(), a, variant=variant)[: len(w)],
        atol=1e-13,
    )


@pytest.mark.parametrize("features", [4, 5, 8])
def test_hadamard_signs_make_the_second_moment_diagonal(features):
    cloud = SymmetricCloud.init(jax.random.key(0), features=features, particles=3, signs="hadamard")
    orbit = np.asarray(cloud.orbit())
    assert_allclose(orbit.T @ orbit / len(orbit), np.eye(features) / features, atol=1e-15)


def test_descent_keeps_the_symmetry():
    # Claim 3.1: the whole orbit as independent neurons moves as the orbit of the moved
    # representatives
    w, a = draw()
    cloud = SymmetricCloud(w)
    orbit, cap, rate = np.asarray(cloud.orbit()), 1.2, 0.2
    assert (np.sum(orbit**2, axis=1) > cap).any()  # truncation is on
    for _ in range(50):
        active = np.sum(orbit**2, axis=1, keepdims=True) <= cap
        orbit = orbit - rate * active * np.asarray(hermite.population_gradient(orbit, a))
    moved, run = evolve(cloud, a, rate, 50, cap=cap, every=25)
    assert_allclose(orbit, moved.orbit(), atol=1e-12)
    assert run.times.tolist() == [0, 5, 10]
    assert_allclose(run.losses[-1], hermite.population_loss(orbit, a), rtol=1e-9)


def test_coupling_vanishes_for_the_cloud_itself():
    w, a = draw(2, 3)
    cloud = SymmetricCloud(w)
    same = coupling(cloud.orbit(), cloud, a, 0.2, 20, every=10)
    assert_allclose(same.largest, 0, atol=1e-24)
    other = coupling(draw(6, 3, seed=3)[0], cloud, a, 0.2, 20, every=10)
    assert other.mean[0] == 0
    assert other.mean[-1] > 1e-4
    assert_allclose(
        other.mean[-1], np.mean(np.sum((other.network[-1] - other.tracers[-1]) ** 2, 1))
    )


def test_plateau_drift_in_an_isotropic_cloud():
    # E over an isotropic law of unit mass, by a product rule exact for degree four: spherical
    # design from signs and axes
    d = 4
    a = np.full(d, 1 / d)
    design = (
        np.concatenate([2 * np.eye(d), -2 * np.eye(d), all_signs(d)]) / 2
    )  # 24-cell: a spherical 5-design
    v = draw(3, d)[0]
    exact = -hermite.order_field(v, design, a, (4,))[0]
    assert_allclose(plateau_drift(v, a), exact, atol=1e-15)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda w, a: SymmetricCloud(w[0]), "representatives"),
        (lambda w, a: SymmetricCloud(w, np.ones((2, 3))), "signs"),
        (lambda w, a: sign_group(40), "kind"),
        (lambda w, a: sign_group(4, "cyclic"), "kind"),
        (lambda w, a: symmetric_order_field(w, w, a, 3), "order"),
        (lambda w, a: evolve(SymmetricCloud(w), a, -1.0, 3), "rate"),
    ],
)
def test_errors_name_the_argument(call, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        call(*draw())
