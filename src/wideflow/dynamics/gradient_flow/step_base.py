"""What a step of the Gram-matrix exponential flow is: the place after it, a check on it, and the path inside it."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from ..._core.trees import Parameters, zeros_of
from .linearisation import GramProblem, Outputs, Place


class Taken(eqx.Module):
    """The place after a step, the cotangent it was meant to have, what `between` needs to retrace the step, and its forward passes.

    The error estimate costs nothing: `meant`, propagated through the exponentials or that of an embedded method, must equal the
    gradient at the new outputs; the difference is the defect.
    """

    place: Place
    meant: Outputs
    trace: PyTree
    passes: Int[Array, ""]


class AbstractStep(eqx.Module):
    """A way to step."""

    def no_trace(self, problem: GramProblem, place: Place) -> PyTree:
        """A trace of zeros, before the first step."""
        return zeros_of(self, problem, place, jnp.ones(())).trace

    def should_curve(self, problem: GramProblem, place: Place, size: Float[Array, ""]) -> Array:
        """Whether this step, which failed, had better be tried with the whole Hessian."""
        return jnp.zeros((), bool)

    @abc.abstractmethod
    def __call__(self, problem: GramProblem, place: Place, size: Float[Array, ""] | float) -> Taken:
        """A step of length `size` from `place`."""


class AbstractTracedStep(AbstractStep):
    """A step that knows the path inside it; the path inside any other is retraced by shorter ones."""

    @abc.abstractmethod
    def inner_passes(self, problem: GramProblem, taken: Taken) -> Int[Array, ""] | int:
        """Forward passes that `between` takes."""

    @abc.abstractmethod
    def between(
        self, problem: GramProblem, before: Place, taken: Taken, size: Float[Array, ""] | float,
        part: Float[Array, ""] | float,
    ) -> Parameters:  # fmt: skip
        """The parameters at time `part` of 0...`size` inside the step from `before`."""
