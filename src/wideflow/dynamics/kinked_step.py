"""A step for a shallow network with a kink at 0: predict, average the slopes over the step until they settle, step once more."""

import jax
import jax.numpy as jnp

from .gram_problem import exponential, move
from .kink_slopes import mean_slopes
from .step_base import AbstractStep, Taken
from .tangents import ShallowTangents

PASSES = 2
SWEEPS = 12  # the slopes of one neuron's pairs depend on each other: so many damped sweeps settle them, at the cost of one forward pass each


class KinkedStep(AbstractStep):
    """The path inside a step is retraced by a shorter one: the mean slopes over the whole say little of its parts."""

    def inner_passes(self, problem, taken):
        return PASSES

    def __call__(self, problem, place, size):
        t = problem.tangents
        assert isinstance(t, ShallowTangents)
        low, high = (t.activation.slope(jnp.asarray(side)) for side in (-1.0, 1.0))
        z = t.preactivations(place.theta)
        integral, _ = exponential(problem, (1.0,), (place,), place.cotangent, size)
        own = -jnp.diagonal(t.inner)[:, None] * t.spread(integral)

        def settle(_, slopes):
            moved = -(t.features @ t.pull(slopes, integral)["weights"])
            return (slopes + mean_slopes(z, slopes, own, moved, low, high)[0]) / 2

        settled = jax.lax.fori_loop(0, SWEEPS, settle, place.point)
        moved = -(t.features @ t.pull(settled, integral)["weights"])
        mean, end = mean_slopes(z, settled, own, moved, low, high)
        averaged = problem.place_at(place.theta, place.outputs, mean)
        integral, g = exponential(problem, (1.0,), (averaged,), place.cotangent, size)
        theta = move(problem, place.theta, (1.0,), (averaged,), integral)
        now = t.preactivations(theta)
        partial = (end > low) & (end < high)
        slopes = jnp.where(partial, end, t.activation.slope(now))
        return Taken(problem.place_at(theta, t.respond(now), slopes), g, (), jnp.asarray(PASSES))

    def between(self, problem, before, taken, size, part):
        return self(problem, before, part).place.theta
