"""The constant-kernel prediction against scipy's matrix exponential and hand values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import expm

from wideflow.limits.linearised import linearised

RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(6, 6))
WHOLE = ROOT @ ROOT.T / 6
KERNEL, CROSS = WHOLE[:4, :4], WHOLE[4:, :4]
Y, F0, T0 = RNG.normal(size=4), RNG.normal(size=4), RNG.normal(size=2)


def test_residuals_are_a_matrix_exponential():
    path = linearised(KERNEL, Y, [0.0, 0.7, 3.0], start=F0)
    for i, t in enumerate([0.0, 0.7, 3.0]):
        assert_allclose(path.residuals[i], expm(-KERNEL * t) @ (F0 - Y), atol=1e-13)
    assert_allclose(path.losses[0], np.sum((F0 - Y) ** 2) / 2)


def test_test_outputs_solve_their_equation():
    # f_t(x) = f_0(x) - k K^-1 (1 - e^{-Kt}) r_0
    path = linearised(KERNEL, Y, [1.3], start=F0, test_kernel=CROSS, test_start=T0)
    expected = T0 - CROSS @ np.linalg.solve(KERNEL, (np.eye(4) - expm(-1.3 * KERNEL)) @ (F0 - Y))
    assert_allclose(path.test_outputs[0], expected, atol=1e-12)


def test_infinite_time_is_kernel_regression():
    path = linearised(KERNEL, Y, [np.inf], test_kernel=CROSS)
    assert_allclose(path.outputs[0], Y, atol=1e-12)
    assert_allclose(path.test_outputs[0], CROSS @ np.linalg.solve(KERNEL, Y), rtol=1e-9)


def test_descent_is_a_matrix_power():
    path = linearised(KERNEL, Y, [0.0, 0.5], start=F0, rate=0.1)
    assert_allclose(
        path.residuals[1],
        np.linalg.matrix_power(np.eye(4) - 0.1 * KERNEL, 5) @ (F0 - Y),
        atol=1e-13,
    )


def test_a_singular_direction_stays():
    # K = vv^T with v = (1, 1): the difference of the residuals never moves
    path = linearised(np.ones((2, 2)), np.array([1.0, 0.0]), [np.inf], test_kernel=np.ones((1, 2)))
    assert_allclose(path.outputs[0], [0.5, 0.5], atol=1e-14)
    assert_allclose(path.test_outputs[0], [0.5], atol=1e-14)
    assert not path.resolved


def test_several_outputs_are_independent():
    both = linearised(KERNEL, np.stack([Y, F0], axis=1), [0.4], test_kernel=CROSS)
    one = linearised(KERNEL, F0, [0.4], test_kernel=CROSS)
    assert_allclose(both.outputs[0][:, 1], one.outputs[0], atol=1e-14)
    assert_allclose(both.test_outputs[0][:, 1], one.test_outputs[0], atol=1e-14)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"kernel": np.eye(3)}, "kernel"),
        ({"times": [-1.0]}, "times"),
        ({"rate": 0.0}, "rate"),
        ({"start": np.zeros(3)}, "start"),
        ({"test_kernel": np.zeros((2, 3))}, "test_kernel"),
    ],
)
def test_wrong_input_is_named(wrong, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        linearised(**{"kernel": KERNEL, "targets": Y, "times": [1.0], **wrong})
