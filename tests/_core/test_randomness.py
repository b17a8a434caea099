"""Named keys and the draws of models and data."""

import jax
import numpy as np
import pytest
from compile_log import compilations

from wideflow._core.randomness import MOST, named_key, normal, signs

SHAPES = [(), (1,), (63,), (64,), (65,), (3, 5), (2, 3, 7), (40, 33), (0, 4), (MOST,), (MOST + 1,)]


@pytest.mark.parametrize("shape", SHAPES)
def test_draws_are_those_of_jax_bit_for_bit(shape):
    key = named_key(3, "hidden")
    np.testing.assert_array_equal(normal(key, shape), jax.random.normal(key, shape, float))
    np.testing.assert_array_equal(signs(key, shape), jax.random.rademacher(key, shape, float))


def test_a_generator_that_does_not_count_entries_draws_as_it_does():
    key = jax.random.key(5, impl="rbg")
    np.testing.assert_array_equal(normal(key, (7,)), jax.random.normal(key, (7,), float))
    with jax.threefry_partitionable(False):
        key = jax.random.key(5)
        np.testing.assert_array_equal(normal(key, (7,)), jax.random.normal(key, (7,), float))


def test_draws_inside_a_program():
    keys = jax.random.split(jax.random.key(1), 3)
    inside = jax.jit(jax.vmap(lambda key: normal(key, (4, 2))))(keys)
    np.testing.assert_array_equal(inside[2], normal(keys[2], (4, 2)))


def test_draws_of_many_shapes_compile_few_programs():
    key = named_key(4, "few")
    with compilations() as names:
        for n in range(130, 250):
            normal(key, (n,))
    assert sum("normal" in name for name in names) <= 1
