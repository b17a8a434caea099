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
    Where a ratio is NaN nothing is shown either way: NOT_APPLICABLE.
    """
    numbers = {**numbers, **{f"ratio_{name}": float(value) for name, value in ratios.items()}}
    worst = max(ratios.values(), key=lambda r: math.inf if math.isnan(r) else r)
    if math.isnan(worst):
        return unmet(f"{message}; not all of it is a number, so nothing is shown", numbers)
    return Verdict(
        Outcome.HOLDS if worst <= 1 + tolerance else Outcome.VIOLATED,
        1 + tolerance - worst,
        message,
        numbers,
    )


def unmet(message: str, numbers: dict[str, float]) -> Verdict:
    """NOT_APPLICABLE: a hypothesis fails, so nothing is claimed."""
    return Verdict(Outcome.NOT_APPLICABLE, math.nan, message, numbers)


def vacuous(message: str, numbers: dict[str, float]) -> Verdict:
    """VACUOUS: the bound says nothing at these sizes."""
    return Verdict(Outcome.VACUOUS, math.nan, message, numbers)
