"""What a worker and the page's server say to each other over their pipe."""

from dataclasses import dataclass, field
from typing import Any

from ..figures import FigureSpec


@dataclass(frozen=True)
class Job:
    """A run: names and checked values only; `changes` are the fields that differ from the scene's
    settings.

    Attributes:
        number: what the worker says of this job carries it, so that the last words of an earlier
            one are told apart.
        pace: least seconds between two records.
        held: the first record is shown and the next one computed, so that everything is compiled;
            then the worker waits for "go".
        stays: a rehearsal that is not left when everything is compiled, for a tab will ask for it.
    """

    scene: str
    changes: dict[str, Any]
    seed: int
    pace: float = 0.0
    held: bool = False
    number: int = 0
    stays: bool = False

    def same_run(self, other: "Job") -> bool:
        """Whether both give the same numbers."""
        mine, theirs = ((job.scene, job.changes, job.seed) for job in (self, other))
        return mine == theirs


@dataclass(frozen=True)
class Order:
    """To a worker that runs: "go" (to one that is held), "pause", "resume", "seen" (a figure has
    arrived), "pace" (seconds), "take" ("figure" or "table").
    """

    word: str
    value: Any = None


@dataclass(frozen=True)
class Figure:
    """The figure of the table so far, and where the run is on the line from lazy to rich, where
    that is recorded.

    Attributes:
        warning: what the user should know about the run: a rate beyond the edge of stability, a
            loss above its start; else empty.
    """

    spec: FigureSpec
    dial: dict[str, Any] | None
    time: float
    step: int
    warning: str = ""


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
    """What the theorems say of the network and the data.

    Attributes:
        headline: one or two sentences for who reads nothing else.
        rows: (outcome, what it says in words, its name, what it asks for, why), for those that say
            something of this network.
        silent: (names, the reason they share), for those that speak of other networks or data.
        numbers: (what, value, meaning).
    """

    headline: str
    rows: tuple[tuple[str, str, str, str, str], ...]
    silent: tuple[tuple[str, str], ...] = field(default=())
    numbers: tuple[tuple[str, str, str], ...] = field(default=())


@dataclass(frozen=True)
class Taken:
    """A file to take home; `content` is empty and `trouble` a sentence where there is none."""

    kind: str
    content: bytes = b""
    trouble: str = ""
