"""Powers of the width and their like: slopes on log-log axes."""

import math

import numpy as np


def slope(x, values) -> float:
    """The least-squares slope of log values against log x.

    Args:
        x: such as widths.
        values: one a width, positive.

    >>> round(slope([1, 2, 4], [3.0, 1.5, 0.75]), 12)
    -1.0
    """
    return float(np.polyfit(np.log(np.asarray(x, float)), np.log(np.asarray(values, float)), 1)[0])


def log_log_slope(x, values, weights=None) -> tuple[float, float]:
    """The slope of log |mean| against log x, and its standard error by the jackknife over repeats.

    Args:
        x: such as widths, (width,).
        values: independent measurements, (width, repeat).
        weights: of the widths in least squares, one over the relative standard error where it is
            known; equal ones without.

    >>> slope, error = log_log_slope([1, 2, 4], [[3.0, 3.0], [1.5, 1.5], [0.75, 0.75]])
    >>> round(slope, 12), round(error, 12)
    (-1.0, 0.0)
    """
    logs, values = np.log(np.asarray(x, float)), np.asarray(values, float)
    fit = lambda rows: np.polyfit(logs, np.log(np.abs(rows.mean(axis=1))), 1, w=weights)[0]
    repeats = values.shape[1]
    left_out = [fit(np.delete(values, i, axis=1)) for i in range(repeats)]
    return float(fit(values)), math.sqrt((repeats - 1) * np.var(left_out))
