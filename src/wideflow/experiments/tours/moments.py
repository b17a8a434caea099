"""The moment of a tour: what happened, when, found in the table alone."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Moment:
    """Something that happened at `time` of the table; `sentence` says it with its numbers."""

    time: float
    sentence: str
