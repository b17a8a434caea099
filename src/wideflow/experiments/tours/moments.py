"""The moment of a tour: what happened, when, found in the table alone."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...figures import VLine
from ...observables.stages import first_time


@dataclass(frozen=True)
class Moment:
    """Something that happened at `time` of the table; `sentence` says it with its numbers."""

    time: float
    sentence: str


def moment_when(times, condition, tell: Callable[[float, int], str]) -> Moment | None:
    """The first record at which `condition` holds; `tell(time, record)` says it."""
    time = first_time(times, condition)
    return None if math.isnan(time) else Moment(time, tell(time, int(np.searchsorted(times, time))))


def line_at(moment: Moment | None, label: str) -> VLine:
    """The moment as a vertical line; before it, a line that is nowhere, so that a figure keeps its
    marks.
    """
    return VLine(math.nan if moment is None else moment.time, label, "dashdot")
