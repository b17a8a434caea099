"""One labelled table of a sweep: its axes as dimensions, missing runs as missing values."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from ..records import DamagedRecordError, Record, read_record
from ..store import Store
from .plan import Plan, short
from .spec import Axis

STATUS, SECONDS = "run_status", "run_seconds"
MISSING = "missing"


def collect(plan: Plan, store: Store) -> xr.Dataset:
    """Reads every run of the plan that is there.

    A dimension of a run's own table that is called like an axis gets the name `within_<name>`.
    Where runs differ in the values along a dimension (other steps, say), the table has them all,
    and NaN where a run has none.
    """
    axes = plan.spec.axes
    dims = (*(axis.name for axis in axes), "seed")
    shape = (*(len(axis.points) for axis in axes), len(plan.spec.seeds))
    tables, status, seconds = {}, np.full(shape, MISSING, dtype=object), np.full(shape, np.nan)
    read: dict[str, Record | None] = {}
    for run in plan.runs:
        if run.address not in read:
            read[run.address] = _read(store.folder / plan.file_name(run))
        record = read[run.address]
        if record is not None:
            tables[run.position] = _renamed(record.table, dims)
            status[run.position], seconds[run.position] = record.status, record.seconds
    table = xr.Dataset(
        {
            STATUS: (dims, status.astype(str)),
            SECONDS: (dims, seconds, {"label": "seconds a run", "units": "s"}),
        },
        {"seed": list(plan.spec.seeds)},
        {"sweep": plan.spec.name, "experiment": plan.spec.experiment.name, "size": plan.spec.size},
    )
    for number, axis in enumerate(axes):
        table = table.assign_coords(_coordinates(plan, axis, number))
    return table.assign(_gathered(tables, dims, shape)) if tables else table


def _read(path) -> Record | None:
    try:
        return read_record(path)
    except (DamagedRecordError, OSError):
        return None


def _renamed(table: xr.Dataset, dims: tuple[str, ...]) -> xr.Dataset:
    new_names = {name: f"within_{name}" for name in (*table.dims, *table.variables) if name in dims}
    return table.rename(new_names)


def _coordinates(plan: Plan, axis: Axis, number: int) -> dict[str, Any]:
    """The values along an axis: as they are where they are single, else as text."""
    points: dict[int, Mapping[str, Any]] = {}
    for run in plan.runs:
        points.setdefault(run.position[number], run.settings)
    coordinates: dict[str, Any] = {}
    for name in axis.fields:
        values = [points[i][name] for i in range(len(axis.points))]
        plain = all(isinstance(v, bool | int | float) for v in values)
        coordinates[name] = (
            axis.name,
            np.array(values) if plain else np.array([short(v) for v in values]),
        )
    if axis.name not in coordinates:
        coordinates[axis.name] = (axis.name, np.arange(len(axis.points)))
    return coordinates


def _gathered(
    tables: dict[tuple[int, ...], xr.Dataset], dims: tuple[str, ...], shape: tuple[int, ...]
) -> dict[str, xr.DataArray]:
    """Every variable of the runs' tables with the axes in front."""
    union = _union(tables)
    names = dict.fromkeys(
        str(name) for table in tables.values() for name in table.variables if name not in union
    )
    columns = {}
    for name in names:
        parts = {
            position: table[name] for position, table in tables.items() if name in table.variables
        }
        inner = tuple(map(str, max((part.dims for part in parts.values()), key=len)))
        parts = {position: part for position, part in parts.items() if part.dims == inner}
        sizes = tuple(
            len(union[d]) if d in union else max(p.sizes[d] for p in parts.values()) for d in inner
        )
        first = next(iter(parts.values()))
        numeric = all(
            np.issubdtype(part.dtype, np.number) or part.dtype == bool for part in parts.values()
        )
        values = (
            np.full(shape + sizes, np.nan) if numeric else np.full(shape + sizes, "", dtype=object)
        )
        for position, part in parts.items():
            if inner:
                values[position][_place(part, inner, union)] = part.values
            else:  # a single number a run
                values[position] = part.values
        if not numeric:
            values = values.astype(str)
        labels = {d: union[d] for d in inner if d in union}
        columns[name] = xr.DataArray(
            values, dims=(*dims, *inner), coords=labels, attrs=dict(first.attrs)
        )
    return columns


def _union(tables) -> dict[str, np.ndarray]:
    """The values along every dimension that has some, of all runs together."""
    parts: dict[str, list[np.ndarray]] = {}
    for table in tables.values():
        for dim in table.dims:
            if dim in table.indexes:
                parts.setdefault(str(dim), []).append(table[dim].values)
    return {dim: _merged(values) for dim, values in parts.items()}


def _merged(values: list[np.ndarray]) -> np.ndarray:
    if all(np.array_equal(values[0], other) for other in values[1:]):
        return values[0]
    return np.unique(np.concatenate(values))


def _place(part: xr.DataArray, inner: tuple, union: Mapping[str, np.ndarray]):
    """Where a run's values go among those of all runs."""
    rows = []
    for dim in inner:
        if dim in union and not np.array_equal(union[dim], part[dim].values):
            rows.append(np.searchsorted(union[dim], part[dim].values))
        else:
            rows.append(np.arange(part.sizes[dim]))
    return np.ix_(*rows)
