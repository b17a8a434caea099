"""What a step of the exponential integrator is: where it ends, a check on it, and the path inside
it.
"""

import abc

import equinox as eqx
from jaxtyping import Array, Float, Int, PyTree

from ..._core.trees import Parameters
from .linearisation import GramProblem, Linearisation, Outputs

# After `PROBATION` attempts in one interval, a pace at which all attempts together would cover less
# than the share `HOPELESS` of the way is hopeless (chosen): the solver gives up in seconds where it
# would try for hours.
PROBATION, HOPELESS = 500, 1e-3


class StepResult(eqx.Module):
    """Where a step ends, and what is known of it.

    Attributes:
        end: the linearisation there.
        predicted_gradient: the output gradient that it should have there by another way: propagated
            through the exponentials, that of an embedded method, or that of a step of another size.
            The difference is the defect, the estimate of the step's error.
        highest_loss: the highest loss seen inside the step.
        interpolant: what `interpolate` needs.
        evaluations: forward passes of the network.
    """

    end: Linearisation
    predicted_gradient: Outputs
    highest_loss: Float[Array, ""]
    interpolant: PyTree
    evaluations: Int[Array, ""]


class AbstractStep(eqx.Module):
    """A way to step."""

    @abc.abstractmethod
    def __call__(
        self, problem: GramProblem, start: Linearisation, size: Float[Array, ""] | float
    ) -> StepResult:
        """A step of length `size` from `start`."""

    @abc.abstractmethod
    def empty_interpolant(self, problem: GramProblem, start: Linearisation) -> PyTree:
        """The `interpolant` of a step from `start`, in zeros: before the first one.

        Written out by each method: to trace a whole step for its shapes takes as long as to trace
        the step itself.
        """


class AbstractDenseStep(AbstractStep):
    """A step with dense output; any other has to end at recording times."""

    @abc.abstractmethod
    def interpolate(
        self,
        problem: GramProblem,
        start: Linearisation,
        end: Linearisation,
        interpolant: PyTree,
        size: Float[Array, ""] | float,
        time: Float[Array, ""] | float,
    ) -> Parameters:
        """The parameters at a `time` of 0...`size` inside the step from `start` to `end`."""
