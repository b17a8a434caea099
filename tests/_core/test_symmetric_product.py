"""The mirrored product against the whole one."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from wideflow._core.symmetric_product import SMALLEST, symmetric_product


@pytest.mark.parametrize("samples", [1, 2, SMALLEST - 1, SMALLEST, 2 * SMALLEST + 1, 515])
def test_is_the_product_with_the_transpose(samples):
    rows = np.random.default_rng(samples).normal(size=(samples, 40)).astype(np.float32)
    expected = rows.astype(float) @ rows.astype(float).T
    assert_allclose(symmetric_product(jnp.asarray(rows)), expected, atol=1e-4)
