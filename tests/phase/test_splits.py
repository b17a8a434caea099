"""Rows of a fold: nothing that judges a setting has a part in training or choosing it."""

import numpy as np
import pytest

from wideflow.phase.splits import Standard, split_rows


def test_folds_cover_the_table_and_their_parts_never_meet():
    parts = [split_rows(0, 103, fold, 5, 1000) for fold in range(5)]
    for rows in parts:
        together = np.concatenate(rows)
        assert len(np.unique(together)) == len(together)
        assert [len(r) for r in rows] == [len(r) for r in parts[0]]
    tests = np.concatenate([rows.test for rows in parts])
    assert len(np.unique(tests)) == len(tests) == 100  # 103 // 5 rows in each of five


def test_later_folds_are_a_new_shuffle_and_the_same_key_the_same_rows():
    first, again, later = (split_rows(3, 50, fold, 5, 20) for fold in (0, 0, 5))
    np.testing.assert_array_equal(first.train, again.train)
    assert len(first.train) == 20
    assert set(first.test) != set(later.test)


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match="`data` must have rows for 5 folds"):
        split_rows(0, 4, 0, 5, 100)


def test_standardising_by_hand_and_back():
    x, y = np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([10.0, 30.0])
    standard = Standard.of(x, y)
    np.testing.assert_allclose(standard.inputs(x), [[-1, 0, 1], [1, 0, 1]])  # constant column to 0
    np.testing.assert_allclose(standard.predictions(standard.targets(y)), y, rtol=1e-14)


def test_constant_targets_are_refused():
    with pytest.raises(ValueError, match="`targets` are constant"):
        Standard.of(np.eye(2), np.ones(2))
