"""Checkpoints come back as they were; recent ones are skipped; damaged ones are as none."""

import numpy as np
import pytest

from wideflow.runs import FileCheckpointer, checkpoints

ARRAYS = {
    "leaf/0": np.arange(6.0).reshape(2, 3),
    "row/loss": np.array([1.5], np.float32),
    "step": np.int64(7),
}


def test_what_was_saved_is_loaded(tmp_path):
    checkpointer = FileCheckpointer(tmp_path / "below", every=0.0)
    checkpointer.save("abc", ARRAYS)
    kept = checkpointer.load("abc")
    assert kept.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(kept[name], array)
        assert kept[name].dtype == array.dtype
    assert checkpointer.load("other") is None


def test_a_recent_checkpoint_is_enough_unless_forced(tmp_path):
    checkpointer = FileCheckpointer(tmp_path, every=3600.0)
    checkpointer.save("abc", ARRAYS)
    assert checkpointer.load("abc") is None
    checkpointer.save("abc", ARRAYS, force=True)
    assert checkpointer.load("abc") is not None


@pytest.mark.parametrize("size", [0, 10, 200])
def test_a_damaged_checkpoint_is_as_none(tmp_path, size):
    checkpointer = FileCheckpointer(tmp_path, every=0.0)
    checkpointer.save("abc", ARRAYS)
    (path,) = tmp_path.glob("*.npz")
    path.write_bytes(path.read_bytes()[:size])
    assert checkpointer.load("abc") is None


def test_a_checkpoint_of_other_sources_is_as_none(tmp_path, monkeypatch):
    checkpointer = FileCheckpointer(tmp_path, every=0.0)
    checkpointer.save("abc", ARRAYS)
    monkeypatch.setattr(checkpoints, "_code", lambda: "of another version")
    assert checkpointer.load("abc") is None


def test_nothing_is_unpickled(tmp_path):
    FileCheckpointer(tmp_path, every=0.0).save("abc", ARRAYS)
    (path,) = tmp_path.glob("*.npz")
    np.savez(path, evil=np.array([{"a": 1}], dtype=object))
    assert FileCheckpointer(tmp_path).load("abc") is None
    with pytest.raises(ValueError, match="pickle"):
        FileCheckpointer(tmp_path, every=0.0).save("abc", {"evil": np.array([{}], dtype=object)})
