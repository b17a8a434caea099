r"""Objectives: what dynamics descend. A dataset with a loss is one (`dataset`); an exact population
is another.
"""

import abc
from typing import ClassVar, Protocol, runtime_checkable

import jax
from jaxtyping import Array

from .._core.precision import DoubleModule, double
from .._core.trees import Parameters, parameters, with_parameters
from .._core.types import Scalar

__all__ = ["AbstractObjective", "gradient_by_autodiff"]


@runtime_checkable
class Loss(Protocol):
    """What an objective on samples reads of its loss."""

    formula: ClassVar[str]

    def value_and_gradient(self, outputs: Array, targets: Array) -> tuple[Scalar, Array]: ...

    def __call__(self, outputs: Array, targets: Array) -> Scalar: ...


@runtime_checkable
class Sampled(Protocol):
    """What batches need of an objective."""

    @property
    def samples(self) -> int: ...

    def batch(self, indices: Array) -> "AbstractObjective": ...


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
