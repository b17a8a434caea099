import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose

from wideflow._core.arc_cosine import abs_pair, abs_pair_slope, arcsin
from wideflow._core.tiles import by_rows


def polar(f, g, theta):
    """E f(<u,x>) g(<v,x>) for 1-homogeneous f, g: E|x|^2 = 2 in the plane of u and v, times a mean
    over the circle.
    """
    with mp.workdps(25):
        kinks = sorted(
            {k % (2 * mp.pi) for k in (mp.pi / 2, -mp.pi / 2, theta + mp.pi / 2, theta - mp.pi / 2)}
        )
        points = [0, *kinks, 2 * mp.pi]
        return 2 * mp.quad(lambda t: f(mp.cos(t)) * g(mp.cos(t - theta)), points) / (2 * mp.pi)


def relu(z):
    return max(z, mpf(0))


@pytest.mark.parametrize("theta", [0.0, 0.3, 1.2, math.pi / 2, 2.5, math.pi])
def test_closed_forms_against_polar_quadrature(theta):
    rho = jnp.asarray(math.cos(theta))
    assert_allclose(abs_pair(rho), float(polar(abs, abs, theta)), rtol=1e-14)
    assert_allclose(abs_pair(rho) / 2, float(polar(relu, abs, theta)), rtol=1e-14)


def test_values_derived_by_hand():
    # u = v: E z^2 = 1; independent: (E|z|)^2 = 2/pi; slope at 1: E sign(z)^2 = 1.
    assert_allclose(abs_pair(jnp.array([0.0, 1.0, -1.0])), [2 / math.pi, 1, 1], rtol=1e-15)
    assert_allclose(abs_pair_slope(jnp.array([0.0, 1.0, -1.0])), [0, 1, -1], rtol=1e-15)


def test_cosines_that_rounding_pushed_outside_are_clipped():
    rho = jnp.array([1 + 1e-15, -1 - 1e-15])
    assert np.isfinite(abs_pair(rho)).all()
    assert np.isfinite(abs_pair_slope(rho)).all()


def exact_pair(rho):
    return 2 / mp.pi * (mp.sqrt(1 - rho**2) + rho * mp.asin(rho))


@pytest.mark.parametrize("rho", [-0.999999, -0.7, -0.5, 0.0, 0.3, 0.5, 1 - 1e-9])
def test_automatic_derivatives_against_mpmath(rho):
    with mp.workdps(40):
        first, second = (float(mp.diff(exact_pair, mpf(rho), n)) for n in (1, 2))
    assert_allclose(jax.grad(abs_pair)(jnp.asarray(rho)), first, rtol=1e-14, atol=1e-16)
    assert_allclose(jax.grad(jax.grad(abs_pair))(jnp.asarray(rho)), second, rtol=1e-14)
    assert_allclose(jax.grad(abs_pair_slope)(jnp.asarray(rho)), second, rtol=1e-14)
    assert_allclose(jax.grad(arcsin)(jnp.asarray(rho)), math.pi / 2 * second, rtol=1e-14)


@pytest.mark.parametrize("rho", [1.0, -1.0, 1 + 2e-16, -1 - 2e-16])
def test_automatic_derivatives_at_aligned_and_antipodal_pairs(rho):
    # K'(+-1) = +-1; the second derivative is infinite in rho and dropped (see the angle below)
    assert jax.grad(abs_pair)(jnp.asarray(rho)) == math.copysign(1.0, rho)
    assert jax.grad(jax.grad(abs_pair))(jnp.asarray(rho)) == 0.0


def test_second_derivatives_in_the_vectors_at_an_aligned_pair():
    # K(cos t) = cos t + (2 / 3 pi) |t|^3 + ..., t the angle of e_1 and e_1 + s e_2: -1 at s = 0
    def pair(s):
        return abs_pair(1.0 / jnp.sqrt(1.0 + s**2))

    assert jax.grad(jax.grad(pair))(0.0) == -1.0
    assert_allclose(jax.grad(jax.grad(pair))(1e-6), -1.0, atol=1e-5)


@pytest.mark.parametrize("memory", [8, 24, 10_000])
def test_tiles_do_not_change_numbers(memory):
    x = jnp.arange(21.0).reshape(7, 3)
    whole = x @ x.T
    tiled, sums = by_rows(lambda r: (r @ x.T, r.sum(1)), x, bytes_per_row=8, memory=memory)
    assert_allclose(tiled, whole)
    assert_allclose(sums, x.sum(1))


def test_arcsin_against_the_standard_library():
    x = np.concatenate(
        [
            np.linspace(-1, 1, 4001),
            1 - np.logspace(-16, -1, 200),
            [0.5, np.nextafter(0.5, 1), 1e-300],
        ]
    )
    expected = np.array([math.asin(v) for v in x])
    assert_allclose(arcsin(jnp.asarray(x)), expected, rtol=6e-16, atol=0)
    single = arcsin(jnp.asarray(x, dtype=jnp.float32))
    assert single.dtype == jnp.float32
    assert_allclose(single, np.arcsin(x.astype(np.float32)), rtol=5e-7, atol=1e-38)
