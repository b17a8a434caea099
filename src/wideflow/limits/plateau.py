"""Where a learning curve stands still before it goes on: begin and escape of a plateau."""

from typing import NamedTuple

import numpy as np

from .._core.arrays import real_values
from .._core.errors import check_nonnegative, check_number, check_positive, check_same_length
from .._core.precision import double

__all__ = ["Plateau", "plateau"]


class Plateau(NamedTuple):
    """Begin and escape in the curve's time, and the error between them.

    Attributes:
        begin: where it sets in.
        escape: where it ends.
        level: the median error between them.
    """

    begin: float
    escape: float
    level: float

    @property
    def length(self) -> float:
        return self.escape - self.begin


@double
def plateau(
    times, errors, slope: float = 0.2, drop: float = 2.0, floor: float = 1e-6
) -> Plateau | None:
    r"""The longest stretch on which $-d\ln\epsilon/d\ln\tau <$ `slope` and after which the error
    still falls by the factor `drop`.

    The last condition leaves out the end of a run, where the error has reached its asymptote;
    `floor`, a share of the largest error, leaves out what a solver's tolerance makes of an error
    that goes to zero.

    Args:
        times, errors: a curve on a grid fine enough for its differences; times and errors positive.

    Returns:
        None where there is no such stretch.
    """
    t = np.asarray(real_values("times", times, "(time,)"), float)
    e = np.asarray(real_values("errors", errors, "(time,)"), float)
    check_same_length(times=t.tolist(), errors=e.tolist())
    check_positive("slope", slope)
    check_number("drop", drop)
    if not drop > 1:
        raise ValueError(f"`drop` must exceed 1, the factor by which the error falls, got {drop}.")
    check_nonnegative("floor", floor)
    if len(t) < 3 or not (np.all(np.diff(t) > 0) and t[0] > 0 and np.all(e > 0)):
        raise ValueError(
            "`times` must rise from above 0 over at least three points, and `errors` be positive."
        )
    decay = -np.diff(np.log(e)) / np.diff(np.log(t))  # of each interval
    lowest_after = np.minimum.accumulate(e[::-1])[::-1]
    # where the flag changes: first interval of each stretch, and the first one behind it, in turn
    ends = np.flatnonzero(np.diff(np.concatenate([[0], (decay < slope).astype(int), [0]])))
    above = floor * e.max()
    # interval k lies between times k and k + 1, so a stretch of intervals a..b-1 ends at time b
    stretches = [
        (a, b) for a, b in ends.reshape(-1, 2) if e[b] > max(lowest_after[b] * drop, above)
    ]
    if not stretches:
        return None
    a, b = max(stretches, key=lambda stretch: t[stretch[1]] - t[stretch[0]])
    return Plateau(float(t[a]), float(t[b]), float(np.median(e[a : b + 1])))
