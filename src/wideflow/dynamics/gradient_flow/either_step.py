"""A step by exponentials of the Gram matrix or with the whole Hessian."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from .commutator_free import SmoothStep
from .hessian_blocks import steepest
from .jacobian import ShallowTangents
from .linearisation import GramProblem
from .output_hessian import SQUARES
from .rodas import CurvedStep
from .step_base import AbstractTracedStep, Taken

SMOOTH, CURVED = SmoothStep(), CurvedStep()
STIFF = 1.0  # step times steepest block from which the whole Hessian may help; exponentials are stable up to about 2
LARGEST = 3e7  # entries of the weighted Jacobian that may be held
DEARER = 3.0  # how many times the operations of a step of exponentials one with the whole Hessian may take


class EitherStep(AbstractTracedStep):
    """What the step was is the first part of its trace."""

    curved: Array

    def inner_passes(self, problem, taken):
        return jnp.where(taken.trace[0], *(s.inner_passes(problem, taken) for s in (CURVED, SMOOTH)))  # fmt: skip

    def should_curve(self, problem, place, size):
        return ~self.curved & (size * steepest(problem.tangents, place) > STIFF)

    def __call__(self, problem, place, size):
        def by(which):
            taken = which(problem, place, size)
            traces = [taken.trace if s is which else s.no_trace(problem, place) for s in (SMOOTH, CURVED)]  # fmt: skip
            return Taken(taken.place, taken.meant, (self.curved, *traces), taken.passes)

        return jax.lax.cond(self.curved, lambda: by(CURVED), lambda: by(SMOOTH))

    def between(self, problem, before, taken, size, part):
        curved, *traces = taken.trace

        def by(which, trace):
            own = Taken(taken.place, taken.meant, trace, taken.passes)
            return which.between(problem, before, own, size, part)

        return jax.lax.cond(curved, lambda: by(CURVED, traces[1]), lambda: by(SMOOTH, traces[0]))


def can_curve(problem: GramProblem) -> bool:
    """Whether the whole Hessian is known and affordable."""
    t, entries = problem.tangents, problem.targets.size
    if not isinstance(t, ShallowTangents) or not isinstance(problem.loss, SQUARES):
        return False
    size, width = t.features.shape[1], t.mixed.shape[-1]
    held, dearer = entries * width * size, width * size / (3 * width + 60 * entries)
    return problem.action.dense and held <= LARGEST and dearer <= DEARER
