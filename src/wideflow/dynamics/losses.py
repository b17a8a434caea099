r"""Losses, each with its factors stated; outputs and targets are (sample,) or (sample, output)."""

from typing import ClassVar

import jax
import jax.numpy as jnp

from .bounded_losses import (
    DeadZoneHuber as DeadZoneHuber,
    Huber as Huber,
    LogCosh as LogCosh,
    Logistic as Logistic,
    LossClass as LossClass,
    PseudoHuber as PseudoHuber,
    ScaledCrossEntropy as ScaledCrossEntropy,
    loss_class as loss_class,
)
from .loss_base import AbstractLoss as AbstractLoss, check_shares, check_targets as check_targets


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
    r"""$-\frac1n \sum_i \sum_k y_{ik} \log \mathrm{softmax}(f_i)_k$ for one-hot (or soft) targets."""

    formula: ClassVar[str] = "mean cross-entropy of the softmax"

    def check_data(self, targets) -> None:
        check_shares(targets)

    def value_and_gradient(self, outputs, targets):
        check_targets(outputs, targets)
        if outputs.ndim != 2:
            raise ValueError(
                "`CrossEntropy` needs (sample, output) targets, one column per class; use `data.one_hot`."
            )
        samples = outputs.shape[0]
        logs = jax.nn.log_softmax(outputs, axis=1)
        mass = jnp.sum(targets, axis=1, keepdims=True)
        gradient = (jnp.exp(logs) * mass - targets) / samples
        return -jnp.sum(targets * logs) / samples, gradient
