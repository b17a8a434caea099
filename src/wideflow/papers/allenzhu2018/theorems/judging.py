"""How the statements of this paper are judged: the largest of some ratios left side / right side
must not exceed 1.
"""

import math

from ....theorems.base import Outcome, Verdict


def judge(
    ratios: dict[str, float],
    message: str,
    numbers: dict[str, float],
    *,
    tolerance: float | int = 0.0,
) -> Verdict:
    """HOLDS when every ratio is at most 1 (plus `tolerance`); the margin is 1 minus the largest.
    NaN counts as not shown.
    """
    worst = max(ratios.values(), key=lambda r: math.inf if math.isnan(r) else r)
    holds = all(ratio <= 1 + tolerance for ratio in ratios.values())
    named_ratios = {f"ratio_{name}": float(value) for name, value in ratios.items()}
    return Verdict(
        Outcome.HOLDS if holds else Outcome.VIOLATED,
        1 + tolerance - worst,
        message,
        {**numbers, **named_ratios},
    )


def unmet(message: str, numbers: dict[str, float]) -> Verdict:
    """NOT_APPLICABLE: a hypothesis fails, so nothing is claimed."""
    return Verdict(Outcome.NOT_APPLICABLE, math.nan, message, numbers)


def vacuous(message: str, numbers: dict[str, float]) -> Verdict:
    """VACUOUS: the bound says nothing at these sizes."""
    return Verdict(Outcome.VACUOUS, math.nan, message, numbers)
