"""Tables of plain numbers as netCDF 3 and back, straight through SciPy: a tenth of the time that
xarray takes.

The files are what xarray itself writes and reads, by the same conventions. Text, truth values,
integers beyond 32 bit and packed numbers are left to xarray: `pack` and `unpack` then answer None.
"""

import io
from collections.abc import Hashable
from typing import Any

import numpy as np
import xarray as xr
from scipy.io import netcdf_file

_COORDINATES = "coordinates"  # the convention's name for the list of a variable's coordinates


def pack(table: xr.Dataset) -> bytes | None:
    """The file of `table`, whose attributes must be text and numbers; None where it has more than
    plain numbers.
    """
    columns: dict[str, np.ndarray] = {}
    for name, variable in table.variables.items():
        column = _column(variable)
        if column is None or " " in str(name):
            return None
        columns[str(name)] = column
    placed: set[Hashable] = set(table.dims)
    buffer = io.BytesIO()
    with netcdf_file(buffer, "w", version=2) as file:  # offsets of 64 bits, for files beyond 2 GiB
        for dim, size in table.sizes.items():
            file.createDimension(str(dim), size)
        for name, variable in table.variables.items():
            values = columns[str(name)]
            stored = file.createVariable(str(name), values.dtype, variable.dims)
            stored.data[...] = values
            _note(stored, variable.attrs)
            if name in table.data_vars:
                own = [c for c in table[name].coords if c not in table.dims]
                placed.update(own)
                _note(stored, {_COORDINATES: " ".join(map(str, own))} if own else {})
        rest = [str(name) for name in table.coords if name not in placed]
        _note(file, table.attrs | ({_COORDINATES: " ".join(rest)} if rest else {}))
        file.flush()
        return buffer.getvalue()


def unpack(payload: bytes) -> xr.Dataset | None:
    """The table in a file that `pack` made, or xarray; None where it holds more than plain
    numbers.
    """
    with netcdf_file(io.BytesIO(payload), "r", mmap=False) as file:
        about, coordinates, columns = _attributes(file), set(file.dimensions), {}
        coordinates.update(about.pop(_COORDINATES, "").split())
        for name, variable in file.variables.items():
            attributes = _attributes(variable)
            coordinates.update(attributes.pop(_COORDINATES, "").split())
            fill = attributes.pop("_FillValue", np.nan)
            # a fill value other than NaN (which alone differs from itself) marks missing numbers
            if variable.data.dtype.kind not in "fi" or fill == fill or attributes.keys() & _RICH:
                return None
            # the format is big-endian; NumPy computes on the machine's own order
            native = variable.data.astype(variable.data.dtype.newbyteorder("="))
            columns[name] = (variable.dimensions, native, attributes)
    inner = {name: column for name, column in columns.items() if name not in coordinates}
    outer = {name: column for name, column in columns.items() if name in coordinates}
    return xr.Dataset(inner, outer, about)


# attributes by which xarray encodes what plain numbers cannot say; it decodes them itself
_RICH = {"dtype", "scale_factor", "add_offset", "missing_value", "_Unsigned", "_Encoding"}


def _column(variable: xr.Variable) -> np.ndarray | None:
    values = variable.values
    if values.dtype in (np.float64, np.float32, np.int32):
        return values
    if values.dtype.kind != "i" or variable.attrs.keys() & _RICH:
        return None
    narrow = values.astype(np.int32)
    return narrow if np.array_equal(narrow, values) else None


def _note(holder: Any, attributes: dict) -> None:
    for name, value in attributes.items():
        holder._attributes[str(name)] = value.encode() if isinstance(value, str) else value


def _attributes(holder: Any) -> dict[str, Any]:
    return {
        name: value.decode() if isinstance(value, bytes) else value
        for name, value in holder._attributes.items()
    }
