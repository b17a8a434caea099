"""Values at many points by few programs: the function's own, whatever the shape."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wideflow._core import pointwise as module
from wideflow._core.pointwise import pointwise, power_of_two


def test_powers_of_two():
    assert [power_of_two(n) for n in (1, 2, 3, 4, 5, 64, 65)] == [1, 2, 4, 4, 8, 64, 128]
    assert power_of_two(3, least=64) == 64


@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 40), (2, 3, 4)])
def test_values_are_those_of_the_function(shape):
    points = np.random.default_rng(0).normal(size=shape)
    values = pointwise(jnp.tanh, points)
    assert isinstance(values, np.ndarray)
    assert values.shape == shape
    np.testing.assert_allclose(values, np.tanh(points), rtol=1e-14)


def test_more_points_than_are_filled_up(monkeypatch):
    monkeypatch.setattr(module, "MOST", 10)
    points = np.linspace(-1.0, 1.0, 11)
    np.testing.assert_allclose(pointwise(jnp.tanh, points), np.tanh(points), rtol=1e-14)


def test_shapes_share_a_program():
    traced = []

    def function(points):
        traced.append(points.shape)
        return jax.nn.softplus(points)

    for size in (3, 40, 64, 65, 100):
        pointwise(function, np.zeros(size))
    assert traced == [(64,), (128,)]
