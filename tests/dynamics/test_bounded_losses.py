"""Values by hand, gradients by autodiff, class membership at its edges."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.dynamics.bounded_losses import AbstractPointwiseLoss, loss_class

LOSSES = {
    "huber": wf.losses.Huber(),
    "pseudo": wf.losses.PseudoHuber(),
    "logcosh": wf.losses.LogCosh(),
    "cross": wf.losses.ScaledCrossEntropy(),
    "dead": wf.losses.DeadZoneHuber(),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_autodiff(name):
    loss = LOSSES[name]
    f = jax.random.normal(jax.random.key(0), (6, 3)) * 2
    y = jnp.eye(3)[jnp.array([0, 1, 2, 0, 1, 2])]
    value, gradient = loss.value_and_gradient(f, y)
    assert_allclose(gradient, jax.grad(lambda f: loss(f, y))(f), rtol=1e-12, atol=1e-15)
    assert_allclose(value, loss(f, y))


@pytest.mark.parametrize("name", LOSSES)
def test_a_target_that_is_met_has_a_gradient(name):
    # every residual loss is least at f = y, so its gradient vanishes there
    loss, y = LOSSES[name], jnp.eye(3)
    f = jnp.zeros((3, 3)) if name == "cross" else y
    gradient = jax.grad(lambda f: loss(f, y))(f)
    assert_allclose(gradient, loss.value_and_gradient(f, y)[1], atol=1e-16)
    if name != "cross":
        assert_allclose(gradient, 0.0, atol=1e-16)


@pytest.mark.parametrize(
    ("loss", "residual", "expected"),
    [
        (wf.losses.Huber(), [0.6, 0.0], 0.18),
        (wf.losses.Huber(), [3.0, 4.0], 4.5),
        (wf.losses.PseudoHuber(), [1.0, math.sqrt(2)], 1.0),
        (wf.losses.LogCosh(), [0.0, 1.0], math.log(math.cosh(1.0))),
        (wf.losses.DeadZoneHuber(), [1.5, 0.0], 0.125),
        (wf.losses.DeadZoneHuber(), [3.0, 4.0], 3.5),
    ],
)
def test_values_by_hand(loss, residual, expected):
    f = jnp.array([residual])
    assert_allclose(loss(f, jnp.zeros((1, 2))), expected, rtol=1e-14)
    # the mean over samples: a sample of residual 0 halves it
    assert_allclose(
        loss(jnp.concatenate([f, jnp.zeros((1, 2))]), jnp.zeros((2, 2))), expected / 2, rtol=1e-14
    )


def test_logistic():
    f, y = jnp.array([0.3, -2.0]), jnp.array([1.0, -1.0])
    value, gradient = wf.losses.Logistic().value_and_gradient(f, y)
    assert_allclose(value, np.mean(np.log1p(np.exp(-np.array([0.3, 2.0])))))
    assert_allclose(gradient, [-0.5 / (1 + np.exp(0.3)), 0.5 / (1 + np.exp(2.0))])


@pytest.mark.parametrize("name", LOSSES)
def test_stated_constants_bound_measured_ones(name):
    loss = LOSSES[name]
    assert isinstance(loss, AbstractPointwiseLoss)
    y = jnp.tile(jnp.eye(3)[:1], (400, 1))
    f = jax.random.normal(jax.random.key(1), (400, 3)) * 3
    g = f + jax.random.normal(jax.random.key(2), (400, 3)) * 0.1
    (left, grad_left), (right, grad_right) = loss.pointwise(f, y), loss.pointwise(g, y)
    step = jnp.linalg.norm(f - g, axis=1)
    assert float(jnp.max(jnp.abs(left - right) / step)) <= loss.lipschitz(3) * (1 + 1e-9)
    assert float(
        jnp.max(jnp.linalg.norm(grad_left - grad_right, axis=1) / step)
    ) <= loss.smoothness(3) * (1 + 1e-9)
    middle = loss.pointwise((f + g) / 2, y)[0]
    assert bool(jnp.all(middle <= (left + right) / 2 + 1e-12))


@pytest.mark.parametrize(
    ("loss", "edge"),
    [
        (wf.losses.Huber(), 1.5),
        (wf.losses.PseudoHuber(), math.sqrt(3)),
        (wf.losses.LogCosh(), math.acosh(math.e)),
        (wf.losses.DeadZoneHuber(), 2.5),
    ],
)
def test_class_membership_at_the_edge(loss, edge):
    assert loss_class(loss, [edge - 1e-9]).member
    outside = loss_class(loss, [edge + 1e-6])
    assert not outside.member
    assert "L(0, y)" in outside.reasons[0]


def test_who_is_not_in_the_class():
    assert not loss_class(wf.losses.MeanSquares(), [0.1]).member
    assert not loss_class(wf.losses.LogCosh(), np.full((2, 2), 0.1)).member  # Lipschitz sqrt 2
    assert loss_class(wf.losses.Logistic(), [1.0, -1.0]).member
    assert loss_class(wf.losses.ScaledCrossEntropy(), np.eye(20)).member
