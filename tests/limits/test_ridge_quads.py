"""Four ridge functions: the printed closed form for erf, normal orthants by SciPy for ReLU, tensor
rules for the rest.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal

from wideflow._core.activations import activation, hermite, scaled_erf
from wideflow.limits.ridge_quads import noise_matrix, positive_quad

ROOT = np.array([[0.9, 0, 0, 0], [0.3, 0.8, 0, 0], [-0.2, 0.4, 1.0, 0], [0.5, -0.3, 0.2, 0.7]])
C = ROOT @ ROOT.T
WEIGHTS = jnp.array([0.7, -0.4, 0.5, -1.1])


def saad_solla(c):
    """I_4 of saad1995 for erf(z/sqrt 2), indices (1, 2) for the slopes and (3, 4) for the
    values.
    """
    l4 = (1 + c[0, 0]) * (1 + c[1, 1]) - c[0, 1] ** 2
    l0 = (
        l4 * c[2, 3]
        - c[1, 2] * c[1, 3] * (1 + c[0, 0])
        - c[0, 2] * c[0, 3] * (1 + c[1, 1])
        + c[0, 1] * c[0, 2] * c[1, 3]
        + c[0, 1] * c[0, 3] * c[1, 2]
    )
    top = lambda n: (
        l4 * (1 + c[n, n])
        - c[1, n] ** 2 * (1 + c[0, 0])
        - c[0, n] ** 2 * (1 + c[1, 1])
        + 2 * c[0, 1] * c[0, n] * c[1, n]
    )
    return 4 / np.pi**2 / np.sqrt(l4) * np.arcsin(l0 / np.sqrt(top(2) * top(3)))


def test_erf_is_the_printed_formula():
    act = scaled_erf(1 / np.sqrt(2))
    units = range(4)
    expected = np.array(
        [
            [
                sum(
                    WEIGHTS[i] * WEIGHTS[j] * saad_solla(C[np.ix_([k, l, i, j], [k, l, i, j])])
                    for i in units
                    for j in units
                )
                for l in (0, 1)
            ]
            for k in (0, 1)
        ]
    )
    np.testing.assert_allclose(
        noise_matrix(act, act, jnp.asarray(C), WEIGHTS, 2, 8), expected, atol=1e-13
    )


def test_positive_quad_against_orthants():
    """Gauss-Legendre over x, y > 0 with SciPy's P(u, v > 0 | x, y)."""
    node, weight = np.polynomial.legendre.leggauss(24)
    s = np.sqrt(np.diag(C)[2:])
    x, y = (9 * scale * (node + 1) / 2 for scale in s)
    grid = np.stack(np.meshgrid(x, y, indexing="ij"), -1).reshape(-1, 2)
    area = (np.outer(weight, weight) * (4.5**2) * s[0] * s[1]).ravel()
    density = multivariate_normal(cov=C[2:, 2:]).pdf(grid)
    gain = C[:2, 2:] @ np.linalg.inv(C[2:, 2:])
    rest = C[:2, :2] - gain @ C[2:, :2]
    corner = multivariate_normal(cov=rest).cdf(grid @ gain.T)
    expected = np.sum(area * density * grid[:, 0] * grid[:, 1] * corner)
    np.testing.assert_allclose(positive_quad(jnp.asarray(C)), expected, atol=1e-7)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([0, 0, 0, 0], 0.5),  # E u^+^2
        ([0, 1, 2, 3], 0.25 / (2 * np.pi)),  # independent
        ([0, 1, 0, 1], 1 / (2 * np.pi)),  # E u^+ E v^+
        ([0, 0, 1, 1], 0.25),  # P(u > 0) E x^+^2
        ([0, 1, 2, 2], 0.125),
        ([0, 1, 0, 0], 0.25),  # P(v > 0) E u^+^2
    ],
)
def test_positive_quad_of_equal_and_independent_variables(rows, expected):
    eye = np.eye(4)[rows]
    np.testing.assert_allclose(positive_quad(jnp.asarray(eye @ eye.T)), expected, atol=1e-13)


@pytest.mark.parametrize("scale", [1.0, 4.0])
@pytest.mark.parametrize(("student", "teacher"), [("he3", "square"), ("tanh", "tanh")])
def test_quadruples_agree_with_one_joint_rule(student, teacher, scale, monkeypatch):
    """One rule in four dimensions against rules in one to four, at variances up to four."""
    pick = lambda name: hermite(3) if name == "he3" else activation(name)
    c = jnp.asarray(scale / np.diag(C).max() * C)
    args = pick(student), pick(teacher), c, WEIGHTS, 2, 48
    joint = noise_matrix(*args)
    monkeypatch.setattr("wideflow.limits.ridge_quads.MOST_DIMENSIONS", 3)
    np.testing.assert_allclose(
        noise_matrix(*args), joint, rtol=1e-11, atol=0 if student == "he3" else 2e-8
    )


@pytest.mark.parametrize("variance", [1.0, 4.0])
def test_one_unit_is_an_integral_over_a_line(variance, monkeypatch):
    """E[tanh'^2 (0.7 tanh - 0.5 tanh)^2] where student and teacher are the same Gaussian, by
    SciPy.
    """
    density = lambda z: np.exp(-(z**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    integrand = lambda z: 0.04 * np.tanh(z) ** 2 / np.cosh(z) ** 4 * density(z)
    expected = quad(integrand, -20, 20, epsabs=1e-14, points=[0.0], limit=200)[0]
    tanh, c = activation("tanh"), jnp.full((2, 2), variance)
    args = tanh, tanh, c, jnp.array([0.7, -0.5]), 1, 48
    np.testing.assert_allclose(noise_matrix(*args), [[expected]], atol=1e-10)
    monkeypatch.setattr("wideflow.limits.ridge_quads.MOST_DIMENSIONS", 1)
    np.testing.assert_allclose(noise_matrix(*args), [[expected]], atol=1e-10)
