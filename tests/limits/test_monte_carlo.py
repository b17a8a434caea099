"""Kernels of drawn networks: unbiased at every width for one hidden layer, with errors that mean
what they say.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from wideflow.limits import monte_carlo_kernel

X = np.random.default_rng(5).standard_normal((3, 4))


class TwoLayers(eqx.Module):
    """f = W2 relu(W1 x / sqrt(d)) / sqrt(n), both layers standard normal."""

    first: jax.Array
    second: jax.Array

    def __init__(self, key, width=32, outputs=2):
        one, two = jax.random.split(key)
        self.first = jax.random.normal(one, (width, 4))
        self.second = jax.random.normal(two, (outputs, width))

    def outputs(self, inputs):
        hidden = jax.nn.relu(inputs @ self.first.T / 2)
        return hidden @ self.second.T / jnp.sqrt(self.first.shape[0])


@pytest.mark.parametrize("kernel", ["ntk", "nngp"])
def test_the_mean_is_the_limit_within_its_standard_errors(kernel):
    # with one hidden layer both kernels are means over independent units, so they are unbiased at
    # every width
    limit = getattr(wf.limits.kernels(wf.architecture.mlp(depth=1)), kernel)(X)
    estimate = monte_carlo_kernel(jax.random.key(0), TwoLayers, X, kernel=kernel, samples=300)
    distances = np.abs(np.asarray(estimate.mean) - np.asarray(limit)) / np.asarray(estimate.error)
    assert distances.max() < 4.5  # nine normal deviates, once in ten thousand
    assert np.asarray(estimate.error).max() < 0.1 * np.asarray(limit).max()


def test_a_network_of_ones_own_kernel_and_wrong_input():
    own = lambda net, x, x2: jnp.full((x.shape[0], x2.shape[0]), net.first[0, 0])
    estimate = monte_carlo_kernel(jax.random.key(1), TwoLayers, X, X[:2], samples=5, tangent=own)
    draws = [float(TwoLayers(key).first[0, 0]) for key in jax.random.split(jax.random.key(1), 5)]
    np.testing.assert_allclose(estimate.mean, np.full((3, 2), np.mean(draws)), rtol=1e-12)
    np.testing.assert_allclose(estimate.error, np.std(draws, ddof=1) / np.sqrt(5), rtol=1e-12)
    with pytest.raises(ValueError, match="`samples` must be"):
        monte_carlo_kernel(jax.random.key(1), TwoLayers, X, samples=1)


def test_deep_networks_are_drawn_inside_one_program():
    # one hidden layer: the mean of the empirical tangent kernel is the limit at every width
    chain = wf.mlp(1, 32, "relu", bias_std=0.3)
    draw = lambda key: wf.Deep.init(key, chain, 4)
    estimate = monte_carlo_kernel(jax.random.key(1), draw, X, samples=200)
    deviation = (estimate.mean - wf.limits.kernels(chain).ntk(X)) / estimate.error
    assert float(jnp.max(jnp.abs(deviation))) < 4.5  # six entries: one seed in ten thousand
