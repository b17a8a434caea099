r"""What a loss is, and the usual ones, each with its factors stated; outputs and targets are
(sample,) or (sample, output).
"""

import abc
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._core.arrays import real_array
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
        return self.value_and_gradient(_numbers("outputs", outputs), _numbers("targets", targets))[
            0
        ]


def _numbers(name: str, values) -> Array:
    """What a user gave as an array; arrays of JAX, a model's own outputs among them, are one."""
    if isinstance(values, jax.Array):
        return values
    return real_array(name, values, "(sample,)", "(sample, output)", finite=False)


class HalfSumSquares(AbstractLoss):
    r"""$\frac12 \sum_{i,k} (f_{ik} - y_{ik})^2$: the loss of every theorem on flows; no $1/n$."""

    formula: ClassVar[str] = "half sum of squares, (1/2) sum (f - y)^2"

    def value_and_gradient(self, outputs, targets):
        check_targets(outputs, targets)
        residual = outputs - targets
        return jnp.sum(residual**2) / 2, residual


class MeanSquares(AbstractLoss):
    r"""$\frac{1}{nK} \sum_{i,k} (f_{ik} - y_{ik})^2$.

    A step of rate $\eta'$ here is a step of rate $2\eta'/(nK)$ on `HalfSumSquares`.
    """

    formula: ClassVar[str] = "mean of squares, mean (f - y)^2"

    def value_and_gradient(self, outputs, targets):
        check_targets(outputs, targets)
        residual = outputs - targets
        return jnp.mean(residual**2), residual * (2 / residual.size)


class HalfMeanSquares(AbstractLoss):
    r"""$\frac{1}{2n} \sum_{i,k} (f_{ik} - y_{ik})^2$: `HalfSumSquares` with time divided by $n$."""

    formula: ClassVar[str] = "half mean of squares, (1/2n) sum (f - y)^2"

    def value_and_gradient(self, outputs, targets):
        check_targets(outputs, targets)
        residual = outputs - targets
        samples = residual.shape[0]
        return jnp.sum(residual**2) / (2 * samples), residual / samples


class CrossEntropy(AbstractLoss):
    r"""$-\frac1n \sum_i \sum_k y_{ik} \log \mathrm{softmax}(f_i)_k$ for one-hot (or soft)
    targets.
    """

    formula: ClassVar[str] = "mean cross-entropy of the softmax"

    def check_data(self, targets) -> None:
        check_shares(targets)

    def value_and_gradient(self, outputs, targets):
        check_targets(outputs, targets)
        if outputs.ndim != 2:
            raise ValueError(
                "`CrossEntropy` needs (sample, output) targets, one column per class; use "
                "`data.one_hot`."
            )
        samples = outputs.shape[0]
        logs = jax.nn.log_softmax(outputs, axis=1)
        mass = jnp.sum(targets, axis=1, keepdims=True)
        gradient = (jnp.exp(logs) * mass - targets) / samples
        return -jnp.sum(targets * logs) / samples, gradient


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
            "`targets` of a cross-entropy must be shares of the classes, each row not negative "
            "with sum 1. "
            "Convert labels 0, 1, ... with `data.one_hot(labels)`."
        )


def check_signs(targets) -> None:
    """Labels +1 and -1."""
    values = np.unique(targets)
    if not np.all(np.abs(values) == 1):
        raise ValueError(
            f"`targets` of a logistic loss must be +1 or -1, got {values[:4]}. For 0 and 1 use "
            "`2 * labels - 1`."
        )
