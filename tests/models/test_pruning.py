import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf

KEY = jax.random.key(0)
INPUTS = np.random.default_rng(0).normal(size=(7, 3))


def network(outputs=None, gamma=0.3):
    return wf.Shallow.init(
        KEY, features=3, width=6, scaling=wf.scalings.Zipf(gamma, 0.6), outputs=outputs
    )


def test_importance_by_hand():
    # lambda = (0.8, 0.2) for Zipf(0, 1/2) at width 2; |w|^2 = 1 and 25.
    net = wf.Shallow([[1.0, 0.0], [3.0, 4.0]], [1.0, -1.0], wf.scalings.Zipf(0.0, 0.5))
    assert_allclose(wf.importance(net), [0.8, 5.0], rtol=1e-14)
    assert_allclose(wf.importance(net, "released"), [0.8, 0.2], rtol=1e-14)
    wide = wf.Shallow([[1.0, 0.0], [3.0, 4.0]], np.ones((10, 2)), wf.scalings.Zipf(0.0, 0.5))
    assert_allclose(wf.importance(wide, "released"), [8.0, 2.0], rtol=1e-14)


@pytest.mark.parametrize("convention", ["paper", "released"])
@pytest.mark.parametrize("outputs", [None, 4])
def test_every_level_of_the_curve_is_the_pruned_network(outputs, convention):
    net = network(outputs)
    targets = np.random.default_rng(1).normal(size=(7,) if outputs is None else (7, outputs))
    curve = wf.pruning_curve(net, INPUTS, targets, convention=convention)
    assert list(curve.removed) == list(range(7))
    for removed in range(6):
        small = wf.prune(net, keep=6 - removed, convention=convention)
        assert small.width == 6 - removed
        assert_allclose(
            curve.risk[removed], np.mean((small.outputs(INPUTS) - targets) ** 2), rtol=1e-12
        )
    assert float(curve.risk[6]) == pytest.approx(float(np.mean(targets**2)), rel=1e-15)


def test_accuracy_and_cross_entropy_of_an_empty_network():
    targets = np.eye(4)[[0, 1, 2, 3, 0, 1, 2]]
    curve = wf.pruning_curve(network(4), INPUTS, targets)
    assert float(curve.cross_entropy[-1]) == pytest.approx(np.log(4.0), rel=1e-15)
    assert float(curve.accuracy[-1]) == pytest.approx(2 / 7)  # all outputs equal: class 0
    probabilities = jax.nn.softmax(network(4).outputs(INPUTS), axis=1)
    assert_allclose(
        curve.cross_entropy[0],
        -np.mean(np.sum(targets * np.log(probabilities), axis=1)),
        rtol=1e-12,
    )


def test_tiles_change_nothing():
    net, targets = network(4), np.random.default_rng(2).normal(size=(7, 4))
    whole, tiled = (wf.pruning_curve(net, INPUTS, targets, memory=m) for m in (None, 2000))
    assert_allclose(tiled.risk, whole.risk, rtol=1e-13)
    some = wf.pruning_curve(net, INPUTS, targets, levels=[0, 3, 6])
    assert_allclose(some.risk, whole.risk[jnp.array([0, 3, 6])], rtol=1e-14)


def test_ties_go_by_index():
    # Equal importance: pruning removes the lowest index first, features keep the lowest index
    # first.
    net = wf.Shallow([[1.0], [2.0], [3.0]], [1.0, 1.0, 1.0])
    assert_allclose(wf.prune(net, 1, convention="released").hidden, [[3.0]])
    assert_allclose(wf.features(net, [[1.0]], 1, scaled=False, convention="released"), [[1.0]])


def test_features_are_the_most_important_hidden_outputs():
    net = network()
    chosen = np.argsort(-np.asarray(wf.importance(net)), kind="stable")[:2]
    hidden = np.maximum(INPUTS @ np.asarray(net.hidden).T / np.sqrt(3), 0)
    assert_allclose(
        wf.features(net, INPUTS, 2), (hidden * np.asarray(net.scales))[:, chosen], rtol=1e-13
    )
    assert_allclose(wf.features(net, INPUTS, 2, scaled=False), hidden[:, chosen], rtol=1e-13)
    assert wf.features(net, INPUTS).shape == (7, 6)


def test_a_pruned_network_trains_on_and_keeps_its_factors():
    net = wf.prune(network(), keep=0.5)
    assert net.width == 3
    data = wf.Dataset(INPUTS, INPUTS[:, 0])
    run = wf.train(net, data, wf.GradientDescent(0.1), steps=20)
    assert float(run.table["loss"][-1]) < float(run.table["loss"][0])


def test_effective_nodes():
    equal = wf.Shallow(np.ones((5, 1)), np.ones(5))
    assert wf.models.effective_nodes(equal) == pytest.approx(5.0)
    assert wf.models.importance_share(equal, 2) == pytest.approx(0.4)


def test_errors():
    with pytest.raises(ValueError, match="`keep` must not exceed the width 6, got 7"):
        wf.prune(network(), 7)
    with pytest.raises(ValueError, match="`keep` must lie in"):
        wf.prune(network(), 1.5)
    with pytest.raises(ValueError, match="`convention` must be"):
        wf.importance(network(), "both")
    with pytest.raises(ValueError, match="`levels`"):
        wf.pruning_curve(network(), INPUTS, INPUTS[:, 0], levels=[8])
    with pytest.raises(ValueError, match="do not fit"):
        wf.pruning_curve(network(), INPUTS, np.ones((7, 2)))
    with pytest.raises(ValueError, match="`model` must be a `Shallow`"):
        wf.importance("net")
