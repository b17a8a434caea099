"""The map to `Deep`: the same numbers as the network of the theory written out with NumPy and
autodiff.
"""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow._core.randomness import named_key
from wideflow.papers.bordelon2022.networks import trained_networks

X = np.random.default_rng(0).normal(size=(3, 5))
Y = np.array([1.0, -1.0, 0.5])


def test_descent_is_that_of_the_theorys_network():
    # h1 = W0 x/sqrt(D), h2 = W1 phi(h1)/sqrt(N), f = w phi(h2)/(gamma N), each step at rate eta
    # gamma^2 N
    width, gamma, eta, key = 7, 1.7, 0.2, jax.random.key(3)
    losses, outputs, kernels = trained_networks(
        key,
        X,
        Y,
        activation="tanh",
        depth=2,
        width=width,
        rate=eta,
        steps=2,
        richness=gamma,
        seeds=1,
    )
    start = wf.Deep.init(named_key(key, "network", 0), wf.mlp(2, width, "tanh"), 5, "mean-field")
    weights = [jnp.asarray(w) for w in start.weights]  # standard normal, (in, out)

    def hidden(weights):
        h1 = X @ weights[0] / np.sqrt(5)
        return h1, jnp.tanh(h1) @ weights[1] / np.sqrt(width)

    def f(weights):
        return (jnp.tanh(hidden(weights)[1]) @ weights[2])[:, 0] / (gamma * width)

    path = []
    for _ in range(3):
        path.append(f(weights))
        last = weights
        gradient = jax.grad(lambda w: 0.5 * jnp.sum((f(w) - Y) ** 2))(weights)
        weights = [w - eta * gamma**2 * width * g for w, g in zip(weights, gradient, strict=True)]
    assert_allclose(outputs[0], np.stack(path), atol=1e-12)
    assert_allclose(losses[0], [0.5 * np.sum((p - Y) ** 2) for p in path], rtol=1e-12)
    h1, h2 = map(np.asarray, hidden(last))
    features = [np.tanh(h) @ np.tanh(h).T / width for h in (h1, h2)]
    assert_allclose(kernels[0, 0], np.stack(features), atol=1e-12)
    # g2 = phi'(h2) w and g1 = phi'(h1) W1 g2/sqrt(N), the backward pass of the theory
    g2 = np.cosh(h2) ** -2 * np.asarray(last[2])[:, 0]
    g1 = np.cosh(h1) ** -2 * (g2 @ np.asarray(last[1]).T) / np.sqrt(width)
    assert_allclose(kernels[0, 1], np.stack([g @ g.T / width for g in (g1, g2)]), atol=1e-12)
