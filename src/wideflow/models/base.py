r"""What every model is: a module that maps one input to outputs, and says which arrays are
trained.
"""

import abc
import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar

import equinox as eqx
import jax
from jax.core import Tracer
from jaxtyping import Array, Float

from .._core.arrays import real_array
from .._core.precision import DoubleModule, double
from .._core.trees import Parameters, parameters, unlabelled, with_parameters

__all__ = ["AbstractModel", "adaptive_rate_factors", "pullback_by_autodiff"]

Pullback = Callable[[Float[Array, " sample *output"]], Parameters]


class AbstractModel(DoubleModule):
    r"""A network. `trained` names the array fields that dynamics move; all else is frozen.

    Work is split in two so that nothing frozen is computed twice: `embed` does all that does not
    depend on trained arrays, `respond` the rest, and `outputs(inputs) = respond(embed(inputs))`.
    `neuron_axes` says along which axis of which field neurons lie, for models that can be spread
    over devices; `input_shape` is the shape of one input where it may have more axes than one.
    `labels` names fixed fields that describe the model and decide none of its numbers; `unlabelled`
    takes them off, so that models which differ in them alone share one compiled program.
    """

    trained: ClassVar[tuple[str, ...]]
    neuron_axes: ClassVar[Mapping[str, int]] = MappingProxyType({})
    labels: ClassVar[tuple[str, ...]] = ()
    input_shape = None  # a field of its own in models of images

    @abc.abstractmethod
    def embed(self, inputs: Float[Array, "sample feature"]) -> Float[Array, "sample embedded"]:
        """The inputs as the trained part sees them."""

    @abc.abstractmethod
    def respond(self, features: Float[Array, "sample embedded"]) -> Float[Array, " sample *output"]:
        """Outputs from embedded inputs."""

    @abc.abstractmethod
    def rate_factors(self) -> dict[str, float]:
        """The neuron factor of each trained array: its gradient is multiplied by it in every
        dynamics.
        """

    @abc.abstractmethod
    def pullback(
        self, features: Float[Array, "sample embedded"]
    ) -> tuple[Float[Array, " sample *output"], Pullback]:
        r"""Outputs, and the map $c \mapsto J^\top c$ into the trained arrays."""

    @double
    def outputs(self, inputs) -> Float[Array, " sample *output"]:
        """Outputs on a batch (sample, feature)."""
        inputs = real_array("inputs", inputs, finite=False)
        if inputs.ndim != 2 and inputs.shape[1:] != self.input_shape:
            raise ValueError(
                f"`inputs` must have shape (sample, feature), got {inputs.shape}. "
                "For one input call the model itself."
            )
        return _respond(self, self.embed(inputs))

    @double
    def __call__(self, x) -> Float[Array, "*output"]:
        """Outputs on one input (feature,)."""
        x = real_array("x", x, finite=False)
        if x.ndim != 1 and x.shape != self.input_shape:
            raise ValueError(
                f"`x` must be one input of shape (feature,), got {x.shape}. Use `.outputs` for a "
                "batch."
            )
        return _respond(self, self.embed(x[None]))[0]


def _respond(model: "AbstractModel", features) -> Float[Array, " sample *output"]:
    """`model.respond(features)`, as one program where it is not part of one already."""
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((model, features))):
        return model.respond(features)
    return _respond_compiled(unlabelled(model), features)


@eqx.filter_jit
def _respond_compiled(model, features):
    return model.respond(features)


@functools.singledispatch
def adaptive_rate_factors(model: AbstractModel) -> dict[str, float]:
    """The factor of each trained array under updates whose size does not depend on the gradient's
    (Adam and its kin).

    1 where a model states none.
    """
    return dict.fromkeys(model.trained, 1.0)


def pullback_by_autodiff(model: AbstractModel, features) -> tuple[Array, Pullback]:
    """`pullback` for models without a structured one, and the witness for those that have one."""
    outputs, pull = jax.vjp(
        lambda p: with_parameters(model, p).respond(features), parameters(model)
    )
    return outputs, lambda cotangent: pull(cotangent)[0]
