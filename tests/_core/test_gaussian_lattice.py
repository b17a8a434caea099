"""The lattice rule against expectations known in closed form, and against a rule of another
kind.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wideflow._core.gaussian_lattice import lattice_rule, line_rule

N = np.random.default_rng(4)


def covariance(size, variance):
    rows = N.normal(size=(size, 6))
    rows *= np.sqrt(variance) / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows @ rows.T


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize(("variance", "error"), [(1.0, 1e-10), (2.0, 1e-7)])
def test_gaussian_factors_and_second_moments(size, variance, error):
    # E exp(-|h|^2) = det(I + 2C)^(-1/2)
    c = covariance(size, variance)
    h, weights = lattice_rule(jnp.linalg.cholesky(c), 48)
    mean = weights @ jnp.exp(-jnp.sum(h**2, axis=1))
    np.testing.assert_allclose(mean, np.linalg.det(np.eye(size) + 2 * c) ** -0.5, atol=error)
    np.testing.assert_allclose((h * weights[:, None]).T @ h, c, atol=error)


@pytest.mark.parametrize("variance", [1.0, 4.0])
def test_poles_of_independent_blocks(variance):
    """Two independent pairs: the product of two plane integrals by Gauss-Legendre, whose nodes know
    no spacing.
    """
    c = np.kron(np.eye(2), np.array([[1.0, 0.6], [0.6, 1.0]])) * variance
    h, weights = lattice_rule(jnp.linalg.cholesky(c), 48, entire=False)
    slope = lambda z: 1 / np.cosh(z) ** 2
    product = slope(h[:, 0]) * slope(h[:, 1]) * jnp.tanh(h[:, 2]) * jnp.tanh(h[:, 3])
    node, weight = np.polynomial.legendre.leggauss(200)
    t, w = 9 * node, 9 * weight * np.exp(-((9 * node) ** 2) / 2) / np.sqrt(2 * np.pi)
    u, v = np.sqrt(variance) * t[:, None], np.sqrt(variance) * (0.6 * t[:, None] + 0.8 * t)
    plane = lambda f: np.einsum("a,b,ab->", w, w, f(u) * f(v))
    np.testing.assert_allclose(weights @ product, plane(slope) * plane(np.tanh), atol=5e-8)


def test_a_line_and_no_variance_at_all():
    t, weights = line_rule(64, 2.0)
    np.testing.assert_allclose(weights @ np.cos(2.0 * t), np.exp(-2.0), atol=1e-12)
    h, weights = lattice_rule(jnp.zeros((2, 2)), 8)
    np.testing.assert_allclose(weights @ jnp.cos(h[:, 0]), 1.0, atol=1e-14)


def test_the_spacing_has_no_derivative():
    # d/ds E (s t)^2 = 2 s, with the nodes held where they are, also at s = 0
    mean = lambda s: (lambda t, w: w @ (s * t) ** 2)(*line_rule(40, jnp.abs(s)))
    np.testing.assert_allclose(jax.grad(mean)(1.5), 3.0, atol=1e-9)
    assert jax.grad(mean)(0.0) == 0.0
