"""From a margin to a verdict, in one voice."""

import math
from collections.abc import Mapping
from typing import Any

from ....theorems.base import Outcome, Verdict


def judge(margin: float, message: str, numbers: Mapping[str, Any]) -> Verdict:
    """HOLDS for a margin of at least 0, VIOLATED below it, and for NaN (nothing was shown)."""
    outcome = Outcome.HOLDS if margin >= 0 else Outcome.VIOLATED
    return Verdict(outcome, float(margin), message, {k: float(v) for k, v in numbers.items()})


def not_applicable(message: str, numbers: Mapping[str, Any] | None = None) -> Verdict:
    values = {k: float(v) for k, v in (numbers or {}).items()}
    return Verdict(Outcome.NOT_APPLICABLE, math.nan, message, values)
