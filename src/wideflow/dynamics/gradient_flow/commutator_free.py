r"""A step of order three for smooth networks, and the path inside it.

Three exponentials make a commutator-free Lie-group method (celledoni2003),
$$Y_2 = e^{\frac13F_1}Y_0,\quad Y_3 = e^{\frac23F_2}Y_0,\quad Y = e^{-\frac1{12}F_1 + \frac34F_3}\,Y_2 ,\qquad F_i = hA(Y_i),$$
exact in the lazy regime. $Y_3$ need not be that exact: for squared losses with the Gram matrix at hand it comes from `drifting_gram`
with the drift seen at $Y_2$, which saves an eigen decomposition. The same formula with the drift seen at $Y_3$ gives the path inside the step,
and a cubic share of what it misses at the end makes that path continuous. Elsewhere the path is retraced by a shorter step.
"""

import jax.numpy as jnp

from .drifting_gram import integrals
from .frozen_gram import Spectrum, has_spectrum, spectrum
from .linearisation import GramProblem, Place, exponential, move
from .step_base import AbstractTracedStep, Taken

PASSES = 3


class SmoothStep(AbstractTracedStep):
    """Order three; three forward passes."""

    def inner_passes(self, problem, taken):
        return 1 if has_spectrum(problem, taken.place) else PASSES

    def __call__(self, problem, place, size):
        if not has_spectrum(problem, place):
            return _by_exponentials(problem, place, size)
        third, frozen, start = size / 3, spectrum(problem, place), place.cotangent
        second = move(problem, place.theta, (1.0,), (place,), frozen.integral(start, third))
        middle = problem.place(second)
        late = problem.place(_drifted(problem, frozen, place, middle, third, 2 * third))
        weights, places = (-1 / 12, 3 / 4), (place, late)
        integral, after = exponential(problem, weights, places, frozen.decayed(start, third), size)
        theta = move(problem, second, weights, places, integral)
        return Taken(
            problem.place(theta), after, (frozen, late.theta, late.gram), jnp.asarray(PASSES)
        )

    def between(self, problem, before, taken, size, part):
        if not has_spectrum(problem, before):
            return self(problem, before, part).place.theta
        frozen, theta, gram = taken.trace
        outputs, point = problem.tangents.at(theta)
        late = Place(theta, outputs, before.cotangent, before.curvature, point, gram)
        here, end = (
            _drifted(problem, frozen, before, late, 2 / 3 * size, span) for span in (part, size)
        )
        share, meant = (part / size) ** 3, taken.place.theta
        return {name: here[name] + share * (meant[name] - end[name]) for name in here}


def _drifted(problem: GramProblem, frozen: Spectrum, place: Place, other: Place, distance, span):
    """The parameters after `span`, the linearisation moving in a straight line from `place` to `other`, `distance` away."""
    start, v = place.cotangent, frozen.vectors
    rise = place.curvature.kappa * (other.gram - place.gram) / distance
    both = integrals(frozen.rates, v.T @ rise @ v, frozen.parts(start), span)
    whole, rising = (frozen.whole(part, start) for part in both)
    theta = move(problem, place.theta, (1.0,), (place,), whole - rising / distance)
    return move(problem, theta, (1.0,), (other,), rising / distance)


def _by_exponentials(problem, place, size) -> Taken:
    def flow(theta, cotangent, weights, places):
        integral, after = exponential(problem, weights, places, cotangent, size)
        return move(problem, theta, weights, places, integral), after

    second, g = flow(place.theta, place.cotangent, (1 / 3,), (place,))
    middle = problem.place(second)
    third, _ = flow(place.theta, place.cotangent, (2 / 3,), (middle,))
    late = problem.place(third)
    theta, g = flow(second, g, (-1 / 12, 3 / 4), (place, late))
    return Taken(problem.place(theta), g, (), jnp.asarray(PASSES))
