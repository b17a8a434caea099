r"""A step for a shallow network with a kink at 0: predict the cotangent, follow the neurons under it, answer to what it missed.

A neuron that crosses or slides along many kinks bends at each, so its slopes over a long step do not follow from its start. Under a predicted cotangent neurons do
not see each other: each is followed through `PARTS` of the step, which costs forward passes and no decomposition.

The path that was followed need not fit the prediction. To the difference neurons answer linearly: with the mean of every slope, weighted by the cotangent,
and in the complement of the inputs along which they slide (`held_tangents`). With $\Theta$ of this answer, predicted integral $\bar g_0$, and the
output gradient $g_1$ at the end of the path that was followed, the cotangent obeys
$$\dot g = -H\Theta g + r/h,\qquad r = g_1 - g(0) + H\Theta\,\bar g_0,$$
exactly so where neurons answer linearly. The same $\Theta$ predicts the next step.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._core.node_blocks import block_count, cut_blocks, join_blocks
from .jacobian import ShallowTangents
from .kink_slopes import Pairs, mean_slopes
from .linearisation import GramProblem, Outputs, Place, exponential, exponentials
from .sliding_jacobian import Directions, Held, HeldTangents, held_directions
from .step_base import AbstractStep, Taken

PARTS = 8
SWEEPS = 2  # a part: the slopes of one neuron's pairs depend on each other, and damped sweeps settle them
BLOCK = 2_000_000  # bytes of pre-activations of the neurons that are followed together
PASSES = 3 + PARTS * (SWEEPS + 2)  # a sweep costs as much as a forward pass


class KinkedStep(AbstractStep):
    """The mean slopes over a whole step say little of its parts, so the path inside has to be retraced."""

    def __call__(self, problem, place, size):
        t = problem.tangents
        assert isinstance(t, HeldTangents)
        ends = [k / PARTS * size for k in range(1, PARTS + 1)]
        before = place.cotangent
        predicted = [i for i, _ in exponentials(problem, (1.0,), (place,), before, ends)]
        theta, outputs, mean, slopes, directions = _followed(t.free, place, jnp.stack(predicted))
        answer = problem.place_at(
            place.theta, place.outputs, Held(place.point.slopes, mean, directions)
        )
        missed = _missed(problem, answer, outputs, predicted[-1])
        integral, g = exponential(problem, (1.0,), (answer,), before, size, missed / size)
        pulled = t.pull(answer.point, integral - predicted[-1])
        theta = {name: theta[name] - pulled[name] for name in theta}
        z = t.free.preactivations(theta)
        point = Held(_sliding(t.free, slopes, z), mean, directions)
        new = problem.place_at(theta, t.free.respond(z), point, answer.gram)
        return Taken(new, g, (), jnp.asarray(PASSES))


def _missed(problem: GramProblem, answer: Place, outputs: Outputs, predicted: Outputs) -> Outputs:
    """The output gradient after the path that was followed, less what the linear answer to the prediction gives."""
    after = problem.loss.value_and_gradient(outputs, problem.targets)[1]
    linear = problem.product((1.0,), (answer,), predicted)
    return after - answer.cotangent + answer.curvature.bent(linear)


def _followed(
    t: ShallowTangents, place: Place, reached
) -> tuple[dict, Outputs, Pairs, Pairs, Directions]:
    """Parameters and outputs at the end, mean slopes over the step, slopes at its end and the directions held there, under the cotangent with integrals `reached` at the ends of the parts."""
    weights, parts = place.theta["weights"], jnp.diff(reached, axis=0, prepend=0.0)

    def some(mixed, weights, slopes):
        own = eqx.tree_at(lambda t: t.mixed, t, mixed)
        weights, outputs, mean, end = _followed_neurons(own, weights, slopes, parts)
        return weights, outputs, mean, end, held_directions(t.features, _between_sides(t, end))

    neurons = (t.mixed, weights, place.point.slopes)
    count = block_count(t.features, weights, BLOCK)
    if count == 1:
        weights, outputs, *rest = some(*neurons)
    else:
        moved, shares, *blocks = jax.lax.map(
            lambda block: some(*block), cut_blocks(count, *neurons)
        )
        outputs = jnp.sum(shares, axis=0)
        weights, *rest = (join_blocks(x, weights.shape[1]) for x in (moved, *blocks))
    return {"weights": weights}, outputs, *rest


def _followed_neurons(t: ShallowTangents, weights, slopes: Pairs, parts):
    """Weights, outputs, mean slopes and slopes at the end for the neurons of `t` alone, under the integrals of each of the `parts`."""
    low, high = _sides(t)
    norms = t.factor * jnp.sum(t.features**2, axis=1, keepdims=True)

    def part(carry, integral: Outputs):
        weights, z, slopes, total, weight = carry
        pull = t.spread(integral)
        own = -norms * pull
        displaced = lambda slopes: -(t.features @ t.pull(slopes, integral)["weights"])

        def settle(_, slopes):
            new, _ = mean_slopes(z, slopes, own, displaced(slopes), low, high)
            return (slopes + new) / 2

        settled = jax.lax.fori_loop(0, SWEEPS, settle, slopes)
        mean, end = mean_slopes(z, settled, own, displaced(settled), low, high)
        pulled, pull = t.pull(mean, integral), jnp.abs(pull)
        weights = weights - pulled["weights"]
        z = t.features @ weights
        return (weights, z, _sliding(t, end, z), total + pull * mean, weight + pull), None

    zero = jnp.zeros_like(slopes)
    start = (weights, t.features @ weights, slopes, zero, zero)
    (weights, z, end, total, weight), _ = jax.lax.scan(part, start, parts)
    mean = jnp.where(weight > 0, total / jnp.where(weight > 0, weight, 1.0), slopes)
    return weights, t.respond(z), mean, end


def _sliding(t: ShallowTangents, slopes: Pairs, z: Pairs) -> Pairs:
    """Slopes between the one-sided ones stay, for their pairs slide; the others are those of `z`."""
    return jnp.where(_between_sides(t, slopes), slopes, t.activation.slope(z))


def _between_sides(t: ShallowTangents, slopes: Pairs):
    low, high = _sides(t)
    return (slopes > low) & (slopes < high)


def _sides(t: ShallowTangents):
    """The slopes left and right of the kink."""
    return tuple(t.activation.slope(jnp.asarray(side)) for side in (-1.0, 1.0))
