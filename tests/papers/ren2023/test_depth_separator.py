"""The stack and the learner against autodiff, symmetry and hand derivations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from wideflow._core.trees import parameters
from wideflow.models.base import pullback_by_autodiff
from wideflow.models.mean_field_stack import MeanFieldStack
from wideflow.papers.ren2023.depth_separator import DepthSeparator

KEY = jax.random.key(4)


def stack(blocks: int, activation="relu"):
    dimensions = {2: (3, 2, 1), 3: (4, 2, 3, 2)}[blocks]
    return MeanFieldStack.init(
        KEY, dimensions=dimensions, widths=(5, 4, 6)[:blocks], activation=activation
    )


@pytest.mark.parametrize("blocks", [2, 3])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_back_propagation_through_blocks_is_the_derivative(blocks, activation):
    net = stack(blocks, activation)
    x = jax.random.normal(jax.random.key(1), (7, net.inners[0].shape[1]))
    c = jax.random.normal(jax.random.key(2), (7, net.outers[-1].shape[0]))
    outputs, pull = net.pullback(x)
    witness_outputs, witness = pullback_by_autodiff(net, x)
    assert_allclose(outputs, witness_outputs, rtol=1e-13)
    for name, value in pull(c).items():
        assert_allclose(value, witness(c)[name], rtol=1e-11, atol=1e-14)
        assert value.shape == parameters(net)[name].shape


def test_stack_by_hand():
    # D = 2: F = (1/2) [a_1 relu(w_1 x) + a_2 relu(w_2 x)] with one active neuron, then one neuron
    # of weight 1
    net = MeanFieldStack(
        [([[2.0, 0.0], [0.0, 3.0]], [[1.0, 1.0], [-1.0, 0.0]]), ([[5.0]], [[1.0, 1.0]])]
    )
    features = net.features(jnp.array([2.0, 1.0]))
    assert_allclose(features[1], [3.0, 0.0])  # 2 * 3 / 2 and 3 * relu(-2) / 2
    assert_allclose(features[2], [15.0])


def test_permuting_neurons_and_bottlenecks_changes_nothing():
    net = stack(3)
    x = jax.random.normal(jax.random.key(1), (6, 4))
    order = jnp.array([3, 0, 4, 1, 2])
    (a1, w1), (a2, w2), last = zip(net.outers, net.inners, strict=True)
    shuffled = MeanFieldStack([(a1[:, order], w1[order]), (a2, w2), last])
    assert_allclose(shuffled.outputs(x), net.outputs(x), rtol=1e-13)
    relabelled = MeanFieldStack([(a1[::-1], w1), (a2, w2[:, ::-1]), last])
    assert_allclose(relabelled.outputs(x), net.outputs(x), rtol=1e-13)


def test_weighted_neurons_are_repeated_neurons():
    (a, w), second = zip(*(stack(2).outers, stack(2).inners), strict=True)
    weighted = MeanFieldStack([(a[:, :3], w[:3]), second], weights=[[0.5, 0.25, 0.25], None])
    repeated = MeanFieldStack([(a[:, jnp.array([0, 0, 1, 2])], w[jnp.array([0, 0, 1, 2])]), second])
    x = jax.random.normal(jax.random.key(1), (6, 3))
    assert_allclose(weighted.outputs(x), repeated.outputs(x), rtol=1e-13)
    c = jnp.ones((6, 1))
    fast = {
        n: jnp.asarray(weighted.rate_factors()[n]) * g
        for n, g in weighted.pullback(x)[1](c).items()
    }
    slow = {
        n: jnp.asarray(repeated.rate_factors()[n]) * g
        for n, g in repeated.pullback(x)[1](c).items()
    }
    assert_allclose(fast["inner_1"][0], slow["inner_1"][0], rtol=1e-12)
    assert_allclose(fast["outer_1"][:, 2], slow["outer_1"][:, 3], rtol=1e-12)


def test_a_large_sample_of_neurons_computes_the_same_function():
    net = stack(2)
    wide = net.resample(jax.random.key(9), (40_000, 40_000))
    x = jax.random.normal(jax.random.key(1), (5, 3))
    assert_allclose(
        wide.outputs(x), net.outputs(x), atol=0.05
    )  # 1/sqrt(40 000) times the spread of neurons


def learner(seed=0, d=4, width=6, second=3):
    rng = np.random.default_rng(seed)
    return DepthSeparator(
        rng.normal(size=(width, d)), -rng.uniform(0.2, 1, second), rng.uniform(0.2, 1, second)
    )


def test_learner_pullback_is_the_derivative():
    net = learner()
    x = jax.random.normal(jax.random.key(1), (9, 4))
    c = jax.random.normal(jax.random.key(2), (9,))
    witness = pullback_by_autodiff(net, x)[1](c)
    for name, value in net.pullback(x)[1](c).items():
        assert_allclose(value, witness[name], rtol=1e-11, atol=1e-14)


def test_learner_is_a_stack_of_two_blocks():
    net = learner()
    x = jax.random.normal(jax.random.key(1), (9, 4))
    padded = jnp.concatenate([x, jnp.ones((9, 1))], axis=1)
    assert_allclose(net.as_stack().outputs(padded)[:, 0], net.outputs(x), rtol=1e-13)


def test_learner_homogeneity_and_start():
    net = learner()
    x = jnp.array([0.3, -1.0, 0.5, 2.0])
    assert_allclose(net.layer(3 * x), 3 * net.layer(x), rtol=1e-13)
    doubled = DepthSeparator(2 * net.first, net.second_weight, net.second_bias)
    assert_allclose(doubled.layer(x), 4 * net.layer(x), rtol=1e-13)
    start = DepthSeparator.init(KEY, features=10, width=50, second=7, deviation=1e-4)
    assert_allclose(jnp.linalg.norm(start.first, axis=1), 10**-0.5, rtol=1e-12)
    assert_allclose(
        start.alpha, 0.4091246 * 10**-1.5, rtol=2e-2
    )  # C_gamma d^(-3/2), C_gamma(10) near 0.409
    assert_allclose(start.second_bias, 0.3)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DepthSeparator(np.ones(3), [1.0], [1.0]), "`first`"),
        (lambda: DepthSeparator(np.ones((3, 2)), [1.0, 2.0], [1.0]), "`second_weight`"),
        (lambda: DepthSeparator(np.full((3, 2), np.nan), [1.0], [1.0]), "`first`"),
        (lambda: learner().outputs(np.ones((2, 5))), "features"),
        (lambda: MeanFieldStack([]), "`layers`"),
        (
            lambda: MeanFieldStack(
                [(np.ones((2, 3)), np.ones((3, 4))), (np.ones((1, 2)), np.ones((2, 3)))]
            ),
            r"`layers\[1\]`",
        ),
        (
            lambda: MeanFieldStack([(np.ones((2, 3)), np.ones((3, 4)))], weights=[[1.0, 1.0, 1.0]]),
            r"`weights\[0\]`",
        ),
        (lambda: DepthSeparator.init(KEY, features=3, width=4, second=2, radius=-1.0), "`radius`"),
    ],
)
def test_bad_arguments_are_named(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_automatic_gradient_of_a_layer_with_a_zero_neuron():
    # F = |w| relu(w x) / 2 with w = (0, 0), (1, 2): a neuron of norm 0 has slope 0
    x = jnp.array([[1.0, 1.0]])
    layer = lambda first: DepthSeparator(first, [0.5], [0.4]).respond(x)[0]
    first = jnp.array([[0.0, 0.0], [1.0, 2.0]])
    slope = jax.grad(layer)(first)
    expected = DepthSeparator(first, [0.5], [0.4]).pullback(x)[1](jnp.ones(1))["first"]
    assert_allclose(slope, expected, rtol=1e-14)
    assert_allclose(slope[0], 0.0)
