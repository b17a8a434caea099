import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from wideflow._core.scalings import NTK, Zipf
from wideflow.limits.kernels import mean_ntk
from wideflow.papers.caron2023.limits.node_limit import node_limit, train_node_limit

RNG = np.random.default_rng(8)
INPUTS = RNG.normal(size=(6, 4))
INPUTS /= np.linalg.norm(INPUTS, axis=1, keepdims=True)
TARGETS = RNG.normal(size=6)


def test_symmetric_scaling_is_kernel_descent():
    # No moving node: u_k - y = (1 - eta Theta*)^k (u_0 - y).
    start = node_limit(jax.random.key(0), INPUTS, NTK(), "relu")
    path = train_node_limit(start, TARGETS, rate=0.7, steps=20, every=5)
    shrink = np.linalg.matrix_power(np.eye(6) - 0.7 * np.asarray(mean_ntk(INPUTS, "relu")), 20)
    assert_allclose(
        path.outputs[-1] - TARGETS, shrink @ (np.asarray(path.outputs[0]) - TARGETS), atol=1e-12
    )
    assert_allclose(path.time, [0.0, 3.5, 7.0, 10.5, 14.0])


@functools.partial(jax.jit, static_argnums=2)
def descend(hidden, output, steps, rate):
    def step(hidden, _):
        z = INPUTS @ hidden.T / 2
        push = ((z > 0) * (TARGETS - jnp.maximum(z, 0) @ output)[:, None]) * output
        return hidden + rate * push.T @ INPUTS / 2, None

    return jax.lax.scan(step, hidden, length=steps)[0]


def finite_path(key, width, nodes, steps, rate):
    """Plain descent of a finite network, and the limit coupled to it: same first nodes, actual
    output of the rest.
    """
    scaling = Zipf(0.5, 0.7)
    hidden = np.asarray(jax.random.normal(jax.random.fold_in(key, 1), (width, 4)))
    signs = np.asarray(jax.random.rademacher(jax.random.fold_in(key, 2), (width,), dtype=float))
    weights = scaling.node_weights(width)
    features = np.maximum(INPUTS @ hidden.T / 2, 0) * (np.sqrt(weights) * signs)
    start = node_limit(
        key,
        INPUTS,
        scaling,
        "relu",
        nodes=nodes,
        start=(hidden[:nodes], signs[:nodes], features[:, nodes:].sum(1)),
    )
    limit = train_node_limit(start, TARGETS, rate=rate, steps=steps, every=steps)

    end = np.asarray(
        descend(jnp.asarray(hidden), jnp.asarray(np.sqrt(weights) * signs), steps, rate)
    )
    out = np.maximum(INPUTS @ end.T / 2, 0) @ (np.sqrt(weights) * signs)
    return np.sum((TARGETS - out) ** 2) / 2 - float(limit.loss[-1])


def test_coupled_finite_networks_approach_the_limit_like_the_root_of_width():
    # Paired loss differences at t = 60 halve per factor 4 in width (rate 1/2); 12 seeds each, mean
    # absolute difference.
    gaps = [
        np.mean([abs(finite_path(jax.random.key(s), width, 50, 60, 1.0)) for s in range(12)])
        for width in (200, 3200)
    ]
    rate = math.log(gaps[0] / gaps[1]) / math.log(16)
    assert 0.3 < rate < 0.75


def test_test_points_ride_along_without_touching_the_training_path():
    alone = node_limit(jax.random.key(4), INPUTS, Zipf(0.5, 0.7), "tanh", nodes=10)
    other = np.concatenate([INPUTS[:2], [[0.1, 0.2, 0.3, 0.4]]])
    wider = node_limit(
        jax.random.key(4),
        INPUTS,
        Zipf(0.5, 0.7),
        "tanh",
        nodes=10,
        other=other,
        start=(
            alone.hidden,
            alone.signs,
            jnp.concatenate([alone.field, alone.field[:2], jnp.zeros(1)]),
        ),
    )
    first, second = (
        train_node_limit(s, TARGETS, rate=0.5, steps=30, every=30) for s in (alone, wider)
    )
    assert_allclose(second.outputs[:, :6], first.outputs, rtol=1e-12)
    assert_allclose(
        second.outputs[:, 6:8], first.outputs[:, :2], rtol=1e-12
    )  # the same input twice: the same output


def test_initial_outputs_have_the_covariance_of_the_network():
    # E u u^T = K whatever the split; 4000 draws, four standard errors on the diagonal.
    draws = 4000
    outputs = jax.lax.map(
        lambda k: node_limit(
            jax.random.fold_in(jax.random.key(9), k), INPUTS, Zipf(0.5, 0.7), "relu", nodes=20
        ).outputs(),
        jnp.arange(draws),
    )
    squares = np.asarray(outputs) ** 2
    assert np.all(
        np.abs(squares.mean(0) - 1 / 8) < 4 * squares.std(0) / math.sqrt(draws)
    )  # |x|^2/(2d)


def test_errors():
    with pytest.raises(ValueError, match="`start` must be"):
        node_limit(
            jax.random.key(0),
            INPUTS,
            Zipf(),
            "relu",
            nodes=3,
            start=(np.ones((2, 4)), np.ones(3), np.ones(6)),
        )
    state = node_limit(jax.random.key(0), INPUTS, Zipf(), "relu", nodes=3)
    with pytest.raises(ValueError, match="`rate` must be positive"):
        train_node_limit(state, TARGETS, rate=0.0, steps=3)
