"""Numbers that the lab looks at, against what they are defined by."""

import equinox as eqx
import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.observables import (
    FeaturePair,
    KernelDistance,
    LinearisationGap,
    NeuronPlaces,
    OutputsAt,
    tangent_gram,
)
from wideflow.probe import linearisation_gap, probe


@pytest.fixture(scope="module")
def run():
    key = jax.random.key(1)
    data = wf.data.waves(key, samples=7, inputs=1, noise=0.1)
    net = wf.Shallow.init(
        key, features=2, width=12, scaling=wf.scalings.MeanField(), activation="tanh"
    )
    grid = np.stack([np.linspace(-1, 1, 5), np.ones(5)], axis=1)
    record = [KernelDistance(), LinearisationGap(), OutputsAt(grid), NeuronPlaces(), FeaturePair()]
    return (
        data,
        grid,
        wf.train(net, data, wf.GradientDescent(0.5), steps=40, every=40, record=record),
    )


def test_the_two_numbers_of_the_regime_are_those_of_probe(run):
    data, _, done = run
    apply = lambda weights, x: eqx.tree_at(lambda net: net.weights, done.start, weights)(x)
    told = probe(apply, done.start.weights, done.model.weights, data.inputs)  # by Jacobians
    assert float(done.table.kernel_change[-1]) == pytest.approx(told.regime.kernel_change)
    assert float(done.table.linearisation_gap[-1]) == pytest.approx(told.regime.linearisation_gap)
    assert float(done.table.linearisation_gap[-1]) == pytest.approx(
        linearisation_gap(done.start, done.model, data.inputs)
    )
    assert done.table.kernel_change.values[0] < 1e-14
    assert done.table.linearisation_gap.values[0] == 0
    before, after = (np.asarray(tangent_gram(net, data.inputs)) for net in (done.start, done.model))
    change = np.linalg.norm(after - before) / np.linalg.norm(before)
    assert float(done.table.kernel_change[-1]) == pytest.approx(change)


def test_a_linear_network_is_exactly_lazy():
    # f is linear in w: the kernel is constant and first order misses nothing
    key = jax.random.key(0)
    data = wf.data.sphere_sines(key, samples=5, features=3)
    net = wf.Shallow.init(key, features=3, width=8, activation="linear")
    table = wf.train(
        net,
        data,
        wf.GradientDescent(0.5),
        steps=20,
        every=20,
        record=[KernelDistance(), LinearisationGap()],
    ).table
    assert_allclose(table.kernel_change.values, 0, atol=1e-14)
    assert_allclose(table.linearisation_gap.values, 0, atol=1e-12)


def test_function_places_and_features_are_those_of_the_model(run):
    data, grid, done = run
    assert_allclose(done.table.learned_function[-1], [float(done.model(x)) for x in grid])
    w = np.asarray(done.model.hidden)
    assert_allclose(done.table.neuron_places[-1], [-w[:, 1] / w[:, 0]])
    at_kink = np.stack([done.table.neuron_places.values[-1, 0], np.ones(12)], axis=1)
    assert_allclose(np.diag(np.asarray(done.model.preactivations(at_kink))), 0, atol=1e-12)
    assert_allclose(
        done.table.feature_pair[-1], np.asarray(done.model.preactivations(data.inputs[:2]))
    )


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_waves_lie_in_the_unit_ball_and_follow_their_formula(inputs):
    data = wf.data.waves(jax.random.key(3), 50, inputs, noise=0.0, frequency=1.0)
    assert data.features[-1] == "bias"
    assert np.linalg.norm(data.inputs, axis=1).max() <= 1
    x = data.inputs[:, :-1] / data.inputs[:, -1:]
    assert np.abs(x).max() <= 1
    assert_allclose(data.targets, np.prod(np.sin(np.pi * x), axis=1), atol=1e-12)
