"""What a theorem is here: hypotheses, a bound, a verdict with its margin, and a citation."""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from .arguments import checked


class Outcome(enum.Enum):
    """HOLDS and VIOLATED are about a checked conclusion; the other two say why there is none."""

    HOLDS = "holds"
    VIOLATED = "violated"
    NOT_APPLICABLE = "not applicable"
    VACUOUS = "vacuous"


@dataclass(frozen=True)
class Citation:
    """The paper by its bib key (see `theorems/references.bib`) and the place in it.

    Args:
        key: the bib key.
        locator: for instance "Theorem 4.2".
    """

    key: str
    locator: str


@dataclass(frozen=True)
class Verdict:
    """The answer of a theorem on given data.

    Attributes:
        outcome: see `Outcome`.
        margin: positive where satisfied; NaN where nothing was checked.
        message: one sentence.
        numbers: everything behind it: constants, thresholds, bounds, what was measured.
    """

    outcome: Outcome
    margin: float
    message: str
    numbers: dict[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        return self.outcome is Outcome.HOLDS

    def __str__(self) -> str:
        return f"{self.outcome.name} (margin {self.margin:.3g}): {self.message}"


class AbstractTheorem:
    """A theorem or lemma; its docstring is the statement, `__call__` gives a `Verdict`."""

    citation: ClassVar[Citation]
    __call__: Callable[..., "Verdict"]  # of what the statement is about: each has its own signature

    def __init_subclass__(cls, **kwargs) -> None:
        for name in ("__call__", "evaluate"):  # statements about a run have the latter
            if name in cls.__dict__:
                setattr(cls, name, checked(cls.__dict__[name]))
