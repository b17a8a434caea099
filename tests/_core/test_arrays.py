"""Arrays from whatever a user passed: what passes, what is refused, and in which words."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from wideflow._core.arrays import (
    gram_matrix,
    increasing,
    index_list,
    real_array,
    real_values,
    square_matrix,
)
from wideflow._core.errors import check_positive


@pytest.mark.parametrize(
    "value", [[[1, 2]], np.ones((1, 2), np.float32), jnp.ones((1, 2)), [[True, False]]]
)
def test_real_numbers_pass_in_their_own_dtype(value):
    array = real_array("x", value, "(sample, feature)")
    assert array.dtype == jnp.asarray(value).dtype
    assert_array_equal(array, value)


@pytest.mark.parametrize(
    "value",
    [
        "text",
        None,
        [[1.0], [1.0, 2.0]],
        [1j],
        ["a"],
        object(),
        np.array(["2020-01-01"], "datetime64[D]"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(value):
    with pytest.raises(ValueError, match="`x` must"):
        real_values("x", value)


def test_the_place_of_the_first_bad_value_is_told():
    with pytest.raises(ValueError, match=r"got inf at index \(1, 0\) \(2 bad values in all\)"):
        real_values("x", [[1.0, 2.0], [np.inf, np.nan]])


def test_shapes_name_axes_or_give_lengths():
    real_values("x", np.ones((2, 3)), "(sample, 3)")
    with pytest.raises(ValueError, match=r"shape \(sample, 3\), got \(2, 2\)"):
        real_values("x", np.ones((2, 2)), "(sample, 3)")


def test_traced_values_are_checked_for_shape_alone():
    double = jax.jit(lambda v: 2 * real_array("x", v, "(time,)"))
    assert_array_equal(double(jnp.array([1.0, np.nan])), [2.0, np.nan])
    with pytest.raises(ValueError, match="`x` must have shape"):
        double(jnp.ones((2, 2)))


def test_symmetry_up_to_rounding():
    matrix = np.array([[2.0, 1.0], [1.0 + 1e-12, 2.0]])
    assert_array_equal(square_matrix("k", matrix), matrix)
    with pytest.raises(ValueError, match="must be symmetric"):
        square_matrix("k", matrix + np.array([[0.0, 1e-3], [0.0, 0.0]]))


def test_a_gram_matrix_obeys_cauchy_and_schwarz():
    rows = np.random.default_rng(0).normal(size=(6, 2))  # of rank 2: equality up to rounding occurs
    gram_matrix("g", np.concatenate([rows, 3 * rows]) @ np.concatenate([rows, 3 * rows]).T)
    with pytest.raises(ValueError, match="exceeds what the diagonal"):
        gram_matrix("g", [[1.0, 2.0], [2.0, 1.0]])


def test_indices_may_count_from_the_end_or_be_a_mask():
    assert_array_equal(index_list("rows", [0, -1], 3), [0, -1])
    assert_array_equal(index_list("rows", [True, False, True], 3), [0, 2])
    with pytest.raises(ValueError, match=r"`rows` must lie in 0..2"):
        index_list("rows", [3], 3)


def test_times_must_grow():
    assert_array_equal(increasing("times", [0, 1, 2]), [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="`times` must increase"):
        increasing("times", [0.0, 2.0, 1.0])


def test_a_number_inside_a_compiled_program_is_not_looked_at():
    def double_of(radius):
        check_positive("radius", radius)
        return 2 * radius

    assert float(jax.jit(double_of)(3.0)) == 6.0
    with pytest.raises(ValueError, match="`radius` must be positive"):
        double_of(-1.0)
