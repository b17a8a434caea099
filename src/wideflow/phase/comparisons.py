r"""Differences between settings with honest intervals.

Errors are compared fold by fold on the logarithm, $d_f = \log(e^{(1)}_f/e^{(2)}_f)$: the folds' own
difficulty drops out. Training sets of different folds overlap, so that the $d_f$ are not
independent; the variance of their mean is taken as $(1/F + 1/(K-1))\,s^2$ (Nadeau and Bengio 2003)
and the interval from Student's t of $F - 1$ degrees. Where the interval contains zero,
the difference is not significant.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from .measurements import TINY, Measurements, choose, within_fold

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean and the half width of its confidence interval; `count` folds."""

    mean: float
    half: float
    count: int

    @property
    def resolved(self) -> bool:
        """Whether the mean differs significantly from zero."""
        return self.count > 1 and abs(self.mean) > self.half

    @property
    def standard_error(self) -> float:
        return self.half / float(stdtrit(self.count - 1, (1 + CONFIDENCE) / 2))


def interval(values, folds: int) -> Interval:
    """The mean over folds of values that share training rows; without an end where there are fewer
    than two.
    """
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    count = len(values)
    if count == 0:
        return Interval(math.nan, math.inf, 0)
    if count == 1:
        return Interval(float(values[0]), math.inf, 1)
    variance = float(np.var(values, ddof=1)) * (1 / count + 1 / (folds - 1))
    quantile = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2))
    return Interval(float(values.mean()), quantile * math.sqrt(variance), count)


def log_ratio(first, second) -> np.ndarray:
    """Fold by fold; NaN where one is missing."""
    return np.log(np.maximum(first, TINY)) - np.log(np.maximum(second, TINY))


def nested_errors(measured: Measurements, allowed: np.ndarray | None = None) -> np.ndarray:
    """Fold by fold the test error of the setting that this fold's own validation rows choose among
    the `allowed` points; NaN where there is none.
    """
    folds = measured.validation.shape[2]
    errors = np.full(folds, np.nan)
    for fold in range(folds):
        there = measured.runs[:, fold]
        if there.sum() < 2:
            continue
        part = within_fold(measured, fold)
        point, level = choose(part, None if allowed is None else allowed[there])
        if point >= 0:
            errors[fold] = part.test[point, level, 0]
    return errors
