"""The moment of a tour: what happened, when, found in the table alone."""

import math
from dataclasses import dataclass

from ..figures import VLine


@dataclass(frozen=True)
class Moment:
    """Something that happened at `time` of the table; `sentence` says it with its numbers."""

    time: float
    sentence: str


def line_at(moment: Moment | None, label: str) -> VLine:
    """The moment as a vertical line; before it, a line that is nowhere, so that a figure keeps its marks."""
    return VLine(math.nan if moment is None else moment.time, label, "dashdot")
