"""Derivatives against autodiff, constants against a fine grid, kinks against the stated
convention.
"""

import math
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from wideflow._core.activations import (
    TABLE,
    activation,
    hermite,
    leaky_relu,
    rectified_power,
    relu,
    scaled_erf,
    scaled_tanh,
    sign,
    two_slopes,
    wave,
)

GRID = jnp.linspace(-6.0, 6.0, 4801)
SMOOTH = [name for name in TABLE if not activation(name).kinks]


@pytest.mark.parametrize("name", TABLE)
def test_derivative_agrees_with_autodiff_of_the_formula(name):
    act = activation(name)
    z = GRID[GRID != 0] if act.kinks else GRID
    assert_allclose(act.derivative(z), jax.vmap(jax.grad(act.value))(z), rtol=1e-12, atol=1e-14)
    assert_allclose(jax.vmap(jax.grad(act))(z), act.derivative(z), rtol=1e-14)


@pytest.mark.parametrize("name", SMOOTH)
def test_second_derivative_agrees_with_autodiff(name):
    act = activation(name)
    expected = jax.vmap(jax.grad(jax.grad(act.value)))(GRID)
    assert_allclose(act.second(GRID), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", TABLE)
def test_constants_bound_the_grid_and_are_attained(name):
    act = activation(name)
    largest = float(jnp.max(jnp.abs(act.derivative(GRID))))
    if math.isfinite(act.lipschitz):
        assert largest <= act.lipschitz * (1 + 1e-12)
        assert largest >= act.lipschitz * (1 - 1e-2)
    if name in SMOOTH and math.isfinite(act.curvature) and act.curvature > 0:
        bend = float(jnp.max(jnp.abs(act.second(GRID))))
        assert act.curvature * (1 - 1e-5) <= bend <= act.curvature * (1 + 1e-12)


@pytest.mark.parametrize("name", TABLE)
def test_default_interval_has_the_stated_slope(name):
    act = activation(name)
    low, high = act.interval
    inside = jnp.linspace(low, high, 402)[1:-1]
    inside = inside[jnp.abs(inside) > 1e-9]
    assert float(jnp.min(jnp.abs(act.derivative(inside)))) >= act.interval_slope * (1 - 1e-12) > 0


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "abs"])
def test_slope_at_a_kink_is_zero_in_formula_and_in_autodiff(name):
    act = activation(name)
    assert float(act.derivative(jnp.zeros(()))) == 0.0
    assert float(jax.grad(act)(0.0)) == 0.0


def test_the_kink_can_count_as_active():
    assert float(jax.grad(relu(at_kink=1.0))(0.0)) == 1.0


@pytest.mark.parametrize(
    ("name", "degree"), [("relu", 1), ("leaky_relu", 1), ("abs", 1), ("linear", 1), ("square", 2)]
)
def test_positive_homogeneity(name, degree):
    act = activation(name)
    assert act.degree == degree
    assert_allclose(act(3 * GRID), 3.0**degree * act(GRID), rtol=1e-14)


@pytest.mark.parametrize("name", [n for n in TABLE if activation(n).odd])
def test_odd_activations_are_odd(name):
    act = activation(name)
    assert_allclose(act(-GRID), -act(GRID), atol=1e-15)


def test_printed_curvatures_of_the_papers():
    # sup|tanh''| = 4/(3 sqrt 3) at tanh^2 = 1/3; sigmoid'' is an eighth of tanh'' at z/2
    assert_allclose(activation("tanh").curvature, 0.7698004, atol=5e-8)
    assert_allclose(activation("sigmoid").curvature, 0.0962250, atol=5e-8)
    assert_allclose(activation("unit_erf").curvature, 0.7601735, atol=5e-8)
    assert_allclose(scaled_tanh(0.1).curvature, 0.07698004, atol=5e-9)
    assert_allclose(activation("gelu").lipschitz, 1.129, atol=5e-4)
    assert_allclose(activation("silu").lipschitz, 1.0998, atol=5e-5)


def test_any_function_is_an_activation():
    act = activation(lambda z: jnp.sin(2 * z))
    assert_allclose(act.derivative(GRID), 2 * np.cos(2 * GRID), atol=1e-12)


def test_unknown_name_is_answered_with_a_suggestion():
    with pytest.raises(ValueError, match="Did you mean 'softplus'"):
        activation("soft_plus")


@pytest.mark.parametrize("act", [sign(), rectified_power(0)], ids=repr)
def test_a_jump_has_no_lipschitz_constant(act):
    # (sigma(h) - sigma(-h)) / 2h is 1/h for the sign and 1/(2h) for the step
    assert act.lipschitz == math.inf


@pytest.mark.parametrize(
    "act",
    [
        *map(activation, TABLE),
        relu(1.0),
        leaky_relu(0.3),
        scaled_tanh(0.7),
        scaled_erf(0.4),
        hermite(3),
        rectified_power(2),
        sign(),
        wave(2.0, 0.5, 0.3),
        two_slopes(0.1, 2.0),
    ],
    ids=repr,
)
def test_a_pickled_activation_is_the_same_function(act):
    again = pickle.loads(pickle.dumps(act))
    assert again == act
    z = jnp.linspace(-2.0, 2.0, 9)
    assert_allclose(again(z), act(z), rtol=0, atol=0)
    assert_allclose(again.derivative(z), act.derivative(z), rtol=0, atol=0)
