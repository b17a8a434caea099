"""Closed dual activations: mpmath's double integrals, degenerate pairs by one-dimensional
quadrature, derivatives by Price's theorem.
"""

import json
import math
import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from wideflow._core import activations
from wideflow._core.closed_duals import CLOSED
from wideflow._core.dual_activations import check_smooth, dual

ROWS = json.loads((pathlib.Path(__file__).parent / "dual_activation_values.json").read_text())


def named(text: str) -> activations.Activation:
    """'hermite(4)' as its activation; the values file writes them so."""
    name, _, inside = text.partition("(")
    if not inside:
        return activations.sign() if name == "sign" else activations.activation(name)
    parameters = [float(p) for p in re.findall(r"[-\d.]+", inside)]
    if name == "polynomial":
        return activations.polynomial(parameters)
    if name in ("monomial", "hermite", "rectified_power"):
        parameters = [int(p) for p in parameters]
    return getattr(activations, name)(*parameters)


NAMES = list(dict.fromkeys(row["activation"] for row in ROWS))
CLOSED_NAMES = [name for name in NAMES if dual(named(name)).closed]


@pytest.mark.parametrize("name", NAMES)
def test_both_expectations_against_mpmath(name):
    rows = [row for row in ROWS if row["activation"] == name]
    p, q, r = (jnp.array(column) for column in zip(*(row["covariance"] for row in rows)))
    expected = np.array([[float(x) for x in row["expectations"]] for row in rows]).T
    bound = 1e-11 if name in CLOSED_NAMES else 1e-8
    assert_allclose(dual(named(name)).both(p, q, r), expected, rtol=bound, atol=1e-13)


def test_every_closed_form_is_held_against_mpmath():
    assert {named(name).name for name in CLOSED_NAMES} | {"unit_erf"} == set(CLOSED)


@pytest.mark.parametrize("name", CLOSED_NAMES)
def test_equal_opposite_and_zero_inputs_are_exact_and_differentiable(name):
    # u = s t, v = +-s t: one integral, by Gauss-Legendre on each side of 0; a zero variance leaves
    # phi(0) E[phi(v)]
    act, s = named(name), 0.9
    x, w = np.polynomial.legendre.leggauss(120)
    t, w = np.concatenate([4.5 * x - 4.5, 4.5 * x + 4.5]), np.tile(4.5 * w, 2)
    density = w * np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)
    zero = jnp.zeros(())
    for order, function in enumerate((act.value, act.slope)):
        of = lambda z, f=function: np.asarray(f(jnp.asarray(z, float)))
        value = lambda *k, o=order: float(dual(act).both(*(jnp.asarray(x) for x in k))[o])
        close = dict(rtol=1e-12, atol=1e-13)
        assert_allclose(value(s**2, s**2, s**2), np.sum(density * of(s * t) ** 2), **close)
        opposite = np.sum(density * of(s * t) * of(-s * t))
        assert_allclose(value(s**2, -(s**2), s**2), opposite, **close)
        assert_allclose(value(0.0, 0.0, s**2), of(zero) * np.sum(density * of(s * t)), **close)
        assert_allclose(value(0.0, 0.0, 0.0), of(zero) ** 2, **close)
    both = dual(act).both
    for pair in ((1.0, 1.0, 1.0), (1.0, -1.0, 1.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)):
        slopes = jax.jacrev(lambda k: jnp.stack(both(*k)))(jnp.array(pair))
        assert np.all(np.isfinite(slopes))
        if pair[0] and act.name != "sign" and act.degree != 0:
            # Price: d/dq E[phi phi] = E[phi' phi'], at the boundary too
            assert_allclose(slopes[0, 1], both(*map(jnp.asarray, pair))[1], rtol=1e-12, atol=1e-12)


def test_sums_in_another_order_do_not_move_the_angle():
    # one unit in the last place of q is an angle of 1e-8, which would show in E[phi' phi'] = 1/2
    slope = dual(activations.relu()).both(jnp.array(1.0), jnp.array(1 - 3e-16), jnp.array(1.0))[1]
    assert float(slope) == 0.5


def test_the_value_at_the_kink_counts_where_a_variance_is_zero():
    both = dual(activations.relu(at_kink=1.0)).both
    k = lambda p, r: float(both(jnp.array(p), jnp.array(0.0), jnp.array(r))[1])
    assert (k(0.0, 0.0), k(0.0, 2.0)) == (1.0, 0.5)


def test_derivatives_by_quadrature():
    both = dual(activations.activation("tanh")).both
    k, h = jnp.array([0.8, 0.3, 1.3]), 1e-5
    slopes = jax.jacfwd(lambda k: jnp.stack(both(*k)))(k)
    for axis in range(3):
        step = h * jnp.eye(3)[axis]
        difference = (jnp.stack(both(*(k + step))) - jnp.stack(both(*(k - step)))) / (2 * h)
        assert_allclose(slopes[:, axis], difference, rtol=1e-7, atol=1e-10)


def test_the_error_of_the_quadrature_is_measured():
    assert check_smooth(activations.activation("softplus"), [0.5, 2.0]) < 1e-10
    with pytest.raises(ValueError, match="not smooth enough for quadrature"):
        check_smooth(activations.custom(lambda z: jnp.abs(z) ** 1.5), [0.5, 2.0])


def test_families_of_activations():
    z = jnp.linspace(-2.0, 2.0, 9)
    he4 = (z**4 - 6 * z**2 + 3) / math.sqrt(24)
    assert_allclose(activations.hermite(4)(z), he4, rtol=1e-13, atol=1e-14)
    assert_allclose(activations.rectified_power(3)(z), np.maximum(z, 0) ** 3)
    assert_allclose(activations.two_slopes(-0.5, 2.0)(z), np.where(z > 0, 2 * z, -0.5 * z))
    for act in (
        activations.monomial(3),
        activations.wave(0.5, 1.5, 0.3),
        activations.gaussian(0.7),
    ):
        assert_allclose(jax.vmap(jax.grad(act.value))(z), act.derivative(z), rtol=1e-12)
        assert_allclose(jax.vmap(jax.grad(act.slope))(z), act.second(z), rtol=1e-12, atol=1e-14)
    with pytest.raises(ValueError, match="`degree` must be a whole number"):
        activations.hermite(-1)
    with pytest.raises(ValueError, match="`coefficients` must not be empty"):
        activations.polynomial(())
