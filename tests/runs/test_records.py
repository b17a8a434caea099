"""A record survives the disk whole, or is recognised as damaged: never half read, never a crash."""

import importlib.util
import math
import os

import numpy as np
import pytest
import xarray as xr
from small_experiment import EXPERIMENT, claims

from wideflow.runs import DamagedRecordError, Store, perform, read_record, write_record
from wideflow.runs.files import write_whole
from wideflow.runs.records import Judged


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return perform(EXPERIMENT, Store(tmp_path_factory.mktemp("runs")), size="smoke", seed=3).record


def same(left: xr.Dataset, right: xr.Dataset) -> None:
    assert set(left.variables) == set(right.variables)
    for name in left.variables:
        assert left[name].dims == right[name].dims
        np.testing.assert_array_equal(left[name].values, right[name].values)


def test_what_is_read_is_what_was_saved(record):
    again = read_record(record.path)
    same(again.table, record.table)
    assert (
        again.claims[:2] == record.claims[:2]
    )  # the third one's value is NaN, which equals nothing
    assert again.about().keys() == record.about().keys()
    for name in (
        "experiment",
        "size",
        "seed",
        "address",
        "revision",
        "status",
        "started",
        "changed",
    ):
        assert getattr(again, name) == getattr(record, name)
    assert list(again.settings) == list(record.settings)  # in the order of declaration
    assert list(again.settings["gammas"]) == [1.0, 0.5]


def test_attributes_that_netcdf_lacks_come_back(record):
    attributes = read_record(record.path).table.attrs
    assert attributes["gammas"] == [1.0, 0.5]
    assert attributes["thorough"] is False
    assert attributes["nothing"] is None
    assert attributes["odd"] == math.inf
    assert all(c.ok for c in claims(read_record(record.path).table))


def test_a_node_without_h5netcdf_writes_the_same_record(record, tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "h5netcdf" else found(name, *rest),
    )
    kept = write_record(record, tmp_path / "three.nc")
    assert kept.path.read_bytes()[:3] == b"CDF"  # netCDF 3
    same(read_record(kept.path).table, record.table)
    with xr.open_dataset(kept.path, engine="scipy") as opened:
        np.testing.assert_array_equal(opened.loss, record.table.loss)


def test_other_programs_read_the_file(record, tmp_path):
    with xr.open_dataset(record.path, engine="h5netcdf") as opened:
        np.testing.assert_array_equal(opened.loss, record.table.loss)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.999])
def test_a_file_cut_short_is_named(record, tmp_path, share):
    payload = record.path.read_bytes()
    path = tmp_path / "cut.nc"
    path.write_bytes(payload[: int(share * len(payload))])
    with pytest.raises(DamagedRecordError, match=r"cut\.nc"):
        read_record(path)


def test_a_changed_number_is_noticed(record, tmp_path):
    payload = record.path.read_bytes()
    number = np.float64(record.table.loss.values[0, 1]).tobytes()
    at = payload.index(number)
    path = tmp_path / "changed.nc"
    path.write_bytes(
        payload[:at] + bytes([payload[at] ^ 1]) + payload[at + 1 :]
    )  # the last bit of one loss
    with pytest.raises(DamagedRecordError, match="digest"):
        read_record(path)


def test_every_flipped_byte_is_noticed(record, tmp_path):
    payload, path = record.path.read_bytes(), tmp_path / "flipped.nc"
    for at in np.random.default_rng(0).integers(0, len(payload), 40):
        path.write_bytes(payload[:at] + bytes([payload[at] ^ 0x55]) + payload[at + 1 :])
        with pytest.raises(DamagedRecordError, match=r"flipped\.nc"):
            read_record(path)


@pytest.mark.parametrize("payload", [b"", b"hello", b"\x80\x04\x95 a pickle", b"PK\x03\x04 a zip"])
def test_foreign_files_are_named(tmp_path, payload):
    path = tmp_path / "foreign.nc"
    path.write_bytes(payload)
    with pytest.raises(DamagedRecordError, match=r"foreign\.nc is not a netCDF file"):
        read_record(path)


def test_a_netcdf_file_of_somebody_else_is_no_record(tmp_path):
    path = tmp_path / "other.nc"
    xr.Dataset({"a": ("x", [1.0])}).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(DamagedRecordError, match="not a record of wideflow"):
        read_record(path)


def test_a_failing_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "kept.nc"
    write_whole(path, b"old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["kept.nc"]


def test_the_command_repeats_the_run(tmp_path):
    changed = perform(
        EXPERIMENT, Store(tmp_path), size="smoke", overrides={"gammas": "1,0.25", "width": 8}
    ).record
    assert (
        changed.command
        == "wideflow run small-one --size smoke --seed 0 --set width=8 --set gammas=1.0,0.25"
    )


@pytest.mark.parametrize("verdict", ["not checked at this size", "not asked at this size"])
def test_unchecked_claims_are_known_in_old_and_new_records(verdict):
    claim = Judged("slope", 1.0, "≤ 2", verdict, acceptable=True, reproduces=True)
    assert claim.kind == "unasked"
