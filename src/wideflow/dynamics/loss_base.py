"""What a loss is: a scalar from outputs and targets, with its gradient in the outputs."""

import abc
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._core.precision import DoubleModule, double
from .._core.types import Scalar


class AbstractLoss(DoubleModule):
    """A scalar from outputs and targets, and its gradient in the outputs."""

    formula: ClassVar[str]

    @abc.abstractmethod
    def value_and_gradient(
        self, outputs: Float[Array, " sample *output"], targets: Float[Array, " sample *output"]
    ) -> tuple[Scalar, Float[Array, " sample *output"]]:
        """The loss and its gradient in `outputs`."""

    def check_data(self, targets) -> None:
        """Refuses targets that the loss has no meaning for; most take any."""

    @double
    def __call__(self, outputs, targets) -> Scalar:
        return self.value_and_gradient(jnp.asarray(outputs), jnp.asarray(targets))[0]


def check_targets(outputs, targets) -> None:
    if outputs.shape == targets.shape:
        return
    remedy = "Give the model as many outputs as the targets have columns."
    if targets.shape == (*outputs.shape, 1):
        remedy = "A network of one output has outputs without an axis: take `targets[:, 0]`."
    raise ValueError(
        f"`targets` of shape {targets.shape} do not fit outputs of shape {outputs.shape}. {remedy}"
    )


def check_shares(targets) -> None:
    """One-hot or soft targets: rows of shares with sum 1."""
    rows = np.asarray(targets)
    if rows.min() < 0 or np.abs(rows.reshape(len(rows), -1).sum(axis=1) - 1).max() > 1e-6:
        raise ValueError(
            "`targets` of a cross-entropy must be shares of the classes, each row not negative with sum 1. "
            "Convert labels 0, 1, ... with `data.one_hot(labels)`."
        )


def check_signs(targets) -> None:
    """Labels +1 and -1."""
    values = np.unique(targets)
    if not np.all(np.abs(values) == 1):
        raise ValueError(
            f"`targets` of a logistic loss must be +1 or -1, got {values[:4]}. For 0 and 1 use `2 * labels - 1`."
        )
