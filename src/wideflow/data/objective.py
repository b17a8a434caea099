r"""Objectives: what dynamics descend. A dataset with a loss is one (`dataset`); an exact population is another."""

import abc

import jax

from .._core.precision import DoubleModule, double
from .._core.trees import Parameters, parameters, with_parameters
from .._core.types import Scalar

__all__ = ["AbstractObjective", "gradient_by_autodiff"]


class AbstractObjective(DoubleModule):
    """A scalar function of a model, with its gradient in the trained arrays."""

    @abc.abstractmethod
    def value(self, model) -> Scalar:
        """The loss of `model`."""

    @abc.abstractmethod
    def gradient(self, model) -> tuple[Scalar, Parameters]:
        """The loss and its plain gradient (no neuron factor) by parameter name."""

    @abc.abstractmethod
    def describe(self) -> str:
        """One line for tables: which loss, with which factors, on what."""


@double
def gradient_by_autodiff(objective: AbstractObjective, model) -> tuple[Scalar, Parameters]:
    """The witness for every hand-written gradient.

    Args:
        objective: what is differentiated.
        model: where; the gradient is in its trained arrays.
    """
    return jax.value_and_grad(lambda p: objective.value(with_parameters(model, p)))(
        parameters(model)
    )
