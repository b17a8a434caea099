"""The two-layer network of the plane: its gradient, its flow's invariant, and the change of
units.
"""

import jax
import numpy as np
import pytest

import wideflow as wf
from wideflow.models.base import pullback_by_autodiff
from wideflow.papers.luo2021.two_layer import TwoLayer

INPUTS = np.random.default_rng(0).normal(size=(5, 2))


def net(gamma=1.5, gamma_prime=0.5, activation="tanh"):
    return TwoLayer.init(
        3, features=2, width=20, gamma=gamma, gamma_prime=gamma_prime, activation=activation
    )


def test_the_gradient_is_autodiffs():
    model, c = net(), np.arange(5.0)
    (outputs, pull), (expected, reference) = (
        model.pullback(model.embed(INPUTS)),
        pullback_by_autodiff(model, model.embed(INPUTS)),
    )
    np.testing.assert_allclose(outputs, expected, rtol=1e-12)
    for name, value in reference(jax.numpy.asarray(c)).items():
        np.testing.assert_allclose(pull(jax.numpy.asarray(c))[name], value, rtol=1e-10)


def test_the_flow_keeps_the_balance_of_the_layers():
    # d(w^2)/dt = -2 (k'/k) w.dL/dw and d(a^2)/dt = -2 a dL/da / (k k'); for ReLU both products are
    # equal, so w^2 - k'^2 a^2 stays
    model = net(activation="relu")
    data = wf.Dataset(INPUTS, np.sin(INPUTS[:, 0]))
    run = wf.train(model, data, wf.GradientFlow(1e-9, method="tsit5"), time=2.0, every=2.0)
    balance = lambda m: (
        np.sum(np.asarray(m.weights) ** 2, axis=0) - float(m.ratio) ** 2 * np.asarray(m.output) ** 2
    )
    assert np.max(np.abs(np.asarray(run.model.weights - model.weights))) > 1e-3
    np.testing.assert_allclose(balance(run.model), balance(model), atol=1e-5)


def test_it_is_the_network_with_its_own_standard_deviations_in_slower_time():
    """f = (1/alpha) sum a sigma(w.x), flowing in t, is the same path in t / alpha (luo2021, section
    3): compared by the outputs' first derivative.
    """
    alpha, beta1, beta2, m = 7.0, 0.3, 2.0, 20
    model = net(
        gamma=-np.log(beta1 * beta2 / alpha) / np.log(m),
        gamma_prime=-np.log(beta1 / beta2) / np.log(m),
        activation="relu",
    )
    x = jax.numpy.asarray(INPUTS)
    theta = {"w": beta2 * model.weights, "a": beta1 * model.output}
    f = lambda p: jax.nn.relu(x @ p["w"]) @ p["a"] / alpha
    np.testing.assert_allclose(f(theta), model.outputs(INPUTS), rtol=1e-12)
    rows = jax.jacobian(f)(theta)
    kernel = sum(
        np.asarray(r).reshape(5, -1) @ np.asarray(r).reshape(5, -1).T for r in rows.values()
    )
    np.testing.assert_allclose(
        wf.observables.tangent_gram(model, INPUTS), alpha * kernel, rtol=1e-10
    )


@pytest.mark.parametrize("bad", [{"width": 0}, {"gamma": float("nan")}, {"gamma_prime": "x"}])
def test_bad_input_is_named(bad):
    with pytest.raises(ValueError, match=f"`{next(iter(bad))}`"):
        TwoLayer.init(0, **{"features": 2, "width": 3, "gamma": 1.0, "gamma_prime": 0.0} | bad)
