"""Norm-coupled networks: values by hand, gradients by autodiff."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.data.objective import gradient_by_autodiff
from wideflow.dynamics.losses import MeanSquares
from wideflow.models.base import pullback_by_autodiff


def test_value_by_hand():
    # rows (3, 4) and (0, -2) at x = (1, 1): norms 5 and 2, products 7 and -2
    weights = [[3.0, 4.0], [0.0, -2.0]]
    assert float(wf.Homogeneous(weights, "abs")([1.0, 1.0])) == (5 * 7 + 2 * 2) / 2
    assert float(wf.Homogeneous(weights, "relu", factor=2.0)([1.0, 1.0])) == 5 * 7
    assert wf.Homogeneous(weights, "relu").outputs([[1.0, 1.0], [0.0, -1.0]]).tolist() == [
        17.5,
        2.0,
    ]


@pytest.mark.parametrize(
    ("activation", "factor"), [("abs", 1.0), ("relu", 1.0), ("relu", 2.0), ("leaky_relu", 1.0)]
)
def test_gradient_against_autodiff(activation, factor):
    net = wf.Homogeneous.init(
        jax.random.key(0), features=4, width=7, activation=activation, factor=factor
    )
    x = jax.random.normal(jax.random.key(1), (9, 4))
    outputs, pull = net.pullback(x)
    expected, witness = pullback_by_autodiff(net, x)
    cotangent = jax.random.normal(jax.random.key(2), (9,))
    assert_allclose(outputs, expected, rtol=1e-13)
    assert_allclose(
        pull(cotangent)["weights"], witness(cotangent)["weights"], rtol=1e-12, atol=1e-15
    )
    objective = wf.Dataset(x, cotangent).objective(MeanSquares(), net)
    assert_allclose(
        objective.gradient(net)[1]["weights"],
        gradient_by_autodiff(objective, net)[1]["weights"],
        atol=1e-14,
    )


def test_sample_gradient_is_the_printed_matrix_form():
    # g = (2/N)[r o ((sign(Z) o e)^T X) + U o (|Z|^T e)], mean-field
    rng = np.random.default_rng(0)
    w, x, y = rng.normal(size=(5, 3)), rng.normal(size=(8, 3)), rng.normal(size=8)
    net = wf.Homogeneous(w, "abs")
    r = np.linalg.norm(w, axis=1)
    z = x @ w.T
    e = np.abs(z) @ r / 5 - y
    expected = (2 / 8) * (
        r[:, None] * ((np.sign(z) * e[:, None]).T @ x)
        + (w / r[:, None]) * (np.abs(z).T @ e)[:, None]
    )
    gradient = wf.Dataset(x, y).objective(MeanSquares(), net).gradient(net)[1]["weights"]
    assert_allclose(net.rate_factors()["weights"] * gradient, expected, rtol=1e-12)


def test_homogeneity_and_start():
    net = wf.Homogeneous.init(jax.random.key(0), features=50, width=400)
    x = np.ones(50)
    assert_allclose(wf.Homogeneous(3 * net.weights)(x), 9 * net(x), rtol=1e-13)
    squares = np.sum(np.asarray(net.weights) ** 2, axis=1)  # mean 1, variance 2/d
    assert abs(squares.mean() - 1) < 4 * np.sqrt(2 / 50 / 400)


def test_single_precision_stays_single():
    net = wf.Homogeneous(jnp.ones((2, 3), jnp.float32))
    assert net.weights.dtype == jnp.float32
    assert net(np.ones(3)).dtype == jnp.float32


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (([1.0, 2.0],), "weights"),
        (([[0.0, 0.0]],), "weights"),
        (([[np.nan, 1.0]],), "weights"),
        (([[1.0, 1.0]], "tanh"), "activation"),
        (([[1.0, 1.0]], "abs", -1.0), "factor"),
    ],
)
def test_errors_name_the_argument(arguments, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        wf.Homogeneous(*arguments)
