"""What a path of training was when its training loss reached given levels."""

import numpy as np


def at_levels(losses: np.ndarray, values: np.ndarray, levels) -> np.ndarray:
    """`values` (record, ...) where the falling `losses` (record,) first reach each level; NaN where
    they never do.

    Between two records a value is taken as linear in the logarithm of the loss.

    >>> at_levels(np.array([1.0, 0.1]), np.array([0.0, 2.0]), [1.0, 10**-0.5, 0.01])
    array([ 0.,  1., nan])
    """
    losses, values = np.asarray(losses, float), np.asarray(values, float)
    reached = np.full((len(levels), *values.shape[1:]), np.nan)
    for row, level in enumerate(levels):
        below = np.flatnonzero(losses <= level)
        if below.size == 0:
            continue
        i = int(below[0])
        if i == 0 or losses[i] == losses[i - 1]:
            reached[row] = values[i]
            continue
        share = np.log(losses[i - 1] / level) / np.log(losses[i - 1] / max(losses[i], 1e-300))
        reached[row] = (1 - share) * values[i - 1] + share * values[i]
    return reached
