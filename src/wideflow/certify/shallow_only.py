"""Guards that statements share: which networks and data they speak of at all."""

import math

from ..models.shallow import Shallow
from ..theorems.base import Outcome, Verdict
from .registry import Case, Judge


def of_shallow(judge: Judge) -> Judge:
    """NOT_APPLICABLE for anything but a `Shallow` network."""

    def guarded(case: Case) -> Verdict:
        if isinstance(case.model, Shallow):
            return judge(case)
        return not_applicable(f"it is about `Shallow` networks, got {type(case.model).__name__}")

    return guarded


def not_applicable(reason: str) -> Verdict:
    return Verdict(Outcome.NOT_APPLICABLE, math.nan, reason)


def always(reason: str) -> Judge:
    """A statement about another population or learner than any dataset with a network."""
    return lambda case: not_applicable(reason)
