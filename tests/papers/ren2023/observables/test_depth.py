"""Observables of the learner against brute force and hand-made runs."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from wideflow.papers.ren2023.depth_separator import DepthSeparator
from wideflow.papers.ren2023.laws.base import sphere
from wideflow.papers.ren2023.observables import depth
from wideflow.papers.ren2023.observables.sphere_extremes import sphere_extremes

FIRST = np.asarray(sphere(jax.random.key(0), 30, 3)) * np.linspace(0.8, 1.2, 30)[:, None]
W, B = np.array([-0.6, -0.9]), np.array([0.7, 0.8])
X = np.random.default_rng(1).normal(size=(200, 3))


def net(first=FIRST):
    return DepthSeparator(first, W, B)


def test_spreads_by_hand():
    start = DepthSeparator([[1.0, 0.0], [0.0, 2.0]], W, B)
    end = DepthSeparator([[0.0, 1.0], [0.0, 4.0]], W, B)
    assert float(depth.tangent_spread(end, start)) == pytest.approx(2**0.5)
    assert float(depth.radial_spread(end)) == pytest.approx(16 / 8.5 - 1)
    assert float(depth.second_spread(W, B)) == pytest.approx((0.09 + 0.01) ** 0.5)


def test_loss_parts_add_up_and_are_what_they_say():
    model = net()
    parts = depth.loss_parts(model, X)
    assert_allclose(parts.total, parts.symmetric + parts.asymmetric + parts.cross, rtol=1e-12)
    r = np.linalg.norm(X, axis=1)
    alpha = float(model.alpha)
    tilde = np.maximum(W * alpha * r[:, None] + B, 0).mean(1)
    assert_allclose(parts.symmetric, 0.5 * np.mean((np.maximum(1 - r, 0) - tilde) ** 2), rtol=1e-12)
    inside = r <= B.mean() / (-W.mean() * alpha)
    gap = (alpha * r - np.asarray(model.layer(X))) * inside
    assert_allclose(parts.predicted, 0.5 * W.mean() ** 2 * np.mean(gap**2), rtol=1e-12)


def test_extremes_bound_a_fine_grid_in_the_plane():
    # in two dimensions the sphere is a circle, which a fine grid exhausts
    model = DepthSeparator(FIRST[:12, :2], W, B)
    angle = np.linspace(0, 2 * np.pi, 200_001)
    layer = np.asarray(model.layer(np.stack([np.cos(angle), np.sin(angle)], axis=1)))
    ends = sphere_extremes(model)
    assert_allclose([ends.low, ends.high], [layer.min(), layer.max()], rtol=2e-5)


def test_ascent_beats_random_directions():
    first = sphere(jax.random.key(5), 128, 30)
    model = DepthSeparator(first, W, B)
    sampled = float(depth.direction_sup_sampled(model, jax.random.key(1), 2000))
    assert float(depth.direction_sup(model, starts=16, iterations=80)) > 1.5 * sampled


def test_partition_separates_active_from_dead():
    model = net()
    low, high = (float(x) for x in depth.partition_radii(model))
    directions = np.asarray(sphere(jax.random.key(3), 500, 3))
    layer = np.asarray(model.layer(directions))[:, None]
    assert np.all(W * layer * (0.999 * low) + B > 0)
    assert np.all(W * layer * (1.001 * high) + B < 0)
    near, far = (float(x) for x in depth.partition_radii(model, directions))
    assert low <= near * 1.0001
    assert far <= high * 1.0001


def test_dead_fraction_and_gap():
    model = DepthSeparator(FIRST, [-0.6, -0.9], [0.7, -0.1])
    assert float(depth.dead_fraction(model, X)) == 0.5
    f, tilde = np.asarray(model.outputs(X)), np.asarray(model.symmetric(np.linalg.norm(X, axis=1)))
    inside = np.linalg.norm(X, axis=1) <= 2
    assert float(depth.symmetry_gap(model, X, 2.0)) == pytest.approx(
        np.max(np.abs(f - tilde)[inside])
    )


def test_envelopes():
    values = [1.0, 3.0, 2.0, 2.5]
    assert_allclose(depth.envelope(values, "raw"), values)
    assert_allclose(depth.envelope(values, "running_max"), [1, 3, 3, 3])
    assert_allclose(depth.envelope(values, "positive_variation"), [1, 3, 3, 3.5])
    with pytest.raises(ValueError, match="`kind`"):
        depth.envelope(values, "max")


def test_stage_times_of_a_hand_made_run():
    # both weights fall linearly, w = w0 - t; biases equal, so delta_2 = 0.1 throughout
    t = np.arange(0.0, 6.0)
    w = np.array([0.55, 0.45]) - t[:, None]
    loss = 1.0 / (1 + t)
    found = depth.stage_times(t, w, np.full_like(w, 0.3), loss, d=2, bound=0.5, epsilon=0.25)
    # all negative at t = 0.55; -mean = 2 * 0.1 at t = 0.7; -mean = 1 / 0.5 at t = 2.5; loss 1/4 at
    # t = 3
    assert_allclose([found.t11, found.t12, found.t1, found.t2], [0.55, 0.7, 2.5, 3.0], rtol=1e-12)
    assert found.order_ok
    assert found.level_time == pytest.approx(2.5)
    never = depth.stage_times(t, w, np.full_like(w, 0.3), loss, d=2, bound=0.5, epsilon=0.01)
    assert never.t2 == np.inf


def test_energy_balance():
    assert float(depth.energy_balance(net())) == pytest.approx(
        np.mean(np.sum(FIRST**2, axis=1)) - 2 * np.mean(W**2)
    )
