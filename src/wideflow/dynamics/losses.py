r"""Losses, each with its factors stated; outputs and targets are (sample,) or (sample, output)."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core.types import Scalar


class AbstractLoss(eqx.Module):
    """A scalar from outputs and targets, and its gradient in the outputs."""

    formula: ClassVar[str]

    @abc.abstractmethod
    def value_and_gradient(
        self, outputs: Float[Array, "sample *output"], targets: Float[Array, "sample *output"]
    ) -> tuple[Scalar, Float[Array, "sample *output"]]:
        """The loss and its gradient in `outputs`."""

    def __call__(self, outputs, targets) -> Scalar:
        return self.value_and_gradient(outputs, targets)[0]


def check_targets(outputs, targets) -> None:
    if outputs.shape != targets.shape:
        raise ValueError(
            f"`targets` of shape {targets.shape} do not fit outputs of shape {outputs.shape}. "
            "Give the model as many outputs as the targets have columns."
        )


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

    def value_and_gradient(self, outputs, targets):
        check_targets(outputs, targets)
        if outputs.ndim != 2:
            raise ValueError(
                "`CrossEntropy` needs (sample, output) targets, one column a class; use `data.one_hot`."
            )
        samples = outputs.shape[0]
        logs = jax.nn.log_softmax(outputs, axis=1)
        mass = jnp.sum(targets, axis=1, keepdims=True)
        gradient = (jnp.exp(logs) * mass - targets) / samples
        return -jnp.sum(targets * logs) / samples, gradient
