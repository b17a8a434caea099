"""Which rows a run trains on, which it is chosen by, and which it is judged by; and the table as
the network sees it.

Fold $f$ of $K$ is held out for judging. Of all other rows some train the network and the rest, the
validation rows, are what settings are chosen by: a choice made within a fold has never seen the
rows that judge it (nested selection). Folds $K, 2K, ...$ begin a new shuffle.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np

from .._core.randomness import named_key
from .._core.types import Key

TRAINED = 0.8  # of the rows outside the fold, at most (chosen); the rest are validation rows
MOST_LOOKED_AT = 1000  # validation rows, and as many test rows (chosen): more cost time


class Rows(NamedTuple):
    """Row numbers of the three parts."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def split_rows(key: int | Key, count: int, fold: int, folds: int, samples: int) -> Rows:
    """The parts of fold number `fold`; all folds have parts of equal sizes, so that one compiled
    program serves them.

    Args:
        key: of the shuffles.
        count: rows of the table.
        fold, folds: $f$ and $K$.
        samples: training rows at most.
    """
    block = count // folds
    train = min(samples, int(TRAINED * (count - block)))
    if block < 1 or train < 2 or count - block - train < 1:
        raise ValueError(
            f"`data` must have rows for {folds} folds with training and validation rows in each, "
            f"got {count} rows."
        )
    order = np.asarray(jax.random.permutation(named_key(key, "rows", fold // folds), count))
    start = (fold % folds) * block
    test = order[start : start + block]
    rest = np.concatenate([order[:start], order[start + block :]])
    validation = rest[train : train + MOST_LOOKED_AT]
    return Rows(rest[:train], validation, test[:MOST_LOOKED_AT])


@dataclass(frozen=True)
class Standard:
    """Columns and targets with mean 0 and deviation 1 over the training rows, and a bias column;
    constant columns become 0.
    """

    input_mean: np.ndarray
    input_scale: np.ndarray
    target_mean: float
    target_scale: float

    @classmethod
    def of(cls, inputs: np.ndarray, targets: np.ndarray) -> "Standard":
        mean, scale = inputs.mean(axis=0), inputs.std(axis=0)
        still = scale <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
        spread = float(targets.std())
        if not spread > 0:
            raise ValueError(
                "`targets` are constant on the training rows: there is nothing to learn."
            )
        return cls(mean, np.where(still, 1.0, scale), float(targets.mean()), spread)

    def inputs(self, raw: np.ndarray) -> np.ndarray:
        x = (raw - self.input_mean) / self.input_scale
        return np.concatenate([x, np.ones((len(x), 1))], axis=1)

    def targets(self, raw: np.ndarray) -> np.ndarray:
        return (raw - self.target_mean) / self.target_scale

    def predictions(self, outputs: np.ndarray) -> np.ndarray:
        """Outputs in the units of the raw targets."""
        return outputs * self.target_scale + self.target_mean
