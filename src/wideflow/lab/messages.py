"""What a worker and the page's server say to each other over their pipe."""

from dataclasses import dataclass, field
from typing import Any

from ..figures import FigureSpec


@dataclass(frozen=True)
class Job:
    """A run: names and checked values only; `changes` are the fields that differ from the scene's settings."""

    scene: str
    changes: dict[str, Any]
    seed: int
    pace: float = 0.0  # least seconds between two records


@dataclass(frozen=True)
class Order:
    """To a worker that runs: "pause", "resume", "seen" (a figure has arrived), "pace" (seconds), "take" ("figure" or "table")."""

    word: str
    value: Any = None


@dataclass(frozen=True)
class Figure:
    """The figure of the table so far, and where the run is on the line from lazy to rich, where that is recorded."""

    spec: FigureSpec
    dial: dict[str, Any] | None
    time: float
    step: int


@dataclass(frozen=True)
class Progress:
    """How far the run is, from 0 to 1, and what it is at."""

    share: float
    what: str


@dataclass(frozen=True)
class State:
    """ "ready", "running", "paused", "finished" or "failed", with a sentence."""

    name: str
    sentence: str = ""


@dataclass(frozen=True)
class Event:
    """The moment of the tour's card `step` has come."""

    step: int
    time: float
    sentence: str


@dataclass(frozen=True)
class Verdicts:
    """What the theorems say of the network and the data: rows of (outcome, statement, width, message), and a headline."""

    headline: str
    rows: tuple[tuple[str, str, str, str], ...]
    numbers: tuple[tuple[str, str, str], ...] = field(default=())


@dataclass(frozen=True)
class Taken:
    """A file to take home; `content` is empty and `trouble` a sentence where there is none."""

    kind: str
    content: bytes = b""
    trouble: str = ""
