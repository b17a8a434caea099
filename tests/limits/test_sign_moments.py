"""Powers and signs against integrals over two of the Gaussians, the other two in closed form or by
exact rules; and what four equal signs are.
"""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf, ndtr, owens_t

from wideflow._core.activations import activation, hermite, sign
from wideflow.limits.ridge_quads import noise_matrix
from wideflow.limits.sign_moments import SignMoments

ROOT = np.array([[0.9, 0, 0, 0], [0.3, 0.8, 0, 0], [-0.2, 0.4, 1.0, 0], [0.5, -0.3, 0.2, 0.7]])
C = ROOT @ ROOT.T
A, B = np.array([0.7, -0.4]), np.array([0.5, -1.1])  # of the two students and the two teachers
NODE, WEIGHT = np.polynomial.legendre.leggauss(60)
STUDENTS = {  # value and slope, written again with NumPy
    "relu": (lambda z: np.maximum(z, 0), lambda z: (z > 0) * 1.0),
    "leaky_relu": (lambda z: np.where(z > 0, z, 0.01 * z), lambda z: np.where(z > 0, 1.0, 0.01)),
    "square": (np.square, lambda z: 2 * z),
    "he3": (lambda z: (z**3 - 3 * z) / 6**0.5, lambda z: (z**2 - 1) * 1.5**0.5),
}


def act(name):
    return {"sign": sign, "he3": lambda: hermite(3)}.get(name, lambda: activation(name))()


def plane():
    """Points (u, v) and weights of their law: Gauss-Legendre in radius and, between the lines u = 0
    and v = 0, in the angle.
    """
    root = np.linalg.cholesky(C[:2, :2])
    # u = 0 at +-pi/2 of the whitened plane, v = 0 along (l_22, -l_21)
    lines = [np.pi / 2, np.arctan2(-root[1, 0], root[1, 1])]
    cuts = np.sort(np.mod([*lines, *np.add(lines, np.pi)], 2 * np.pi))
    r, dr = 6 * (NODE + 1), 6 * WEIGHT
    points, weights = [], []
    for low, high in zip(cuts, [*cuts[1:], cuts[0] + 2 * np.pi], strict=True):
        theta, turn = low + (high - low) * (NODE + 1) / 2, (high - low) / 2 * WEIGHT
        z = r[:, None, None] * np.stack([np.cos(theta), np.sin(theta)], -1)
        points.append((z @ root.T).reshape(-1, 2))
        weights.append(np.outer(dr * r * np.exp(-(r**2) / 2) / (2 * np.pi), turn).ravel())
    return np.concatenate(points), np.concatenate(weights)


def two_signs(m, n, p, q, r):
    """E[sign(x) sign(y)] for means m, n and covariance ((p, q), (q, r)): 4 P(x, y > 0) - 2
    P(x > 0) - 2 P(y > 0) + 1, with Owen's T.
    """
    h, k, rho = m / p**0.5, n / r**0.5, q / (p * r) ** 0.5
    s = np.sqrt(1 - rho**2)
    corner = (ndtr(h) + ndtr(k)) / 2 - owens_t(h, (k / h - rho) / s) - owens_t(k, (h / k - rho) / s)
    corner = corner - np.where(h * k < 0, 0.5, 0.0)
    return 4 * corner - 2 * ndtr(h) - 2 * ndtr(k) + 1


def given(points):
    """Means (point, 2) and covariance of (x, y) given (u, v)."""
    gain = C[2:, :2] @ np.linalg.inv(C[:2, :2])
    return points @ gain.T, C[2:, 2:] - gain @ C[:2, 2:]


def signs(points, noise):
    """E[phi(x)], E[phi(y)] and E[phi phi] given (u, v), phi(x) = E_n sign(x + n)."""
    means, rest = given(points)
    spread = np.diag(rest) + noise
    first = erf(means / np.sqrt(2 * spread))
    second = np.empty((len(points), 2, 2))
    for i in range(2):
        for j in range(2):
            same = i == j and noise == 0
            values = (
                1.0
                if same
                else two_signs(means[:, i], means[:, j], spread[i], rest[i, j], spread[j])
            )
            second[:, i, j] = values
    return first, second


def polynomials(points, function):
    """The same for a polynomial, by a Gauss-Hermite rule that is exact for it."""
    means, rest = given(points)
    t, w = np.polynomial.hermite_e.hermegauss(8)
    z = np.stack(np.meshgrid(t, t, indexing="ij"), -1).reshape(-1, 2)
    weight = np.outer(w, w).ravel() / (2 * np.pi)
    values = function(means[:, None, :] + z @ np.linalg.cholesky(rest).T)
    first = np.einsum("q,pqi->pi", weight, values)
    return first, np.einsum("q,pqi,pqj->pij", weight, values, values)


@pytest.fixture(scope="module")
def rule():
    return plane()


@pytest.mark.parametrize(
    ("student", "teacher"),
    [
        ("relu", "erf"),
        ("relu", "sign"),
        ("relu", "square"),
        ("relu", "he3"),
        ("leaky_relu", "sign"),
        ("square", "sign"),
        ("he3", "sign"),
        ("he3", "erf"),
    ],
)
def test_noise_of_unlike_students_and_teachers(student, teacher, rule):
    points, weights = rule
    value, slope = STUDENTS[student]
    if teacher in ("erf", "sign"):
        first, second = signs(points, 0.5 if teacher == "erf" else 0.0)
    else:
        first, second = polynomials(points, STUDENTS[teacher][0])
    f, pull = value(points) @ A, slope(points)
    square = f**2 + 2 * f * (first @ B) + np.einsum("i,pij,j->p", B, second, B)
    expected = np.einsum("p,pk,pl->kl", weights * square, pull, pull)
    got = noise_matrix(act(student), act(teacher), jnp.asarray(C), jnp.concatenate([A, B]), 2, 8)
    np.testing.assert_allclose(got, expected, atol=1e-10)


@pytest.mark.parametrize("student", ["square", "he3"])
def test_polynomial_students_of_a_ramp(student, rule):
    """One neuron and one teacher: the ramp's moments given the neuron are closed."""
    points, weights = rule
    value, slope = STUDENTS[student]
    u = points[:, 0]
    m, s = u * C[0, 2] / C[0, 0], np.sqrt(C[2, 2] - C[0, 2] ** 2 / C[0, 0])
    density = np.exp(-((m / s) ** 2) / 2) / np.sqrt(2 * np.pi)
    first = m * ndtr(m / s) + s * density
    second = (m**2 + s**2) * ndtr(m / s) + m * s * density
    square = (A[0] * value(u)) ** 2 + 2 * A[0] * value(u) * B[0] * first + B[0] ** 2 * second
    expected = np.sum(weights * slope(u) ** 2 * square)
    some = np.ix_([0, 2], [0, 2])
    got = noise_matrix(
        act(student), act("relu"), jnp.asarray(C[some]), jnp.array([A[0], B[0]]), 1, 8
    )
    np.testing.assert_allclose(got, [[expected]], atol=1e-10)


def test_moments_by_hand():
    # with correlation 1/2 the corner of four has the probability 1/5 and the pair's sign mean is
    # 1/3: 1/5 = (1 + 6/3 + E[ssss])/16
    equal = [[jnp.asarray(1.0 if i == j else 0.5) for j in range(4)] for i in range(4)]
    moment = SignMoments(equal, (0.0,) * 4)
    four = frozenset(range(4))
    np.testing.assert_allclose(moment((0, 0, 0, 0), four), 1 / 5, atol=1e-12)
    # E|h| = sqrt(2/pi), E h^3 sign(h) = 2 sqrt(2/pi), E h_0^2 h_1^2 = 1 + 2/4
    np.testing.assert_allclose(moment((1, 0, 0, 0), frozenset({0})), math.sqrt(2 / math.pi))
    np.testing.assert_allclose(moment((3, 0, 0, 0), frozenset({0})), 2 * math.sqrt(2 / math.pi))
    np.testing.assert_allclose(moment((2, 2, 0, 0), frozenset()), 1.5)
    assert moment((1, 0, 0, 0), frozenset({0, 1})) == 0.0
    # one variable twice, across the pairs that the integral keeps apart: its signs cancel, and the
    # other two have 2/pi arcsin(rho)
    rows = [[1.0, 0.4, 1.0, 0.3], [0.4, 1.0, 0.4, 0.2], [1.0, 0.4, 1.0, 0.3], [0.3, 0.2, 0.3, 1.0]]
    moment = SignMoments([[jnp.asarray(c) for c in row] for row in rows], (0.0,) * 4)
    np.testing.assert_allclose(
        moment((0, 0, 0, 0), four), 2 / math.pi * math.asin(0.2), rtol=0, atol=1e-12
    )
    # two pairs of one variable each, likewise
    pairs = [[jnp.asarray(1.0 if (i - j) % 2 == 0 else 0.3) for j in range(4)] for i in range(4)]
    np.testing.assert_allclose(
        SignMoments(pairs, (0.0,) * 4)((0, 0, 0, 0), four), 1.0, rtol=0, atol=1e-12
    )
