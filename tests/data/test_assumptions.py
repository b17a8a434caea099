import math

import numpy as np
import pytest

from wideflow.data import check_data_assumptions


def test_numbers_of_a_good_dataset():
    found = check_data_assumptions([[0.6, 0.0], [0.3, 0.3], [0.0, 1.0]], [0.5, -2.0, 1.0])
    assert found.largest_norm == 1.0
    assert found.smallest_norm == pytest.approx(math.sqrt(0.18))
    assert found.target_bound == 2.0
    assert found.smallest_sine == pytest.approx(math.sqrt(0.5))
    assert found.hold
    assert "no two are parallel" in found.message


@pytest.mark.parametrize(
    ("factor", "words"), [(1.0, "parallel"), (0.5, "parallel"), (-1.0, "opposite")]
)
def test_parallel_inputs_are_named(factor, words):
    first = np.array([0.3, -0.2, 0.5])
    found = check_data_assumptions(np.stack([[0.1, 0.9, 0.0], first, factor * first]), np.ones(3))
    assert found.closest_pair == (1, 2)
    assert not found.no_parallels
    assert words in found.message


def test_nearly_parallel_inputs_are_resolved():
    found = check_data_assumptions([[1.0, 0.0], [1.0, 1e-6]], [0.0, 0.0])
    assert found.smallest_sine == pytest.approx(1e-6, rel=1e-6)


def test_long_and_zero_inputs():
    assert "norm 5 > 1" in check_data_assumptions([[3.0, 4.0], [0.1, 0.0]], [0.0, 0.0]).message
    assert "zero" in check_data_assumptions([[0.0, 0.0], [0.1, 0.0]], [0.0, 0.0]).message
    with pytest.raises(ValueError, match="one row per sample"):
        check_data_assumptions(np.ones((3, 2)), np.ones(2))
