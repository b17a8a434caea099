"""Suprema against alternating maximisation and brute force; bounds beside them."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow import observables as obs


def setup(m=12, samples=8, seed=0):
    net = wf.BiasedThreeLayer.init(jax.random.key(seed), features=4, width=m, output_std=1.0)
    return net, wf.data.padded_sphere(jax.random.key(seed + 1), samples, 3)


def bilinear_value(net, x, xi, w, v):
    frozen = obs.signs(net, x)
    return float(
        np.sum(
            np.asarray(xi)
            * np.asarray(obs.pseudo_outputs(net, x, frozen, first=w, second=v, biases="none"))
        )
    )


def test_bilinear_sup_is_attained_and_not_exceeded():
    net, x = setup()
    rng = np.random.default_rng(0)
    for _ in range(2):
        xi = rng.choice([-1.0, 1.0], size=8)
        got = obs.bilinear_sup(net, x, xi, 0.7, 0.4)
        assert_allclose(obs.row_norm(got.first, 4.0), 0.7, rtol=1e-12)
        assert_allclose(np.linalg.norm(got.second), 0.4, rtol=1e-12)
        assert_allclose(bilinear_value(net, x, xi, got.first, got.second), got.value, rtol=1e-10)
        assert float(got.value) <= float(got.chain) * (1 + 1e-12)
        # alternating maximisation from random starts: V along its gradient, W by the oracle of its
        # ball
        frozen, best = obs.signs(net, x), 0.0
        rows = np.asarray(frozen.second * net.output) * xi[:, None]
        gated = np.asarray(frozen.first, float)[:, :, None] * np.asarray(x)[:, None, :]
        for _ in range(5):
            w = rng.normal(size=(12, 4))
            for _ in range(300):
                v = np.einsum("ni,nqd,qd->iq", rows, gated, w)
                v *= 0.4 / np.linalg.norm(v)
                w_gradient = np.einsum("ni,iq,nqd->qd", rows, v, gated)
                norms = np.linalg.norm(w_gradient, axis=1, keepdims=True)
                w = (
                    0.7
                    * w_gradient
                    * np.maximum(norms, 1e-30) ** (-2 / 3)
                    / np.sum(norms ** (4 / 3)) ** 0.25
                )
            best = max(best, bilinear_value(net, x, xi, w, v))
        assert best <= float(got.value) * (1 + 1e-10)
        assert_allclose(best, got.value, rtol=1e-6)


def test_bilinear_sup_of_a_network_that_is_off_is_zero_and_finite():
    # biases far below zero: no node is on, every B_q is zero, and the maximisers were 0 / 0
    net, x = setup()
    off = wf.BiasedThreeLayer(
        net.first, net.first_bias - 100.0, net.second, net.second_bias, net.output
    )
    got = obs.bilinear_sup(off, x, np.ones(8), 0.7, 0.4)
    assert_allclose(got.value, 0.0, atol=0)
    assert_allclose(got.first, np.zeros((12, 4)), atol=0)
    assert_allclose(got.second, np.zeros(np.shape(net.second)), atol=0)


def test_bilinear_rademacher_over_all_signs():
    net, x = setup(samples=5)
    xi = obs.rademacher_signs(jax.random.key(0), 5)
    assert xi.shape == (32, 5)
    exact, chain = obs.bilinear_rademacher(net, x, xi, 0.7, 0.4)
    bound = obs.bilinear_bound(net, 5, 0.7, 0.4)
    assert exact <= chain <= bound * 1.2
    assert 0.2 <= exact / bound <= 0.9


@pytest.mark.parametrize("power", [4.0, 2.0])
def test_oracle_is_the_maximiser(power):
    rng = np.random.default_rng(1)
    g = rng.normal(size=(6, 3))
    g[2] = 0.0
    w = np.asarray(obs.row_ball_oracle(g, 0.5, power))
    assert_allclose(obs.row_norm(w, power), 0.5, rtol=1e-12)
    dual = power / (power - 1)
    assert_allclose(
        np.sum(w * g), 0.5 * np.sum(np.linalg.norm(g, axis=1) ** dual) ** (1 / dual), rtol=1e-12
    )
    assert_allclose(w[2], 0.0)


def test_projection_is_the_nearest_point():
    rng = np.random.default_rng(2)
    w = rng.normal(size=(5, 3))
    p = np.asarray(obs.row_ball_projection(w, 0.8))
    assert_allclose(obs.row_norm(p, 4.0), 0.8, rtol=1e-9)
    for _ in range(300):  # variational inequality <w - p, z - p> <= 0 for z in the ball
        z = np.asarray(obs.row_ball_oracle(rng.normal(size=(5, 3)), 0.8))
        assert np.sum((w - p) * (z - p)) <= 1e-9
    inside = 0.01 * w
    assert_allclose(obs.row_ball_projection(inside, 0.8), inside)


def test_network_sup_is_a_reached_value_near_the_bilinear_one():
    net, x = setup(m=60, samples=10)
    xi = np.random.default_rng(3).choice([-1.0, 1.0], size=10)
    first, second = 60**-0.75, 0.5
    value = obs.network_sup(jax.random.key(0), net, x, xi, first, second, iterations=25)
    at_start = abs(float(np.sum(xi * np.asarray(net.outputs(x)))))
    bilinear = float(obs.bilinear_sup(net, x, xi, first, second).value)
    assert value > 0.5 * bilinear - at_start
    assert value < 4 * (bilinear + at_start)


def test_two_layer_sup_in_one_dimension():
    # one neuron, one sample: sup of xi a relu(w0 + w + b) over |w| <= tau is attained at the end of
    # the interval
    net = wf.BiasedTwoLayer([[0.3]], [0.1], [2.0])
    assert_allclose(
        obs.two_layer_sup(jax.random.key(0), net, [[1.0]], [1.0], 0.5), 2 * 0.9, rtol=1e-9
    )
    assert_allclose(
        obs.two_layer_sup(jax.random.key(0), net, [[1.0]], [-1.0], 0.5), 0.0, atol=1e-12
    )


def test_two_layer_complexity_obeys_lemma_g5():
    net = wf.BiasedTwoLayer.init(jax.random.key(0), features=4, width=50, output_std=1.0)
    x = wf.data.padded_sphere(jax.random.key(1), 20, 3)
    tau = 1 / 50
    ratios = []
    for i in range(12):
        xi = np.random.default_rng(i).choice([-1.0, 1.0], size=20)
        base = float(np.sum(xi * np.asarray(net.outputs(x))))
        ratios.append(
            (obs.two_layer_sup(jax.random.key(i), net, x, xi, tau) - base)
            / 20
            / obs.two_layer_bound(net, 20, tau)
        )
    assert 0.3 <= np.mean(ratios) <= 1.0


def test_gap_bounds_by_hand():
    net = wf.BiasedThreeLayer(
        [[3.0]], [0.0], [[2.0]], [0.0], [0.5], first_increment=[[1.0]], second_increment=[[-0.5]]
    )
    # spectral norms: a 0.5, W0 + W = 4, V0 + V = 1.5; (2,1) norms of the increments: 1 and 0.5
    expected = 0.5 * 4 * 1.5 * ((1 / 4) ** (2 / 3) + (0.5 / 1.5) ** (2 / 3)) ** 1.5 / 3
    assert_allclose(obs.gap_bound_variant1(net, 9), expected, rtol=1e-12)
    assert_allclose(obs.gap_bound_variant2(net, 9), (1.0 * 0.5 * 0.5 + 1) / 3, rtol=1e-12)


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="`draws`"):
        obs.rademacher_signs(jax.random.key(0), 20)


@pytest.mark.parametrize("output", [-1, 1])
def test_an_output_that_is_not_there_is_refused(output):
    # JAX clips an index: the sup of the last output was returned
    net, x = setup()
    two = wf.BiasedTwoLayer.init(jax.random.key(0), features=4, width=5, output_std=1.0)
    xi = np.ones(8)
    calls = [
        lambda: obs.bilinear_sup(net, x, xi, 1.0, 1.0, output=output),
        lambda: obs.two_layer_sup(jax.random.key(0), two, x, xi, 1.0, output=output),
        lambda: obs.two_layer_bound(two, 8, 1.0, output=output),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="`output` must be a whole number of at least 0"):
            call()
