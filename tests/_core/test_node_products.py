"""Products over neurons against plain NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from wideflow._core.node_products import SMALLEST, cut_blocks, join_blocks, symmetric_product


@pytest.mark.parametrize("samples", [1, 2, SMALLEST - 1, SMALLEST, 2 * SMALLEST + 1, 515])
def test_mirrored_product_is_the_product_with_the_transpose(samples):
    rows = np.random.default_rng(samples).normal(size=(samples, 40)).astype(np.float32)
    expected = rows.astype(float) @ rows.astype(float).T
    assert_allclose(symmetric_product(jnp.asarray(rows)), expected, atol=1e-4)


@pytest.mark.parametrize("count", [1, 4, 5, 13])
def test_blocks_join_to_what_was_cut(count):
    one, rows = np.arange(13.0), np.random.default_rng(5).normal(size=(2, 3, 13))
    blocks, rest = cut_blocks(count, jnp.asarray(one), jnp.asarray(rows))
    assert len(blocks) == count
    assert float(jnp.sum(blocks)) == one.sum()  # padded by zeros
    assert_allclose(join_blocks(rest, 13), rows, rtol=1e-6)
