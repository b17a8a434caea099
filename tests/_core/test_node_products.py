"""The forms for each platform against plain NumPy in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from wideflow._core import node_products
from wideflow._core.activations import relu
from wideflow._core.node_products import (
    SMALLEST,
    node_gradient,
    node_sum,
    pieces,
    symmetric_product,
)

RNG = np.random.default_rng(3)
FEATURES, VALUES = RNG.normal(size=(30, 7)), RNG.normal(size=(30, 40))
COTANGENT, MIXED = RNG.normal(size=30), RNG.normal(size=40)
SLOPES = (VALUES > 0).astype(float)
EXPECTED = np.einsum("ik,ij,i,j->kj", FEATURES, SLOPES, COTANGENT, MIXED)


def single(*arrays):
    return [jnp.asarray(a, jnp.float32) for a in arrays]


@pytest.mark.parametrize("form", ["mixed_first", "mixed_last", "in_pieces"])
def test_every_form_is_the_same_gradient(form):
    gradient = getattr(node_products, form)(relu(), *single(FEATURES, VALUES, COTANGENT, MIXED))
    assert_allclose(gradient, EXPECTED, atol=2e-6 * np.abs(EXPECTED).max())


def test_platform_is_chosen_by_the_compiler():
    with jax.enable_x64(True):
        arrays = map(jnp.asarray, (FEATURES, VALUES, COTANGENT, MIXED))
        assert_allclose(node_gradient(relu(), *arrays), EXPECTED, rtol=1e-12)
        sums = node_sum(relu(), jnp.asarray(VALUES), jnp.asarray(MIXED))
        assert_allclose(sums, np.maximum(VALUES, 0) @ MIXED, rtol=1e-12)


def test_pieces_add_up_exactly_and_fit_bfloat16():
    values = jnp.asarray(RNG.normal(size=1000) * 10.0 ** RNG.integers(-20, 20, 1000), jnp.float32)
    parts = jax.jit(pieces)(values)
    assert all(part.dtype == jnp.bfloat16 for part in parts)
    total = sum(np.asarray(part, np.float64) for part in parts)
    assert_allclose(total, np.asarray(values, np.float64), rtol=0)


@pytest.mark.parametrize("samples", [1, 2, SMALLEST - 1, SMALLEST, 2 * SMALLEST + 1, 515])
def test_mirrored_product_is_the_product_with_the_transpose(samples):
    rows = np.random.default_rng(samples).normal(size=(samples, 40)).astype(np.float32)
    expected = rows.astype(float) @ rows.astype(float).T
    assert_allclose(symmetric_product(jnp.asarray(rows)), expected, atol=1e-4)
