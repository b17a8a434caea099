r"""Objectives: what dynamics descend. A dataset with a loss is one; an exact population is another."""

import abc

import equinox as eqx
import jax
from jaxtyping import Array, Float

from .._core.precision import DoubleModule, double
from .._core.trees import Parameters, parameters, with_parameters
from .._core.types import Scalar

__all__ = ["AbstractObjective", "DatasetObjective", "gradient_by_autodiff"]


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


class DatasetObjective(AbstractObjective):
    r"""$L(\theta) = \ell(f_\theta(X), y)$ for a fixed dataset.

    `features` are the inputs as the model's trained layers see them (`model.embed`), computed once.

    Attributes:
        inputs: $X$, shape (sample, feature).
        targets: $y$, shape (sample,) or (sample, output).
        features: the inputs after the model's embedding.
        loss: $\ell$, one of `wideflow.losses`.
        name: the dataset's name, for tables.
    """

    inputs: Float[Array, "sample feature"]
    targets: Float[Array, " sample *output"]
    features: Float[Array, "sample embedded"]
    loss: eqx.Module
    name: str = eqx.field(static=True)

    def outputs(self, model) -> Float[Array, " sample *output"]:
        return model.respond(self.features)

    def value(self, model) -> Scalar:
        return self.loss(self.outputs(model), self.targets)

    def gradient(self, model) -> tuple[Scalar, Parameters]:
        outputs, pull = model.pullback(self.features)
        value, cotangent = self.loss.value_and_gradient(outputs, self.targets)
        return value, pull(cotangent)

    def batch(self, indices) -> "DatasetObjective":
        """The same loss on the chosen samples."""
        rows = (self.inputs[indices], self.targets[indices], self.features[indices])
        return DatasetObjective(*rows, self.loss, self.name)

    @property
    def samples(self) -> int:
        return self.features.shape[0]

    def describe(self) -> str:
        return f"{self.loss.formula} on {self.name} ({self.samples} samples)"


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
