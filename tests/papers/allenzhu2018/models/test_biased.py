"""The learners of allenzhu2018 by hand, by autodiff, and in law."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow._core.trees import parameters, with_parameters
from wideflow.models.base import pullback_by_autodiff


def two_layer(outputs=None, seed=0):
    net = wf.BiasedTwoLayer.init(
        jax.random.key(seed), features=3, width=5, output_std=0.7, outputs=outputs
    )
    return with_parameters(
        net, {"increment": jax.random.normal(jax.random.key(seed + 1), (5, 3)) * 0.3}
    )


def three_layer(outputs=None, seed=0):
    net = wf.BiasedThreeLayer.init(
        jax.random.key(seed), features=3, width=5, second_width=4, output_std=0.7, outputs=outputs
    )
    w = jax.random.normal(jax.random.key(seed + 1), (5, 3)) * 0.3
    v = jax.random.normal(jax.random.key(seed + 2), (4, 5)) * 0.3
    return with_parameters(net, {"first_increment": w, "second_increment": v})


def test_two_layers_by_hand():
    net = wf.BiasedTwoLayer(
        [[1.0, 0.0], [0.0, -1.0]],
        [0.0, 2.0],
        [[1.0, 0.5], [2.0, -1.0]],
        increment=[[1.0, 0.0], [0.0, 0.0]],
    )
    # relu(2 * 3) = 6, relu(-1 + 2) = 1
    assert_allclose(net([3.0, 1.0]), [6.5, 11.0])


def test_three_layers_by_hand():
    net = wf.BiasedThreeLayer([[1.0], [-1.0]], [0.0, 1.0], [[1.0, 2.0]], [-1.0], [3.0], scale=0.5)
    # x = 0.5: u = (0.5, 0.5), q = 0.5 + 1 - 1 = 0.5, f = 0.5 * 3 * 0.5
    assert_allclose(net([0.5]), 0.75)


@pytest.mark.parametrize(
    "net", [two_layer(), two_layer(2), three_layer(), three_layer(3)], ids=["2", "2k", "3", "3k"]
)
def test_pullback_is_the_autodiff_one(net):
    x = jax.random.normal(jax.random.key(9), (7, 3))
    outputs, pull = net.pullback(x)
    witness, other = pullback_by_autodiff(net, x)
    cotangent = jax.random.normal(jax.random.key(8), outputs.shape)
    assert_allclose(outputs, witness, rtol=1e-13)
    for name, value in pull(cotangent).items():
        assert_allclose(value, other(cotangent)[name], rtol=1e-12, atol=1e-14)


def test_derivative_at_zero_is_one():
    # z = 0 exactly: the neuron counts as active, in the structured gradient and under autodiff
    net = wf.BiasedTwoLayer([[0.0, 0.0]], [0.0], [2.0])
    x = jnp.array([[1.0, 3.0]])
    assert_allclose(net.pullback(x)[1](jnp.ones(1))["increment"], [[2.0, 6.0]])
    gradient = jax.grad(lambda p: with_parameters(net, p).respond(x)[0])(parameters(net))
    assert_allclose(gradient["increment"], [[2.0, 6.0]])


def test_initial_law():
    width = 200_000
    net = wf.BiasedTwoLayer.init(jax.random.key(3), features=4, width=width, output_std=0.3)
    x = jnp.array([[0.5, 0.5, 0.5, 0.5]])
    z = np.sqrt(width) * np.asarray(net.preactivations(x)[0])
    # E |relu(W x + b)|^2 = 1/2 (1/2 + 3/2) = 1; the variance of relu^2 is (3/2 + 27/2) / 2 - 1 =
    # 6.5
    assert_allclose(np.mean(np.maximum(z, 0) ** 2), 1.0, atol=4 * np.sqrt(6.5 / width))
    assert_allclose(np.mean(np.asarray(net.bias) == 0), 0.5, atol=4 * 0.5 / np.sqrt(width))
    assert_allclose(np.std(np.asarray(net.output)), 0.3, rtol=4 / np.sqrt(2 * width))
    # the density at 0 is n(0) (1 + 1/sqrt 3) / 2 = 0.314636
    assert_allclose(
        np.mean(np.abs(z) < 0.05) / 0.1, 0.314636, atol=4 * np.sqrt(0.0315 / width) / 0.1 + 1e-3
    )


def test_initial_three_layer_output_has_deviation_near_output_std():
    x = jnp.array([[0.6, 0.0, 0.8]])
    nets = (
        wf.BiasedThreeLayer.init(jax.random.key(i), features=3, width=60, output_std=0.5)
        for i in range(200)
    )
    values = [float(net.outputs(x)[0]) for net in nets]
    assert_allclose(np.std(values), 0.5, rtol=4 / np.sqrt(400) + 0.05)  # 0.05: kurtosis at width 60


def test_two_names_never_share_randomness():
    net = wf.BiasedThreeLayer.init(jax.random.key(0), features=4, width=4, output_std=1.0)
    assert not np.allclose(net.first, net.second)
    assert not np.allclose(net.first_bias, net.second_bias)


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="`bias`"):
        wf.BiasedTwoLayer([[1.0, 0.0]], [0.0, 1.0], [1.0])
    with pytest.raises(ValueError, match="`output`"):
        wf.BiasedTwoLayer([[1.0, 0.0]], [0.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="`second`"):
        wf.BiasedThreeLayer([[1.0]], [0.0], [[1.0, 2.0]], [0.0], [1.0])
    with pytest.raises(ValueError, match="`output_std`"):
        wf.BiasedTwoLayer.init(jax.random.key(0), features=2, width=2, output_std=0.0)
