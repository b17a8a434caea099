r"""Finite networks in the paper's parametrisation: $f = w \cdot \phi(h^L)/(\gamma_0 N)$, rate $\eta\gamma_0^2 N$, half the sum of squares."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.activations import activation as as_activation
from ..._core.precision import double
from ..._core.randomness import named_key


@double
def trained_networks(
    key, inputs, targets, *, activation, depth, width, rate, steps, richness, seeds
):
    """Losses (seed, step), outputs (seed, step, point), and last features' Gram matrices at the end (seed, layer, point, point)."""
    settings = activation, depth, width, float(rate), steps, float(richness)
    data = jnp.asarray(inputs, float), jnp.asarray(targets, float)
    runs = [_train(named_key(key, "network", seed), *data, *settings) for seed in range(seeds)]
    outputs, grams = (jnp.stack(part) for part in zip(*runs))
    return 0.5 * jnp.sum((outputs - data[1]) ** 2, axis=-1), outputs, grams


@functools.partial(jax.jit, static_argnums=(3, 4, 5, 6, 7, 8))
def _train(key, inputs, targets, activation, depth, width, rate, steps, richness):
    phi = as_activation(activation).call
    shapes = [(width, inputs.shape[1]), *[(width, width)] * (depth - 1), (width,)]
    weights = [jax.random.normal(named_key(key, l), shape) for l, shape in enumerate(shapes)]

    def hidden(weights):
        layers = [weights[0] @ inputs.T / np.sqrt(inputs.shape[1])]
        for weight in weights[1:-1]:
            layers.append(weight @ phi(layers[-1]) / np.sqrt(width))
        return layers

    def outputs(weights):
        return weights[-1] @ phi(hidden(weights)[-1]) / (richness * width)

    def loss(weights):
        return 0.5 * jnp.sum((outputs(weights) - targets) ** 2)

    def step(weights, _):
        gradient = jax.grad(loss)(weights)
        move = lambda w, g: w - rate * richness**2 * width * g
        return jax.tree.map(move, weights, gradient), outputs(weights)

    before_last, path = jax.lax.scan(step, weights, None, length=steps)
    grams = jnp.stack([phi(h).T @ phi(h) / width for h in hidden(before_last)])
    return jnp.concatenate([path, outputs(before_last)[None]]), grams
