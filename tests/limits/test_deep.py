"""Limiting Gram matrices against published values, mpmath, Monte Carlo and finite networks."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow._core.activations import leaky_relu
from wideflow.limits.deep import hidden_gram, largest_cosine, lazy_kernel, sampled_gram, slope_gram

ANGLE = np.array([[1.0, 0.0], [0.5, np.sqrt(0.75)]]) * np.sqrt(2)  # x.x'/d = 1, 0.5, 1
LONGER = np.array([[1.0, 0.0], [0.5, np.sqrt(1.75)]]) * np.sqrt(2)  # 1, 0.5, 2

# E[s(u)s(v)], E[s'(u)s'(v)] at (1, .5, 1) and E[s(u)s(v)] at (1, .5, 2), 12 published digits
VALUES = {
    "relu": (0.304498890522, 0.333333333333, 0.364298881694),
    leaky_relu(0.1): (0.296644101323, 0.370000000000, 0.345082094172),
    "erf": (0.216346895939, 0.450158158079, 0.166257971481),
    "tanh": (0.186324413203, 0.384747028441, 0.146754115460),
    "sigmoid": (0.271428325632, 0.043190020462, 0.268812465054),
}


@pytest.mark.parametrize(("act", "values"), VALUES.items(), ids=str)
def test_published_values(act, values):
    assert_allclose(hidden_gram(ANGLE, act)[0, 1], values[0], atol=1e-11)
    assert_allclose(slope_gram(hidden_gram(ANGLE, act, depth=0), act)[0, 1], values[1], atol=1e-11)
    assert_allclose(hidden_gram(LONGER, act)[0, 1], values[2], atol=1e-11)


def test_relu_halves_the_diagonal_at_every_layer():
    x = np.array([[2.0, 0.0], [1.0, 1.0]])
    for depth in range(4):
        assert_allclose(
            np.diag(hidden_gram(x, "relu", depth=depth)),
            np.array([2.0, 1.0]) / 2**depth,
            rtol=1e-14,
        )


def test_two_tanh_layers_against_gauss_legendre():
    # 300 nodes on [-9, 9] each way, a rule that shares nothing with the trapezoid one
    t, w = np.polynomial.legendre.leggauss(300)
    t, w = 9 * t, 9 * w * np.exp(-((9 * t) ** 2) / 2) / np.sqrt(2 * np.pi)

    def dual(a, b, c):
        u, v = np.sqrt(a) * t, b / np.sqrt(a) * t[:, None] + np.sqrt(max(c - b * b / a, 0.0)) * t
        return (w * np.tanh(u)) @ np.tanh(v) @ w

    first, diagonal = dual(1.0, 0.5, 1.0), dual(1.0, 1.0, 1.0)
    assert_allclose(
        hidden_gram(ANGLE, "tanh", depth=2)[0, 1], dual(diagonal, first, diagonal), rtol=1e-11
    )


@pytest.mark.parametrize("act", ["relu", "tanh", "sigmoid"])
def test_against_monte_carlo(act):
    x = np.random.default_rng(0).normal(size=(3, 4))
    mean, error = sampled_gram(jax.random.key(0), x, act, samples=200_000)
    gap = np.abs(np.asarray(mean - hidden_gram(x, act))) / np.asarray(error)
    assert gap.max() < 4.5


def test_sampled_gram_has_a_gradient_where_an_entry_has_no_spread():
    # relu(u) relu(-u) = 0 for every draw: the mean is flat along the line and the error is 0
    def total(x):
        mean, error = sampled_gram(jax.random.key(0), x, "relu", samples=50)
        return mean[0, 1] + error[0, 1]

    inputs = np.array([[1.0, 2.0], [-1.0, -2.0]])
    assert_allclose(jax.grad(total)(inputs), np.zeros((2, 2)), atol=1e-15)


def test_monte_carlo_of_another_law():
    # signs: z.x/sqrt(1) = +-x, relu^2 has mean x^2/2
    mean, error = sampled_gram(
        jax.random.key(1), np.array([[3.0]]), "relu", draw=jax.random.rademacher, samples=10_000
    )
    assert abs(float(mean[0, 0]) - 4.5) < 4 * float(error[0, 0])


def test_finite_embedding_approaches_the_limit_like_the_root_of_its_features():
    x = np.random.default_rng(1).normal(size=(4, 3))
    limit = np.asarray(hidden_gram(x, "relu", depth=2))
    deviations = []
    for features in (100, 400):
        seen = []
        for seed in range(40):
            deep = wf.embeddings.DeepRandomFeatures.init(
                jax.random.key(seed), 3, features, layers=4
            )
            seen.append(np.linalg.norm(np.asarray(deep.gram(x)) - limit, 2))
        deviations.append(np.mean(seen))
    assert 1.6 < deviations[0] / deviations[1] < 2.5  # 2 up to the error of 40 draws


def test_cross_matrix_is_a_block_of_the_whole():
    x = np.random.default_rng(2).normal(size=(5, 3))
    whole = hidden_gram(x, "tanh", depth=3)
    assert_allclose(hidden_gram(x[:2], "tanh", depth=3, other=x[2:]), whole[:2, 2:], rtol=1e-12)


def test_lazy_kernel_is_the_limit_of_the_tangent_gram():
    # K = G o E[s's'] for a P-3L net; 3 standard errors of width and features together
    x = np.random.default_rng(3).normal(size=(3, 4))
    embedding = wf.embeddings.RandomFeatures.init(jax.random.key(0), 4, 4000)
    net = wf.Shallow.init(jax.random.key(1), features=4, width=4000, embedding=embedding)
    finite = wf.observables.tangent_gram(net, x)
    assert_allclose(finite, lazy_kernel(x, "relu"), atol=0.03)


def test_parallel_inputs_are_seen():
    assert largest_cosine([[1.0, 1.0], [-2.0, -2.0], [0.0, 1.0]]) == pytest.approx(1.0, abs=1e-15)
    assert largest_cosine([[1.0, 0.0], [1.0, 1.0]]) == pytest.approx(np.sqrt(0.5))
    assert largest_cosine([[0.0, 0.0], [1.0, 1.0]]) == 1.0


def test_antipodal_pairs_make_the_relu_matrix_singular():
    # relu(u) - relu(-u) = u: three antipodal pairs in the plane give three dependent linear
    # functions
    x = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [1.0, 1.0], [-1.0, -1.0]])
    assert abs(np.linalg.eigvalsh(hidden_gram(x, "relu"))[0]) < 1e-14


@pytest.mark.parametrize(
    ("wrong", "name"), [({"depth": -1}, "depth"), ({"other": np.ones((1, 3))}, "other")]
)
def test_wrong_input_is_named(wrong, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        hidden_gram(np.ones((2, 2)), "relu", **wrong)
