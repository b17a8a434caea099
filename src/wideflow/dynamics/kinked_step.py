r"""A step for a shallow network with a kink at 0: predict the cotangent, follow the neurons under it, step once with the slopes averaged on the way.

A neuron that crosses or slides along many kinks bends at each, so its slopes over a long step do not follow from its start. Under the predicted cotangent neurons do
not see each other: each is followed through `PARTS` of the step, which costs forward passes and no decomposition. What enters
the step is the mean of every slope, weighted by the cotangent, with which the pull on the weights over the whole step is that of its parts.
"""

import jax
import jax.numpy as jnp

from .gram_problem import GramProblem, Outputs, Place, exponential, exponentials, move
from .kink_slopes import Pairs, mean_slopes
from .step_base import AbstractStep, Taken
from .tangents import ShallowTangents

PARTS = 8
SWEEPS = 2  # a part: the slopes of one neuron's pairs depend on each other, and damped sweeps settle them
PASSES = 2 + PARTS * (SWEEPS + 2)  # a sweep costs as much as a forward pass


class KinkedStep(AbstractStep):
    """The path inside a step is retraced by a shorter one: the mean slopes over the whole say little of its parts."""

    def inner_passes(self, problem, taken):
        return PASSES

    def __call__(self, problem, place, size):
        t = problem.tangents
        assert isinstance(t, ShallowTangents)
        mean, end = _followed(problem, t, place, size)
        averaged = problem.place_at(place.theta, place.outputs, mean)
        integral, g = exponential(problem, (1.0,), (averaged,), place.cotangent, size)
        theta = move(problem, place.theta, (1.0,), (averaged,), integral)
        z = t.preactivations(theta)
        new = problem.place_at(theta, t.respond(z), _sliding(t, end, z))
        return Taken(new, g, (), jnp.asarray(PASSES))

    def between(self, problem, before, taken, size, part):
        return self(problem, before, part).place.theta


def _followed(problem: GramProblem, t: ShallowTangents, place: Place, size) -> tuple[Pairs, Pairs]:
    """Mean slopes over the step and slopes at its end, under the cotangent predicted with the slopes at its start."""
    low, high = _sides(t)
    ends = [k / PARTS * size for k in range(1, PARTS + 1)]
    reached = [i for i, _ in exponentials(problem, (1.0,), (place,), place.cotangent, ends)]
    norms = jnp.diagonal(t.inner)[:, None]

    def part(carry, integral: Outputs):
        z, slopes, total, weight = carry
        pull = t.spread(integral)
        own = -norms * pull
        displaced = lambda slopes: -(t.features @ t.pull(slopes, integral)["weights"])

        def settle(_, slopes):
            new, _ = mean_slopes(z, slopes, own, displaced(slopes), low, high)
            return (slopes + new) / 2

        settled = jax.lax.fori_loop(0, SWEEPS, settle, slopes)
        mean, end = mean_slopes(z, settled, own, displaced(settled), low, high)
        z, pull = z + displaced(mean), jnp.abs(pull)
        return (z, _sliding(t, end, z), total + pull * mean, weight + pull), None

    zero = jnp.zeros_like(place.point)
    start = (t.preactivations(place.theta), place.point, zero, zero)
    parts = jnp.diff(jnp.stack(reached), axis=0, prepend=0.0)
    (_, end, total, weight), _ = jax.lax.scan(part, start, parts)
    return jnp.where(weight > 0, total / jnp.where(weight > 0, weight, 1.0), place.point), end


def _sliding(t: ShallowTangents, slopes: Pairs, z: Pairs) -> Pairs:
    """Slopes between the one-sided ones stay, for their pairs slide; the others are those of `z`."""
    low, high = _sides(t)
    return jnp.where((slopes > low) & (slopes < high), slopes, t.activation.slope(z))


def _sides(t: ShallowTangents):
    """The slopes left and right of the kink."""
    return tuple(t.activation.slope(jnp.asarray(side)) for side in (-1.0, 1.0))
