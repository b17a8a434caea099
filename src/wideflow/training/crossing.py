"""When a falling loss crosses a level: bracketed, by the Illinois variant of the false position on
logarithms.
"""

import math
from collections.abc import Callable
from typing import Any

CLOSE = 1e-6  # how far below the level the loss may lie, relative to it
MOST = 40  # evaluations; the bracket is halved where the loss is not positive


def crossing(
    look: Callable[[float], tuple[float, Any]],
    early: tuple[float, float],
    late: tuple[float, float, Any],
    level: float,
) -> tuple[float, float, Any]:
    """The first bracketed time at which the loss is below `level` by no more than `CLOSE` of it.

    Args:
        look: gives (loss, what belongs to it) at a time.
        early, late: (time, loss) not below the level, and (time, loss, what belongs to it) below
            it.
    """
    weight = 1.0  # Illinois: an end that stays put twice counts half
    last_fixed = ""
    for _ in range(MOST):
        low, high = early[0], late[0]
        # 1e-12: times closer than that are one record
        if level - late[1] <= CLOSE * level or high - low <= 1e-12 * high:
            break
        middle = (low + high) / 2
        if late[1] > 0 and level > 0:
            # a loss that decays exponentially is a straight line on logarithms: one step of the
            # false position is then exact
            above, below = math.log(early[1] / level), math.log(late[1] / level)
            above, below = (
                (above * weight, below) if last_fixed == "early" else (above, below * weight)
            )
            share = above / (above - below)
            # never at an end, which would not shrink the bracket
            middle = low + min(max(share, 1e-3), 1 - 1e-3) * (high - low)
        loss, belongs = look(middle)
        if loss < level:
            late, fixed = (middle, loss, belongs), "early"
        else:
            early, fixed = (middle, loss), "late"
        weight = weight / 2 if fixed == last_fixed else 1.0
        last_fixed = fixed
    return late
