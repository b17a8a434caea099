"""Which recorded runs can witness for or against a theorem: one that diverged cannot."""

import math

import numpy as np

from .base import Outcome, Verdict


def run_fault(table, names) -> str:
    """Why `table` judges nothing: it diverged, or a record among `names` is not finite. Empty where
    it can judge.

    Theorems about gradient flow speak of the flow; a run that left the finite numbers followed it
    no longer.
    """
    if str(table.attrs.get("status", "")).startswith("diverged"):
        return (
            "the run diverged, so nothing can be judged on it; take a smaller rate or "
            "`GradientFlow()`"
        )
    for name in names:
        values = np.asarray(table[name].values, dtype=float)
        bad = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
        if bad.any():
            time = float(table["time"].values[int(np.argmax(bad))])
            return (
                f"`{name}` is not finite from time {time:.3g} on, so nothing can be judged on this "
                "run"
            )
    return ""


def unjudged(fault: str, numbers: dict[str, float]) -> Verdict:
    """NOT_APPLICABLE with its reason."""
    return Verdict(Outcome.NOT_APPLICABLE, math.nan, fault, numbers)
