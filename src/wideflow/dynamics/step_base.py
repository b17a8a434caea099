"""What a step of the Gram-matrix exponential flow is: the place after it, a check on it, and the path inside it."""

import abc
from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Float, PyTree

from .._core.trees import Parameters
from .gram_problem import GramProblem, Outputs, Place


class Taken(eqx.Module):
    """The place after a step, the cotangent it was meant to have, and what `between` needs to retrace the step.

    The error estimate costs nothing: `meant`, propagated through the exponentials, must equal the gradient at the
    new outputs; the difference is the defect.
    """

    place: Place
    meant: Outputs
    trace: PyTree


class AbstractStep(eqx.Module):
    """A step; `passes` counts its forward passes of the network."""

    passes: ClassVar[int]

    @abc.abstractmethod
    def inner_passes(self, problem: GramProblem, place: Place) -> int:
        """Forward passes that `between` takes."""

    @abc.abstractmethod
    def __call__(self, problem: GramProblem, place: Place, size: Float[Array, ""] | float) -> Taken:
        """A step of length `size` from `place`."""

    @abc.abstractmethod
    def between(
        self, problem: GramProblem, before: Place, taken: Taken, size: Float[Array, ""] | float,
        part: Float[Array, ""] | float,
    ) -> Parameters:  # fmt: skip
        """The parameters at time `part` of 0...`size` inside the step from `before`."""
