"""The quick way to netCDF 3 against xarray's own, which is the witness in both directions."""

import io

import numpy as np
import pytest
import xarray as xr

from wideflow.runs.netcdf3 import pack, unpack

TABLE = xr.Dataset(
    {
        "loss": (
            ("seed", "step"),
            np.array([[1.0, np.nan, np.inf], [0.1, -0.0, 5e-324]]),
            {"label": "½‖f − y‖²"},
        ),
        "count": ("step", np.array([1, -(2**31), 2**31 - 1], np.int32)),
        "single": ((), np.float32(1.5)),
    },
    {
        "step": [0, 5, 10],
        "time": ("step", [0.0, 0.5, 1.0]),
        "free": ("other", [1.0, 2.0]),
        "seed": [3, 4],
    },
    {"status": "finished", "seconds": 0.25, "steps": 10},
)


def by_xarray(payload: bytes) -> xr.Dataset:
    with xr.open_dataset(io.BytesIO(payload), engine="scipy", decode_times=False) as opened:
        return opened.load()


def test_xarray_reads_what_is_packed():
    expected = by_xarray(bytes(TABLE.to_netcdf(engine="scipy")))
    found = by_xarray(pack(TABLE))
    xr.testing.assert_identical(found, expected)
    assert np.signbit(found.loss.values[1, 1])
    assert found.attrs == TABLE.attrs


def test_what_xarray_wrote_is_unpacked():
    payload = bytes(TABLE.to_netcdf(engine="scipy"))
    xr.testing.assert_identical(unpack(payload), by_xarray(payload))
    xr.testing.assert_identical(unpack(pack(TABLE)), by_xarray(payload))


@pytest.mark.parametrize(
    "column",
    [("step", ["a", "b", "c"]), ("step", [True, False, True]), ("step", [2**31, 0, 0])],
    ids=["text", "truth", "long"],
)
def test_what_is_no_plain_number_is_left_to_xarray(column):
    assert pack(TABLE.assign(more=column)) is None


@pytest.mark.parametrize("column", [("step", ["a", "b", "c"]), ("step", [True, False, True])])
def test_rich_files_are_left_to_xarray(column):
    assert unpack(bytes(TABLE.assign(more=column).to_netcdf(engine="scipy"))) is None
