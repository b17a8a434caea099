"""What a step of the Gram-matrix exponential flow is: the place after it, a check on it, and the path inside it."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from ..._core.trees import Parameters, zeros_of
from .linearisation import GramProblem, Outputs, Place


class Taken(eqx.Module):
    """The place after a step, the cotangent that it should have there by another way, the highest loss seen inside the step, what `between` needs, and the
    forward passes that the step took.

    The difference between the place's own output gradient and `meant` (propagated through the exponentials, or that of an embedded method, or that of a step of
    another size) is the defect, the estimate of the step's error.
    """

    place: Place
    meant: Outputs
    peak: Float[Array, ""]
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
    """A step that knows the path inside it; any other has to end at recording times."""

    @abc.abstractmethod
    def between(
        self, problem: GramProblem, before: Place, taken: Taken, size: Float[Array, ""] | float,
        part: Float[Array, ""] | float,
    ) -> Parameters:  # fmt: skip
        """The parameters at time `part` of 0...`size` inside the step from `before`."""
