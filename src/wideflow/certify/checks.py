"""Checks of a dataset, each with what it means for the theory."""

from dataclasses import dataclass

import numpy as np

from .._core.errors import check_kind
from ..data.assumptions import DataAssumptions, check_data_assumptions
from ..data.dataset import Dataset

WELL, NOTE, WRONG = "well", "note", "wrong"
UNEVEN = 1e3  # ratio of column deviations above which one column drowns the others


@dataclass(frozen=True)
class Check:
    """What was looked at, what was found, how bad it is, and what it means.

    Attributes:
        name: what was looked at.
        verdict: "well", "note" or "wrong".
        found: what was seen, with its numbers.
        meaning: what that means for the theorems, and what to do about it.
        value: the number behind it.
    """

    name: str
    verdict: str
    found: str
    meaning: str
    value: float


def check_dataset(data: Dataset) -> tuple[tuple[Check, ...], DataAssumptions]:
    """All checks of `data`, and the assumptions of the convergence theorems as numbers.

    Args:
        data: a `Dataset`, as it is.
    """
    check_kind(
        "data", data, Dataset, "a `Dataset`", "Arrays become one by `Dataset(inputs, targets)`."
    )
    x, y = np.asarray(data.inputs, dtype=float), np.asarray(data.targets, dtype=float)
    assumptions = check_data_assumptions(x, y)
    checks = (
        _size(x),
        _norms(assumptions),
        _parallel(assumptions, len(x)),
        _duplicates(x, y),
        _columns(data, x),
        _rank(x),
        _targets(y, assumptions),
    )
    return checks, assumptions


def _size(x: np.ndarray) -> Check:
    n, d = x.shape
    if n == 1:
        text = "one sample: every Gram matrix is a number and every theorem is about a single point"
        return Check("samples and features", NOTE, f"n = {n}, d = {d}", text, n / d)
    if n <= d:
        text = (
            "n <= d: the plain Gram matrix XX^T can have full rank, so smooth activations keep a "
            "gap too"
        )
        return Check("samples and features", WELL, f"n = {n}, d = {d}", text, n / d)
    text = "n > d: XX^T is singular; the gap rests on the kink or curvature of the activation alone"
    return Check("samples and features", NOTE, f"n = {n}, d = {d}", text, n / d)


def _norms(assumptions: DataAssumptions) -> Check:
    norms = f"|x| from {assumptions.smallest_norm:.3g} to {assumptions.largest_norm:.3g}"
    if not assumptions.smallest_norm > 0:
        return Check(
            "norm bound",
            WRONG,
            norms,
            "an input is zero: its row of the Gram matrix is zero, kappa_n = 0; drop it",
            assumptions.largest_norm,
        )
    if assumptions.largest_norm > 1 + 1e-12:
        text = (
            "the theorems require |x| <= 1: divide by the largest norm (`data.on_unit_ball()`); "
            "this rescales time only for ReLU"
        )
        return Check("norm bound", NOTE, norms, text, assumptions.largest_norm)
    return Check(
        "norm bound",
        WELL,
        norms,
        "0 < |x| <= 1 as the convergence theorems require",
        assumptions.largest_norm,
    )


def _parallel(assumptions: DataAssumptions, samples: int) -> Check:
    if samples == 1:
        return Check("parallel rows", WELL, "a single row", "no pair to compare", float("inf"))
    first, second = assumptions.closest_pair
    angle = f"smallest sine {assumptions.smallest_sine:.3g} (rows {first} and {second})"
    if assumptions.no_parallels:
        text = (
            "no two inputs are parallel: kappa_n > 0 for ReLU and for analytic non-polynomial "
            "activations"
        )
        return Check("parallel rows", WELL, angle, text, assumptions.smallest_sine)
    if assumptions.same_direction:
        text = (
            "two inputs point the same way: kappa_n = 0 for ReLU, no convergence rate; append a "
            "constant column or drop one"
        )
        return Check("parallel rows", WRONG, angle, text, assumptions.smallest_sine)
    text = "two inputs are opposite: harmless for ReLU, kappa_n = 0 where sigma' is even"
    return Check("parallel rows", NOTE, angle, text, assumptions.smallest_sine)


def _duplicates(x: np.ndarray, y: np.ndarray) -> Check:
    _, groups = np.unique(x, axis=0, return_inverse=True)
    count = len(x) - (groups.max() + 1)
    if count == 0:
        return Check("duplicate rows", WELL, "none", "every input occurs once", 0.0)
    floor = duplicate_floor(y, groups)
    if floor > 0:
        text = (
            "equal inputs with different targets: no function has half sum of squares below "
            f"{floor:.4g}, and kappa_n = 0"
        )
    else:
        text = (
            "equal inputs with equal targets: kappa_n = 0 but the loss can still vanish; drop the "
            "repetitions"
        )
    repeated = f"{count} {'repeats' if count == 1 else 'repeat'} an earlier row"
    return Check("duplicate rows", WRONG, repeated, text, float(count))


def duplicate_floor(y: np.ndarray, groups: np.ndarray) -> float:
    r"""$\tfrac12\sum_i |y_i - \bar y_{g(i)}|^2$: what is left of the loss when each group of equal
    inputs gets its mean.
    """
    y = y.reshape(len(y), -1)
    means = (
        np.stack([np.bincount(groups, weights=column) for column in y.T], 1)
        / np.bincount(groups)[:, None]
    )
    return 0.5 * float(np.sum((y - means[groups]) ** 2))


def _columns(data: Dataset, x: np.ndarray) -> Check:
    deviations = np.where(np.ptp(x, axis=0) == 0, 0.0, x.std(axis=0))
    still = np.flatnonzero(deviations == 0) if len(x) > 1 else np.empty(0, int)
    names = [data.features[i] if data.features else str(i) for i in still]
    if len(still) == 1 and not np.all(x[:, still[0]] == 0):
        text = "one constant column acts as a bias: harmless, and it tells parallel rows apart"
        return Check("columns", WELL, f"constant: {names[0]}", text, 1.0)
    if len(still):
        text = (
            "constant columns carry no information and only shrink the angles between rows; drop "
            "them"
        )
        return Check(
            "columns",
            NOTE,
            f"{len(still)} constant: {', '.join(names[:5])}",
            text,
            float(len(still)),
        )
    moving = deviations[deviations > 0]
    ratio = float(moving.max() / moving.min()) if moving.size else 1.0
    if ratio > UNEVEN:
        text = (
            "one column drowns the others in every inner product: standardise "
            "(`data.standardised()`)"
        )
        return Check("columns", NOTE, f"deviations differ by a factor {ratio:.3g}", text, ratio)
    return Check(
        "columns",
        WELL,
        f"deviations differ by a factor {ratio:.3g}",
        "columns are of comparable size",
        ratio,
    )


def _rank(x: np.ndarray) -> Check:
    rank = int(np.linalg.matrix_rank(x))
    least = min(x.shape)
    if rank == least:
        return Check(
            "rank of X",
            WELL,
            f"{rank} of {least}",
            "no column is a combination of others",
            float(rank),
        )
    text = "columns are combinations of others: fewer effective features than the file has"
    return Check("rank of X", NOTE, f"{rank} of {least}", text, float(rank))


def _targets(y: np.ndarray, assumptions: DataAssumptions) -> Check:
    if len(y) > 1 and float(np.max(np.ptp(y, axis=0))) == 0:
        text = (
            "the target never varies: there is nothing to learn, and every bound is about its size "
            "only"
        )
        return Check(
            "targets",
            WRONG,
            f"constant, |y| = {assumptions.target_bound:.4g}",
            text,
            assumptions.target_bound,
        )
    text = (
        f"C = {assumptions.target_bound:.4g} enters every required width as C^2: standardise to "
        "keep it small"
    )
    verdict = WELL if assumptions.target_bound <= 10 else NOTE
    return Check(
        "targets", verdict, f"|y| <= {assumptions.target_bound:.4g}", text, assumptions.target_bound
    )
