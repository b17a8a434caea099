"""How wrong predictions are: a share of the variance, or of the rows where there are two
classes.
"""

import numpy as np


def two_classes(targets: np.ndarray) -> bool:
    """Whether the targets have two values, so that a prediction is right or wrong."""
    return len(np.unique(targets)) == 2


def error_of(outputs: np.ndarray, targets: np.ndarray, border: float | None) -> np.ndarray:
    """Of outputs (..., sample) on standardised targets (sample,).

    The mean of squares (the targets have variance 1 on the training rows); with a `border` between
    two classes the share of rows on the wrong side.
    """
    if border is None:
        return np.mean((outputs - targets) ** 2, axis=-1)
    return np.mean((outputs > border) != (targets > border), axis=-1)
