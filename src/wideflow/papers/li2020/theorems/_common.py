"""What the theorems of li2020 share."""

import math

import numpy as np

from ....theorems.base import Outcome, Verdict


def judged(margin, message: str, numbers: dict) -> Verdict:
    """HOLDS where the margin is not negative; NaN falls on the side of VIOLATED."""
    outcome = Outcome.HOLDS if margin >= 0 else Outcome.VIOLATED
    return Verdict(outcome, float(margin), message, {k: float(v) for k, v in numbers.items()})


def not_applicable(message: str, **numbers) -> Verdict:
    return Verdict(
        Outcome.NOT_APPLICABLE, math.nan, message, {k: float(v) for k, v in numbers.items()}
    )


def degree_two_floor(coefficients) -> float:
    r"""$(1 - 3/\pi)\sum a^2$."""
    return float((1 - 3 / np.pi) * np.sum(np.asarray(coefficients, dtype=float) ** 2))


def condition(coefficients) -> float:
    r"""$\kappa$: the smallest with $a_i/\sum a \in [1/(\kappa d), \kappa/d]$."""
    a = np.asarray(coefficients, dtype=float)
    shares = a / a.sum() * a.size
    return float(max(shares.max(), 1 / shares.min())) if shares.min() > 0 else math.inf


def log_slope(x, y) -> float:
    """The slope of log y on log x."""
    return float(
        np.polyfit(np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float)), 1)[0]
    )
