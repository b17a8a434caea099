"""Which recorded runs can witness for or against a theorem, and how exactly: one that diverged
cannot, and no run knows its loss better than its solver and its arithmetic.
"""

import math
import re

import numpy as np

from ..dynamics.flow import DESCENT_TOLERANCE, SMOOTH_TOLERANCE
from ..models.shallow import Shallow
from ..observables.kernels import tangent_gram
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


def other_record(table, name: str, expected, scale, of: str) -> str:
    """Why the record `name` is not the one that a statement speaks of: a table keeps an
    observable's name and not its settings, so that its first value is compared with `expected`.

    Args:
        scale: the size of what the value was computed from, of which ten roundings are allowed.
        of: in words, what the record must be of.
    """
    first = float(table[name].values[0])
    if abs(first - expected) <= 10 * rounding(table) * scale:
        return ""
    return (
        f"`{name}` begins with {first:.4g} where {expected:.4g} is its value {of}: it was recorded "
        "with other settings, so nothing can be judged on it"
    )


def rounding(table) -> float:
    """Of a number in the run's precision, relative to itself."""
    return float(np.finfo(str(table.attrs.get("precision", "float64"))).eps)


def residual_error(start: Shallow, data, table) -> float:
    r"""How far $\lVert r\rVert = \sqrt{2L}$ along the table may be from that of the flow:
    $\epsilon(\lVert J\rVert\,\lVert\theta\rVert + \lVert r_0\rVert + \lVert y\rVert)$.

    $\epsilon$ is the solver's tolerance, which is one of the parameters for some methods and of
    the residual for others, and ten roundings; for descent, which is judged as it stands, the
    latter alone.

    Args:
        start: the network at time zero.
        data: its dataset.
    """
    flow = re.match(r"GradientFlow\(tolerance=([^,]+)", str(table.attrs.get("dynamics", "")))
    tolerance = 0.0
    if flow is not None:
        usual = DESCENT_TOLERANCE if start.activation.kinks else SMOOTH_TOLERANCE
        tolerance = usual if flow.group(1) == "None" else float(flow.group(1))
    top = np.linalg.eigvalsh(np.asarray(tangent_gram(start, data.inputs)))[-1] / start.rate_factor
    targets = np.asarray(data.targets, dtype=np.float64)
    residual = np.asarray(start.outputs(data.inputs), dtype=np.float64) - targets
    size = math.sqrt(top) * float(np.linalg.norm(start.weights))
    size += float(np.linalg.norm(residual)) + float(np.linalg.norm(targets))
    return (tolerance + 10 * rounding(table)) * size


def excused(losses: np.ndarray, bound: np.ndarray, error: float) -> np.ndarray:
    """Where a loss is above its bound by no more than `error` in the norm of the residual
    explains.
    """
    within = np.sqrt(2 * losses) <= np.sqrt(2 * bound) + error
    return (losses > bound) & within


def least_slack(losses: np.ndarray, bound: np.ndarray, error: float) -> float:
    """The smallest of bound minus loss; 0 for an excess that is excused."""
    return float(np.min(np.where(excused(losses, bound, error), 0.0, bound - losses)))


def unjudged(fault: str, numbers: dict[str, float]) -> Verdict:
    """NOT_APPLICABLE with its reason."""
    return Verdict(Outcome.NOT_APPLICABLE, math.nan, fault, numbers)
