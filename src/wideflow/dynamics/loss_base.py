"""What a loss is: a scalar from outputs and targets, with its gradient in the outputs."""

import abc
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core.precision import double
from .._core.types import Scalar


class AbstractLoss(eqx.Module):
    """A scalar from outputs and targets, and its gradient in the outputs."""

    formula: ClassVar[str]

    @abc.abstractmethod
    def value_and_gradient(
        self, outputs: Float[Array, " sample *output"], targets: Float[Array, " sample *output"]
    ) -> tuple[Scalar, Float[Array, " sample *output"]]:
        """The loss and its gradient in `outputs`."""

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
