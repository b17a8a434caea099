r"""A step of order three for smooth networks, and the path inside it.

Three exponentials make a commutator-free Lie-group method (celledoni2003),
$$Y_2 = e^{\frac13F_1}Y_0,\quad Y_3 = e^{\frac23F_2}Y_0,\quad Y = e^{-\frac1{12}F_1 + \frac34F_3}\,Y_2 ,\qquad F_i = hA(Y_i),$$
exact in the lazy regime. $Y_3$ need not be that exact: for squared losses with the Gram matrix at hand it comes from `gram_decay`
with the drift seen at $Y_2$, which saves an eigen decomposition. The same formula with the drift seen at $Y_3$ gives the path inside the step,
and a cubic share of what it misses at the end makes that path continuous. Elsewhere the path
inside is unknown (`CommutatorFreeAny`), and steps end where one looks.
"""

import dataclasses

import jax
import jax.numpy as jnp

from .gram_decay import Spectrum, integrals, spectrum
from .linearisation import GramProblem, Linearisation, exponential, move
from .output_hessian import UniformHessian
from .step_base import AbstractDenseStep, AbstractStep, StepResult

EVALUATIONS = 3


class CommutatorFree(AbstractDenseStep):
    """Order three; three forward passes. For squared losses with the Gram matrix at hand."""

    def __call__(self, problem, start, size):
        third, frozen, g = size / 3, spectrum(problem, start), start.cotangent
        second = move(problem, start.theta, (1.0,), (start,), frozen.integral(g, third))
        middle = problem.linearise(second)
        late = problem.linearise(_drifted(problem, frozen, start, middle, third, 2 * third))
        weights, stages = (-1 / 12, 3 / 4), (start, late)
        integral, after = exponential(problem, weights, stages, frozen.decayed(g, third), size)
        end = problem.linearise(move(problem, second, weights, stages, integral))
        highest_loss = jnp.maximum(middle.loss, late.loss)
        interpolant = (frozen, late.theta, late.gram)
        return StepResult(end, after, highest_loss, interpolant, jnp.asarray(EVALUATIONS))

    def interpolate(self, problem, start, end, interpolant, size, time):
        frozen, theta, gram = interpolant
        outputs, jacobian = problem.operator.linearise(theta)
        late = dataclasses.replace(
            start, theta=theta, outputs=outputs, jacobian=jacobian, gram=gram
        )
        after = lambda span: _drifted(problem, frozen, start, late, 2 / 3 * size, span)
        both = jax.lax.map(after, jnp.stack([time, size]))  # the formula is long: compiled once
        share = (time / size) ** 3
        return {name: inside + share * (end.theta[name] - at_end) for name, (inside, at_end) in both.items()}  # fmt: skip


class CommutatorFreeAny(AbstractStep):
    """The same order for any loss and any way to apply functions of the Gram matrix; no dense output."""

    def __call__(self, problem, start, size):
        def flow(theta, cotangent, weights, stages):
            integral, after = exponential(problem, weights, stages, cotangent, size)
            return move(problem, theta, weights, stages, integral), after

        second, g = flow(start.theta, start.cotangent, (1 / 3,), (start,))
        middle = problem.linearise(second)
        third, _ = flow(start.theta, start.cotangent, (2 / 3,), (middle,))
        late = problem.linearise(third)
        theta, g = flow(second, g, (-1 / 12, 3 / 4), (start, late))
        highest_loss = jnp.maximum(middle.loss, late.loss)
        return StepResult(problem.linearise(theta), g, highest_loss, (), jnp.asarray(EVALUATIONS))


def _drifted(
    problem: GramProblem, frozen: Spectrum, start: Linearisation, other: Linearisation, distance, span
):  # fmt: skip
    """The parameters after `span`, the linearisation moving in a straight line from `start` to `other`, `distance` away."""
    g, v = start.cotangent, frozen.vectors
    assert start.gram is not None  # a `Spectrum` is that of a Gram matrix at hand
    assert other.gram is not None
    assert isinstance(start.hessian, UniformHessian)  # of a squared loss
    drift = start.hessian.kappa * (other.gram - start.gram) / distance
    both = integrals(frozen.rates, v.T @ drift @ v, frozen.parts(g), span)
    integral, rising = (frozen.whole(part, g) for part in both)
    # J moves linearly too: J(u) = J + (u / distance)(J_other - J), hence the integrals of g and of u g
    theta = move(problem, start.theta, (1.0,), (start,), integral - rising / distance)
    return move(problem, theta, (1.0,), (other,), rising / distance)
