"""A finite network in the field theory's parametrisation, trained by autodiff: shares nothing with the theory."""

import jax
import jax.numpy as jnp
import numpy as np


def trained(key, inputs, targets, phi, *, depth, width, rate, steps, richness):
    """Outputs (step, point) and features' Gram matrices (step, layer, point, point) along descent on half the squares."""

    def layers(weights):
        h = weights[0] @ inputs.T / np.sqrt(inputs.shape[1])
        hidden = [h]
        for weight in weights[1:-1]:
            h = weight @ phi(h) / np.sqrt(width)
            hidden.append(h)
        return hidden

    def outputs(weights):
        return weights[-1] @ phi(layers(weights)[-1]) / (richness * width)

    def loss(weights):
        return 0.5 * jnp.sum((outputs(weights) - targets) ** 2)

    def step(weights, _):
        grams = jnp.stack([phi(h).T @ phi(h) / width for h in layers(weights)])
        record = outputs(weights), grams
        gradient = jax.grad(loss)(weights)
        move = lambda w, g: w - rate * richness**2 * width * g
        return jax.tree.map(move, weights, gradient), record

    keys = jax.random.split(key, depth + 1)
    shapes = [(width, inputs.shape[1]), *[(width, width)] * (depth - 1), (width,)]
    start = [jax.random.normal(k, shape) for k, shape in zip(keys, shapes)]
    return jax.lax.scan(step, start, None, length=steps + 1)[1]
