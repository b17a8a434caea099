"""The mean-field limit against closed forms, scipy, and wide networks."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from wideflow._core.normal_rows import normal_rows, square_root
from wideflow.limits.deep import slope_gram
from wideflow.limits.mean_field import collapsed_mean_field, mean_field

GRAM = np.array([[1.0, 0.5], [0.5, 0.8]])
Y = np.array([0.4, -0.3])


def characteristics(start, signs, weights, gram, y, act, slope, times, magnitude=1.0, rtol=1e-11):
    """dh = -c G (s'(h) r) for explicit neurons, by scipy's DOP853."""
    shape = start.shape

    def field(_, h):
        h = h.reshape(shape)
        r = magnitude * (weights * signs) @ act(h) - y
        return (-magnitude * signs[:, None] * (slope(h) * r) @ gram).ravel()

    out = solve_ivp(
        field, (0, times[-1]), start.ravel(), "DOP853", times, rtol=rtol, atol=rtol / 100
    )
    return np.array([magnitude * (weights * signs) @ act(h.reshape(shape)) for h in out.y.T])


def sech2(h):
    return 1 / np.cosh(h) ** 2


def test_a_linear_activation_has_the_closed_form():
    # h drops out: f' = -chat^2 G (f - y)
    path = mean_field(GRAM, Y, "linear", [0.0, 0.5, 2.0], magnitude=1.5, spacing=0.25)
    for i, t in enumerate([0.0, 0.5, 2.0]):
        assert_allclose(path.residuals[i], -expm(-2.25 * GRAM * t) @ Y, atol=1e-9)


def normal_grid(spacing):
    """A plain rule for E over N(0, 1): equally spaced on [-8.5, 8.5]."""
    t = np.arange(-8.5, 8.5 + spacing / 2, spacing)
    w = np.exp(-(t**2) / 2)
    return t, w / w.sum()


def test_one_point_against_an_independent_solver():
    t, w = normal_grid(0.04)
    start, signs = np.concatenate([t, t])[:, None], np.repeat([1.0, -1.0], len(t))
    shares = np.concatenate([w, w]) / 2
    expected = characteristics(
        start, signs, shares, np.ones((1, 1)), Y[:1], np.tanh, sech2, [0.0, 1.0, 2.0]
    )
    path = mean_field([[1.0]], Y[:1], "tanh", [0.0, 1.0, 2.0])
    assert path.error < 1e-9
    assert_allclose(path.outputs, expected, atol=1e-9)


def test_two_points_not_odd_both_populations():
    sigmoid = lambda h: 1 / (1 + np.exp(-h))
    t, w = normal_grid(0.25)
    grid = (
        np.stack(np.meshgrid(t, t, indexing="ij"), -1).reshape(-1, 2) @ np.linalg.cholesky(GRAM).T
    )
    weights = np.outer(w, w).ravel()
    start, signs = np.concatenate([grid, grid]), np.repeat([1.0, -1.0], len(grid))
    expected = characteristics(
        start,
        signs,
        np.concatenate([weights, weights]) / 2,
        GRAM,
        Y,
        sigmoid,
        lambda h: sigmoid(h) * (1 - sigmoid(h)),
        [0.0, 3.0],
    )
    path = mean_field(GRAM, Y, "sigmoid", [0.0, 3.0])
    assert path.method == "grid"
    assert_allclose(path.outputs, expected, atol=1e-9)


def test_inputs_of_length_zero_stand_still():
    # h = 0 for every neuron, so that f = chat/2 (E sigma(0) - E sigma(0)) = 0 at all times
    path = mean_field(np.zeros((2, 2)), [1.0, -1.0], "tanh", [0.0, 2.0])
    assert_allclose(path.outputs, np.zeros((2, 2)), atol=0)
    assert_allclose(path.losses, [1.0, 1.0])


def test_the_kernel_at_the_start_is_the_lazy_one():
    path = mean_field(GRAM, Y, "tanh", [0.0, 0.1, 0.2], magnitude=2.0, spacing=0.25)
    assert_allclose(path.kernels[0], 4 * GRAM * np.asarray(slope_gram(GRAM, "tanh")), atol=1e-11)


def test_the_loss_falls_as_the_kernel_says():
    # dL/dt = -r^T K r, by a central difference of error O(h^2)
    path = mean_field(GRAM, Y, "tanh", [0.999, 1.0, 1.001], spacing=0.25)
    slope = (path.losses[2] - path.losses[0]) / 0.002
    assert_allclose(slope, -path.residuals[1] @ path.kernels[1] @ path.residuals[1], rtol=1e-6)


def test_a_test_point_equal_to_a_training_point_follows_it():
    double = GRAM[np.ix_([0, 1, 0], [0, 1, 0])]
    path = mean_field(double, Y, "tanh", [0.0, 1.5], spacing=0.25)
    assert_allclose(path.outputs[:, 2], path.outputs[:, 0], atol=1e-10)


def test_a_test_point_against_particles():
    gram = np.array([[1.0, 0.5, 0.3], [0.5, 0.8, -0.2], [0.3, -0.2, 0.7]])
    grid = mean_field(gram, Y, "tanh", [0.0, 2.0], spacing=0.25)
    drawn = mean_field(
        gram, Y, "tanh", [0.0, 2.0], method="particles", particles=20_000, key=jax.random.key(0)
    )
    assert_allclose(
        drawn.outputs[1], grid.outputs[1], atol=0.01
    )  # 1/sqrt(20000) = 0.007 times less than 1


def test_a_wide_network_follows_the_limit():
    # 4000 draws, each with both signs: within 10 % of the loss while it is above 5 % of its start
    times = np.array([0.0, 1.0, 2.0, 4.0])
    h = np.asarray(normal_rows(jax.random.key(5), GRAM, 4000))  # each is used with both signs
    start, signs = np.concatenate([h, h]), np.repeat([1.0, -1.0], 4000)
    outputs = characteristics(
        start, signs, np.full(8000, 1 / 8000), GRAM, Y, np.tanh, sech2, times, rtol=1e-6
    )
    losses = 0.5 * np.sum((outputs - Y) ** 2, axis=1)
    path = mean_field(GRAM, Y, "tanh", times, spacing=0.2)
    watched = losses > 0.05 * losses[0]
    assert_allclose(losses[watched], np.asarray(path.losses)[watched], rtol=0.1)


def test_relu_grid_agrees_with_particles():
    times = [0.0, 1.0, 3.0]
    grid = mean_field(GRAM, Y, "relu", times, spacing=0.2)
    drawn = mean_field(
        GRAM, Y, "relu", times, method="particles", particles=20_000, key=jax.random.key(2)
    )
    assert_allclose(drawn.losses, grid.losses, rtol=0.05)


def test_the_collapsed_limit_against_scipy():
    expected = characteristics(
        np.zeros((2, 2)),
        np.array([1.0, -1.0]),
        np.array([0.5, 0.5]),
        GRAM,
        Y,
        np.tanh,
        sech2,
        [0.0, 1.0, 4.0],
        magnitude=1.2,
    )
    path = collapsed_mean_field(GRAM, Y, "tanh", [0.0, 1.0, 4.0], magnitude=1.2)
    assert_allclose(path.outputs, expected, atol=1e-9)


def test_the_symmetric_root_of_a_singular_matrix():
    gram = np.array([[1.0, 1.0], [1.0, 1.0]])
    assert_allclose(square_root(gram) @ square_root(gram), gram, atol=1e-14)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: mean_field(np.ones((2, 3)), Y, "tanh", [1.0]), "gram"),
        (lambda: mean_field(-np.eye(2), Y, "tanh", [1.0]), "gram"),
        (lambda: mean_field(GRAM, Y, "tanh", [1.0, 0.5]), "times"),
        (lambda: mean_field(GRAM, np.ones(3), "tanh", [1.0]), "targets"),
        (lambda: mean_field(GRAM, Y, "tanh", [1.0], magnitude=-1.0), "magnitude"),
        (lambda: mean_field(GRAM, Y, "tanh", [1.0], method="particles"), "key"),
        (lambda: mean_field(np.eye(4), np.ones(4), "tanh", [1.0], method="grid"), "method"),
        (lambda: collapsed_mean_field(GRAM, Y, "relu", [1.0]), "activation"),
        (lambda: collapsed_mean_field(GRAM, Y, "cos", [1.0]), "activation"),
    ],
)
def test_wrong_input_is_named(call, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        call()
