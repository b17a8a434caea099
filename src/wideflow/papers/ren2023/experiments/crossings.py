"""When a recorded loss passes a level."""

import math

import numpy as np


def first_times(losses, times, levels) -> np.ndarray:
    """First times (level,) at which the logarithm of the loss, linear between records, passes the
    levels; infinite where it does not.
    """
    curve = np.log(np.maximum(losses, 1e-300))  # rounding can go below 0
    reached = np.full(len(levels), np.inf)
    for k, level in enumerate(levels):
        below = np.flatnonzero(curve <= math.log(level))
        if below.size and below[0]:
            n = below[0]
            share = (curve[n - 1] - math.log(level)) / (curve[n - 1] - curve[n])
            reached[k] = times[n - 1] + share * (times[n] - times[n - 1])
    return reached
