"""How far repeated measurements lie from each other, for bars, bands and claims."""

import math
from typing import TypeVar

import numpy as np
import xarray as xr

Table = TypeVar("Table", xr.DataArray, xr.Dataset)


def deviation(values: Table, over: str = "seed") -> Table:
    """The sample standard deviation, with n - 1 below the sum of squares; NaN, which draws no bar,
    where there is one repeat.

    Args:
        values: repeated measurements.
        over: the axis of the repeats.

    >>> float(deviation(xr.DataArray([1.0, 3.0], dims="seed"))) == math.sqrt(2)
    True
    >>> float(deviation(xr.DataArray([1.0], dims="seed")))
    nan
    """
    if values.sizes[over] < 2:
        return values.mean(over) * np.nan
    return values.std(over, ddof=1)


def standard_error(values: Table, over: str = "seed") -> Table:
    """The standard error of the mean over repeats; NaN where there is one.

    Args:
        values: repeated measurements.
        over: the axis of the repeats.

    >>> float(standard_error(xr.DataArray([1.0, 3.0], dims="seed"))) == 1.0
    True
    """
    return deviation(values, over) / math.sqrt(values.sizes[over])
