"""Raw tables in the form that theorems ask for, with everything that was done said."""

from typing import NamedTuple

import numpy as np

from .._core.counted import counted
from .._core.errors import check_flag, check_kind
from .dataset import Dataset

__all__ = ["Prepared", "prepare"]

OUTLYING = 1e4  # times the distance of nine tenths of a column's values from its median


class Prepared(NamedTuple):
    """The dataset and one sentence for each thing done to it.

    Attributes:
        data: the dataset in the form that theorems ask for.
        notes: what was done to it.
    """

    data: Dataset
    notes: tuple[str, ...]


def prepare(data: Dataset, *, bias: bool = True) -> Prepared:
    """Repetitions merged, constant columns dropped, columns and targets standardised, a bias
    column, inputs on the unit ball.

    Rows with equal inputs become one with their mean target: networks cannot tell them apart and
    would have a gap of zero.

    Args:
        data: a `Dataset` with raw columns.
        bias: whether a constant column is added.
    """
    check_kind(
        "data",
        data,
        Dataset,
        "a `Dataset`",
        "Build one from arrays with `Dataset(inputs, targets)`.",
    )
    check_flag("bias", bias)
    notes, name = [], data.name
    x, y = np.asarray(data.inputs, dtype=float), np.asarray(data.targets, dtype=float)
    if len(x) > 1:  # standardising will undo it
        x, y = _sized(x), _sized(y)
    names = list(data.features) or [f"column {i}" for i in range(x.shape[1])]
    still = np.ptp(x, axis=0) == 0
    if len(x) > 1 and still.any():
        if still.all():
            raise ValueError(
                f"every input column of {name} is constant: there is nothing to learn from."
            )
        dropped = [n for n, s in zip(names, still) if s]
        notes.append(f"dropped constant columns: {', '.join(dropped)}")
        x, names = x[:, ~still], [n for n, s in zip(names, still) if not s]
    unique, groups = np.unique(x, axis=0, return_inverse=True)
    if len(unique) < len(x):
        counts = np.bincount(groups)
        flat = y.reshape(len(y), -1)
        means = (
            np.stack([np.bincount(groups, weights=column) for column in flat.T], 1)
            / counts[:, None]
        )
        notes.append(
            f"merged {counted(len(x) - len(unique), 'row')} with an earlier row of the same "
            "inputs; the target is their mean"
        )
        x, y = unique, means.reshape(len(unique), *y.shape[1:])
    if len(x) > 1:
        notes += [*_outliers(x, names), *_outliers(y.reshape(len(y), -1), ["the target"] * y.size)]
        x = (x - x.mean(axis=0)) / x.std(axis=0)
        if np.any(np.ptp(y, axis=0) == 0):
            raise ValueError(f"the target of {name} is constant: there is nothing to learn.")
        y = (y - y.mean(axis=0)) / y.std(axis=0)
        notes.append("inputs and target standardised")
    if bias:
        x, names = np.concatenate([x, np.ones((len(x), 1))], axis=1), [*names, "bias"]
        notes.append("a constant column appended as bias")
    x = x / np.abs(x).max()  # no square overflows
    x = x / np.linalg.norm(x, axis=1).max()
    notes.append("inputs divided by their largest norm, so that |x| <= 1")
    return Prepared(Dataset(x, y, name, tuple(names)), tuple(notes))


def _sized(values: np.ndarray) -> np.ndarray:
    """Every column over its largest size (rounded to a power of two, so that no digit changes):
    squares neither overflow nor vanish.
    """
    sizes = np.max(np.abs(values), axis=0)
    return np.where(
        sizes > 0, np.ldexp(values, -np.frexp(np.where(sizes > 0, sizes, 1.0))[1]), values
    )


def _outliers(x: np.ndarray, names: list[str]) -> list[str]:
    """A sentence for every column in which a few values are so large that all others look equal."""
    far = np.abs(x - np.median(x, axis=0))
    usual, largest = np.quantile(far, 0.9, axis=0), far.max(axis=0)
    return [
        f"{names[i]} has values {largest[i] / usual[i]:.1g} times as far out as nine tenths of "
        "its values, next to which the others look equal: is that intended?"
        for i in np.flatnonzero((usual > 0) & (largest > OUTLYING * usual))
    ]
