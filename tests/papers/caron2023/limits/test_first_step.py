import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from wideflow._core.activations import activation, leaky_relu, scaled_tanh
from wideflow._core.scalings import Zipf
from wideflow.papers.caron2023.limits.first_step import (
    mean_kernel_velocity,
    mean_weight_velocity,
    output_bound,
    self_correlation,
    triple_correlation,
    weight_speed,
)

RNG = np.random.default_rng(5)
INPUTS = RNG.normal(size=(3, 4))
INPUTS /= np.linalg.norm(INPUTS, axis=1, keepdims=True)
TARGETS = np.array([0.3, -1.0, 0.6])
WEIGHTS = np.asarray(Zipf(0.3, 0.6).node_weights(4))


def velocity(hidden, signs, act):
    """dW/dt of the half sum of squares by automatic differentiation of the definition."""

    def loss(hidden):
        outputs = act(INPUTS @ hidden.T / 2.0) @ (np.sqrt(WEIGHTS) * signs)
        return jnp.sum((TARGETS - outputs) ** 2) / 2

    return -jax.grad(loss)(hidden)


def kernel(hidden, act):
    slopes = act.derivative(INPUTS @ hidden.T / 2.0)
    return INPUTS @ INPUTS.T / 4 * ((slopes * WEIGHTS) @ slopes.T)


def sine_triple(covariance):
    """Closed form for sin, from products of cosines into exponentials."""
    e = lambda *c: jnp.exp(-np.array(c) @ covariance @ np.array(c) / 2)
    return -(e(1, -1, -2) + e(1, 1, -2) - e(1, -1, 2) - e(1, 1, 2)) / 8


@pytest.mark.parametrize("indices", [(0, 1, 2), (0, 0, 1), (0, 1, 1), (1, 1, 1)])
def test_triple_correlation_of_sine_also_with_singular_covariance(indices):
    points = INPUTS[list(indices)]
    found = triple_correlation(*points, "sin", order=48)
    assert_allclose(found, sine_triple(points @ points.T / 4), rtol=1e-11, atol=1e-15)


def test_its_gradient_is_that_of_the_closed_form_also_where_points_coincide():
    # jax.hessian of the closed form stands for Price's theorem, and the covariance is singular
    for indices in [(0, 1, 2), (0, 0, 1), (1, 1, 1)]:
        points = jnp.asarray(INPUTS[list(indices)])
        found = jax.grad(lambda p: triple_correlation(*p, "sin", order=48))(points)
        expected = jax.grad(lambda p: sine_triple(p @ p.T / 4))(points)
        assert_allclose(found, expected, rtol=1e-10, atol=1e-13)


def test_gradients_at_a_zero_input_and_a_pruned_node():
    # |x| and a root at 0 count as flat there; the others feel nothing of it
    inputs, weights = np.vstack([INPUTS, np.zeros(4)]), np.append(WEIGHTS, 0.0)
    pull = lambda x: jnp.sum(self_correlation(x, "relu"))
    assert_allclose(jax.grad(pull)(inputs), jax.grad(pull)(inputs[:3]).tolist() + [[0.0] * 4])
    speed = lambda w: jnp.sum(weight_speed(INPUTS, TARGETS, "relu", w))
    assert np.isfinite(jax.grad(speed)(weights)).all()


def test_self_correlation():
    assert_allclose(
        self_correlation(INPUTS, "relu"), np.full(3, 1 / math.sqrt(8 * math.pi)), rtol=1e-14
    )
    assert_allclose(self_correlation(INPUTS, "tanh"), np.zeros(3))
    # leaky: (1 - b^2) times the ReLU value; Stein: g_1 = E[z sigma(sz)^2]/(2 s)
    assert_allclose(
        self_correlation(INPUTS, leaky_relu(0.5)), 0.75 * self_correlation(INPUTS, "relu")
    )
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    stein = (
        np.sum(weights * nodes * np.asarray(activation("softplus")(nodes / 2)) ** 2) / weights.sum()
    )
    assert_allclose(self_correlation(INPUTS, "softplus"), np.full(3, stein), rtol=1e-12)


def test_mean_weight_velocity_averages_all_signs_exactly():
    # Given W, the mean over the 2^4 sign vectors is -(lambda_j / sqrt d) sum_i x_i sigma sigma';
    # its mean over W is Theorem 5.1.
    act, hidden = activation("softplus"), jnp.asarray(RNG.normal(size=(4, 4)))
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=4)))
    mean = np.mean([velocity(hidden, s, act) for s in signs], axis=0)
    z = INPUTS @ hidden.T / 2
    expected = -(WEIGHTS[:, None] / 2) * (np.asarray(act(z) * act.derivative(z)).T @ INPUTS)
    assert_allclose(mean, expected, atol=1e-14)


@pytest.mark.parametrize("name", ["relu", "softplus", "tanh"])
def test_mean_weight_velocity_against_monte_carlo(name):
    # 20000 draws of (W, a) in pairs (a, -a); four standard errors.
    act = activation(name)
    draws = 20_000
    hidden = jax.random.normal(jax.random.key(0), (draws, 4, 4))
    signs = jax.random.rademacher(jax.random.key(1), (draws, 4), dtype=float)
    both = jax.vmap(lambda h, s: (velocity(h, s, act) + velocity(h, -s, act)) / 2)(hidden, signs)
    error = np.asarray(both.std(0)) / math.sqrt(draws)
    assert np.all(
        np.abs(both.mean(0) - mean_weight_velocity(INPUTS, name, WEIGHTS)) < 4 * error + 1e-15
    )


@pytest.mark.parametrize("name", ["softplus", "tanh"])
def test_mean_kernel_velocity_against_monte_carlo(name):
    # dTheta/dt along the flow by forward differentiation, exactly averaged over signs, 20000 draws
    # of W; 4 standard errors. The printed power d^{3/2} would be off by a factor of 2 here: tens of
    # standard errors.
    act = activation(name)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=4)))

    def slope(hidden):
        mean = sum(velocity(hidden, s, act) for s in signs) / len(signs)
        return jax.jvp(lambda h: kernel(h, act), (hidden,), (mean,))[1]  # linear in the velocity

    draws = 20_000
    rates = jax.lax.map(slope, jax.random.normal(jax.random.key(2), (draws, 4, 4)), batch_size=500)
    error = np.asarray(rates.std(0)) / math.sqrt(draws)
    law = np.asarray(mean_kernel_velocity(INPUTS, name, WEIGHTS, order=32))
    assert np.all(np.abs(np.asarray(rates.mean(0)) - law) < 4 * error)
    assert np.max(np.abs(np.asarray(rates.mean(0)) - 2 * law) / error) > 20


def test_mean_kernel_velocity_of_sine_in_closed_form():
    expected = np.zeros((3, 3))
    for k, l in np.ndindex(3, 3):
        for i in range(3):
            one, two = INPUTS[[k, l, i]], INPUTS[[l, k, i]]
            expected[k, l] += INPUTS[k] @ INPUTS[i] * sine_triple(one @ one.T / 4)
            expected[k, l] += INPUTS[l] @ INPUTS[i] * sine_triple(two @ two.T / 4)
    expected *= -(INPUTS @ INPUTS.T) * np.sum(WEIGHTS**2) / 16
    assert_allclose(mean_kernel_velocity(INPUTS, "sin", WEIGHTS, order=48), expected, rtol=1e-9)


@pytest.mark.parametrize(("name", "sign"), [("tanh", 1), ("sin", 1), ("softplus", -1)])
def test_sign_of_the_kernel_velocity_at_one_training_input(name, sign):
    assert sign * float(mean_kernel_velocity(INPUTS[:1], name, WEIGHTS, order=32)[0, 0]) > 0


def test_kernel_velocity_at_other_points_is_the_same_law():
    whole = mean_kernel_velocity(INPUTS, "tanh", WEIGHTS, order=24)
    part = mean_kernel_velocity(INPUTS, "tanh", WEIGHTS, at=INPUTS[1:], order=24)
    assert_allclose(part, whole[1:, 1:], rtol=1e-12)


@pytest.mark.parametrize("name", ["relu", "sin", "softplus"])
def test_weight_speed_against_monte_carlo(name):
    act, draws = activation(name), 40_000
    hidden = jax.random.normal(jax.random.key(3), (draws, 4, 4))
    signs = jax.random.rademacher(jax.random.key(4), (draws, 4), dtype=float)
    squares = np.asarray(
        jax.vmap(lambda h, s: jnp.sum(velocity(h, s, act) ** 2, axis=1))(hidden, signs)
    )
    error = squares.std(0) / math.sqrt(draws)
    assert np.all(
        np.abs(squares.mean(0) - np.asarray(weight_speed(INPUTS, TARGETS, name, WEIGHTS)) ** 2)
        < 4 * error
    )


def test_weight_speed_of_weights_that_do_not_sum_to_one():
    # Gauss-Hermite over two weights a node, exact over signs: the other nodes' outputs have
    # covariance (sum of their weights) E sigma sigma
    act, weights = activation("tanh"), np.asarray(Zipf(0.0, 0.5, released=True).node_weights(3))
    assert weights.sum() < 0.95
    points, mass = np.polynomial.hermite_e.hermegauss(80)
    grid = np.stack(np.meshgrid(points, points), -1).reshape(-1, 2)
    mass = np.outer(mass, mass).ravel() / mass.sum() ** 2
    inputs = INPUTS[:, :2]
    z = inputs @ grid.T / math.sqrt(2)
    value, slope = np.asarray(act(z)), np.asarray(act.derivative(z))
    push = inputs.T[:, :, None] * slope
    for j, weight in enumerate(np.asarray(weight_speed(inputs, TARGETS, "tanh", weights))):
        rest = (weights.sum() - weights[j]) * (value * mass) @ value.T
        fixed = np.outer(TARGETS, TARGETS) + rest
        square = np.einsum("q,dnq,dmq,nm->", mass, push, push, fixed) + weights[j] * np.einsum(
            "q,dnq,dmq,nq,mq->", mass, push, push, value, value
        )
        assert weight**2 == pytest.approx(weights[j] / 2 * square, rel=1e-9, abs=1e-15)


def test_output_bound():
    assert output_bound("relu", 7) == pytest.approx(1 / 14)
    assert output_bound("sin", 4) == pytest.approx(
        (1 - math.exp(-0.5)) / 2, rel=1e-12
    )  # E sin^2(z/2)
    assert output_bound(scaled_tanh(0.1), 100) == pytest.approx(0.009998, abs=5e-7)


def test_errors():
    with pytest.raises(ValueError, match="second derivative"):
        mean_kernel_velocity(INPUTS, "relu", WEIGHTS)
    with pytest.raises(ValueError, match="`features` must be"):
        output_bound("tanh", 0)
