r"""A step for a shallow network with a kink at 0: predict the cotangent, follow the neurons under
it, correct what the prediction missed.

A neuron that crosses or slides along many kinks bends at each, so its slopes over a long step do
not follow from its start. Under a predicted cotangent neurons do not see each other: each is
followed through `PARTS` of the step, which costs forward passes and no decomposition.

The path that was followed need not fit the prediction. To the difference neurons respond linearly:
with the mean of every slope, weighted by the cotangent, and in the complement of the inputs along
which they slide (`SlidingJacobian`). With $\Theta$ of this correction, predicted integral
$\bar g_0$, and the output gradient $g_1$ at the end of the path that was followed, the cotangent
obeys
$$\dot g = -H\Theta g + r/h,\qquad r = g_1 - g(0) + H\Theta\,\bar g_0,$$
exactly so where neurons respond linearly. The same $\Theta$ predicts the next step.

The cotangent that this equation gives for the end is no check on a step: it is right by
construction wherever neurons respond linearly to the correction, however wrong the kinks were that
they met before it. (On a noisy wave it was right to $10^{-13}$ where the loss was 30 % off.) So a
step is made twice: in two halves, which meet the kinks under another prediction, and as a whole,
which checks them.

The mean slope of a pair over a part of the step is the Filippov selection. A pre-activation
$z_{ij}$ of a ReLU network can be driven onto its kink from both sides. The flow then has no
classical solution; its Filippov solution stays at $z_{ij} = 0$ with a slope $s_{ij}$ between the
two one-sided ones, the one for which $\dot z_{ij} = 0$. Over a step, with the integrated cotangent
$\bar g$ frozen, $\Delta z_{ij}$ is affine in the own slope,
$$\Delta z_{ij} = B_{ij} + s_{ij}A_{ij},\qquad A_{ij} = -c\,|\phi_i|^2\,(\bar g\,(s\odot A))_{ij},$$
so crossing time, sliding slope $s^* = -B/A$ and the mean slope over the step follow in closed form,
pair by pair. A pair that crosses gets the time-weighted mean of the two slopes, a pair that reaches
the kink and cannot leave gets $s^*$ from then on.

A pair that slides moves its neuron in the complement of $\phi_i$, whatever the slope that keeps it
at $z_{ij} = 0$. With $Q_j$ an orthonormal basis of the inputs along which neuron $j$ slides, and
$S$ the slopes of the other pairs,
$$J_j = s_jA_j\,\mathrm{diag}(S_j)\,\Phi\,(I - Q_jQ_j^\top),\qquad
\Theta = c\,\Phi\Phi^\top\odot(S\,\mathrm{diag}(s^2A^2)\,S^\top) - c\sum_j
  s_j^2A_j^2\,\mathrm{diag}(S_j)\,\Phi Q_jQ_j^\top\Phi^\top\mathrm{diag}(S_j).$$
No slope of a sliding pair enters: the linearisation holds for any cotangent that keeps the pair
sliding.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..._core.node_products import cut_blocks, join_blocks, symmetric_product
from ..._core.types import Scalar
from ...models.shallow import block_count
from .jacobian import AbstractJacobian, ShallowJacobian, gram_map_in_blocks
from .linearisation import GramProblem, Linearisation, Outputs, exponential, exponentials
from .step_base import AbstractStep, StepResult

Pairs = Float[Array, "sample width"]
Constraints = Float[Array, "rank embedded width"]

PARTS = 8  # 6 and 12 were tried on energy and on concrete at gamma = .5: 8 was the best
SWEEPS = 2  # damped ones a part (1 was worse there, 4 no better on small random problems)
# bytes of pre-activations of the neurons that are followed together: a core's L2 cache
BLOCK = 2_000_000
MAX_CONSTRAINTS = 8  # a neuron (chosen); pairs beyond them keep their mean slopes
SHARES = 4  # of the width: a block of constraints (chosen)
# an input whose square lies outside the earlier ones by a smaller share is no new constraint:
# sqrt(eps)
DEPENDENT = 1e-8
EVALUATIONS = 3 + PARTS * (SWEEPS + 3)  # of a single step; a sweep costs as much as a forward pass


class SlidingPoint(eqx.Module):
    """What the Jacobian needs: mean slopes and active constraints $Q_j$ (orthonormal for each
    neuron, or 0); and the slopes at the point itself.
    """

    slopes: Pairs
    mean_slopes: Pairs
    constraints: Constraints


class SlidingJacobian(AbstractJacobian):
    """The Jacobian `unconstrained`, followed by the projection onto the complement of the active
    constraints.
    """

    unconstrained: ShallowJacobian

    def linearise(self, theta):
        outputs, slopes = self.unconstrained.linearise(theta)
        size, width = theta["weights"].shape
        nothing = jnp.zeros((min(MAX_CONSTRAINTS, size), size, width), slopes.dtype)
        return outputs, SlidingPoint(slopes, slopes, nothing)

    def vjp(self, jacobian: SlidingPoint, cotangent):
        return _complement(jacobian, self.unconstrained.vjp(jacobian.mean_slopes, cotangent))

    def jvp(self, jacobian: SlidingPoint, tangent):
        return self.unconstrained.jvp(jacobian.mean_slopes, _complement(jacobian, tangent))

    def free_gram(self, jacobian: SlidingPoint):
        return self.unconstrained.gram(jacobian.mean_slopes)

    def gram_map(self, jacobian: SlidingPoint):
        return gram_map_in_blocks(
            self.unconstrained, SlidingJacobian, jacobian
        ) or super().gram_map(jacobian)

    def gram(self, jacobian: SlidingPoint):
        r"""$\Theta$ by the formula above.

        Few of the `rank x width` columns of $Q$ are in use. Sorted to the front, they are
        subtracted block by block until none is left; the block's size divides the width, so that
        the last block ends with the last column.
        """
        t, width = self.unconstrained, jacobian.mean_slopes.shape[1]
        size = width // SHARES if width % SHARES == 0 else width
        columns = jnp.swapaxes(jacobian.constraints, 0, 1).reshape(
            jacobian.constraints.shape[1], -1
        )
        used = jnp.any(columns != 0, axis=0)
        # False sorts before True: the columns in use come first
        order = jnp.argsort(~used, stable=True)
        outputs = jnp.atleast_2d(t.mixed)

        def without(block, gram):
            block_columns = jax.lax.dynamic_slice_in_dim(order, block * size, size)
            # columns are ordered (rank, neuron)
            neuron = block_columns % width
            along = jacobian.mean_slopes[:, neuron] * (t.features @ columns[:, block_columns])
            # unused columns are zeros and subtract nothing, so a block need not be full
            rows = along[:, None, :] * outputs[:, neuron]
            return gram - t.factor * symmetric_product(rows.reshape(-1, size))

        return jax.lax.fori_loop(
            0, -(-jnp.sum(used) // size), without, t.gram(jacobian.mean_slopes)
        )


def _complement(jacobian: SlidingPoint, tangent):
    weights = tangent["weights"]
    parts = jnp.einsum("kdm,dm->km", jacobian.constraints, weights)
    return {"weights": weights - jnp.einsum("kdm,km->dm", jacobian.constraints, parts)}


def active_constraints(features, sliding: Bool[Array, "sample width"]) -> Constraints:
    """Orthonormal bases of the inputs along which neurons slide, the input farthest from those
    before it first.
    """
    size, width = features.shape[1], sliding.shape[1]
    capacity = min(MAX_CONSTRAINTS, size)
    squares = jnp.sum(features**2, axis=1, keepdims=True)

    def going(carry):
        count, _, outside = carry
        return (count < capacity) & jnp.any(outside > DEPENDENT * squares)

    def add(carry):
        # one step of Gram-Schmidt for all neurons at once, with pivoting: `outside` holds the
        # squared length that each sliding input still has outside the span of the constraints found
        # so far, 0 for inputs that do not slide
        count, constraints, outside = carry
        farthest = jnp.argmax(outside, axis=0)
        new = features[farthest].T
        for _ in range(2):  # orthogonalising twice is enough (Kahan)
            new = new - jnp.einsum("kdm,kem,em->dm", constraints, constraints, new)
        # the same measure of independence as in `going`
        left = jnp.take_along_axis(outside, farthest[None], axis=0)[0]
        length = jnp.linalg.norm(new, axis=0)
        independent = left > DEPENDENT * squares[farthest, 0]
        new = jnp.where(independent, new / jnp.where(independent, length, 1.0), 0.0)
        # Pythagoras; a neuron without another independent input is done
        outside = jnp.where(independent, outside - (features @ new) ** 2, 0.0)
        return count + 1, constraints.at[count].set(new), outside

    nothing = jnp.zeros((capacity, size, width), features.dtype)
    start = (jnp.zeros((), int), nothing, jnp.where(sliding, squares, 0.0))
    return jax.lax.while_loop(going, add, start)[1]


class Filippov(AbstractStep):
    """Two single steps of half the size, checked by one of the whole size."""

    def __call__(self, problem, start, size):
        # one loop, so that a single step is compiled once: the whole size from `start`, half of it
        # from `start`, half of it from there
        def single(current: Linearisation, attempt):
            begin = jax.tree.map(lambda a, b: jnp.where(attempt < 2, a, b), start, current)
            end = single_step(problem, begin, jnp.where(attempt == 0, size, size / 2))
            return end, (end.cotangent, end.loss)

        # attempt 0 is the whole step, 1 the first half, whose end is 2's start: cotangent 0 checks
        # end 2, and loss 1 is that inside the step
        end, (cotangents, losses) = jax.lax.scan(single, start, jnp.arange(3))
        return StepResult(end, cotangents[0], losses[1], (), jnp.asarray(3 * EVALUATIONS))

    def empty_interpolant(self, problem, start):
        return ()


def single_step(problem: GramProblem, start: Linearisation, size) -> Linearisation:
    """Where one step of the given size ends."""
    operator = problem.operator
    assert isinstance(operator, SlidingJacobian)  # of a network with kinks
    network = operator.unconstrained
    ends = [k / PARTS * size for k in range(1, PARTS + 1)]
    # integrals from the start to the end of each part, all from one decomposition
    predicted = [i for i, _ in exponentials(problem, (1.0,), (start,), start.cotangent, ends)]
    theta, outputs, means, slopes, constraints = _follow(network, start, jnp.stack(predicted))
    correction = problem.linearisation(
        start.theta, start.outputs, SlidingPoint(start.jacobian.slopes, means, constraints)
    )
    force = _defect(problem, correction, outputs, predicted[-1]) / size
    integral, _ = exponential(problem, (1.0,), (correction,), start.cotangent, size, force)
    # the path that was followed has answered the predicted integral already: the difference is left
    shift = operator.vjp(correction.jacobian, integral - predicted[-1])
    theta = {name: theta[name] - shift[name] for name in theta}
    z = network.preactivations(theta)
    jacobian = SlidingPoint(_slopes_at(network, slopes, z), means, constraints)
    return problem.linearisation(theta, network.respond(z), jacobian, correction.gram)


def _defect(
    problem: GramProblem, correction: Linearisation, outputs: Outputs, predicted: Outputs
) -> Outputs:
    """$r$: the output gradient after the path that was followed, less what the linear response to
    the prediction gives.
    """
    after = problem.loss.value_and_gradient(outputs, problem.targets)[1]
    linear = problem.product((1.0,), (correction,), predicted)
    return after - correction.cotangent + correction.hessian.apply(linear)


def _follow(
    network: ShallowJacobian, start: Linearisation, integrals
) -> tuple[dict, Outputs, Pairs, Pairs, Constraints]:
    """All neurons, block by block, under a cotangent with the given `integrals` from the start to
    the end of each part.

    Returns:
        Parameters and outputs at the end, mean slopes over the step, slopes at its end, and the
            constraints that are active there.
    """
    weights, parts = start.theta["weights"], jnp.diff(integrals, axis=0, prepend=0.0)

    def follow_block(mixed, weights, slopes):
        own = eqx.tree_at(lambda n: n.mixed, network, mixed)
        weights, outputs, means, end = _follow_neurons(own, weights, slopes, parts)
        constraints = active_constraints(network.features, _slides(network, end))
        return weights, outputs, means, end, constraints

    neurons = (network.mixed, weights, start.jacobian.slopes)
    count = block_count(network.features, weights, BLOCK)
    if count == 1:
        weights, outputs, *rest = follow_block(*neurons)
    else:
        moved, shares, *blocks = jax.lax.map(
            lambda block: follow_block(*block), cut_blocks(count, *neurons)
        )
        outputs = jnp.sum(shares, axis=0)
        weights, *rest = (join_blocks(x, weights.shape[1]) for x in (moved, *blocks))
    means, slopes, constraints = rest
    return {"weights": weights}, outputs, means, slopes, constraints


def _follow_neurons(network: ShallowJacobian, weights, slopes: Pairs, parts):
    """Weights, outputs, mean slopes and slopes at the end for the neurons of `network` alone, under
    the integrals of each of the `parts`.
    """
    low, high = _one_sided(network)
    norms = network.factor * jnp.sum(network.features**2, axis=1, keepdims=True)

    def follow_part(carry, integral: Outputs):
        weights, z, slopes, weighted_sum, weight = carry
        # the integrated cotangent of each activation, (sample, neuron), frozen over the part
        drive = network.spread(integral)
        own = -norms * drive  # what a pair's own slope does to its own pre-activation
        displacement = lambda slopes: -(network.features @ network.vjp(slopes, integral)["weights"])

        def sweep(_, slopes):
            # each pair's mean slope with those of its neuron's other pairs fixed (Jacobi), damped
            # by a half
            new, _ = mean_slopes(z, slopes, own, displacement(slopes), low, high)
            return (slopes + new) / 2

        # The last sweep is not damped: a neuron whose only active pair switches off stops there,
        # and damping would carry it on by a share of the part, perhaps across the next kink, where
        # it comes to life again.
        slopes = jax.lax.fori_loop(0, SWEEPS, sweep, slopes)
        slopes, _ = mean_slopes(z, slopes, own, displacement(slopes), low, high)
        mean, end = mean_slopes(z, slopes, own, displacement(slopes), low, high)
        weights = weights - network.vjp(mean, integral)["weights"]
        z = network.features @ weights
        drive = jnp.abs(drive)
        carry = (
            weights,
            z,
            _slopes_at(network, end, z),
            weighted_sum + drive * mean,
            weight + drive,
        )
        return carry, None

    zero = jnp.zeros_like(slopes)
    first = (weights, network.features @ weights, slopes, zero, zero)
    (weights, z, end, weighted_sum, weight), _ = jax.lax.scan(follow_part, first, parts)
    # weighted by |cotangent|, for a part without drive says nothing of the response
    means = jnp.where(weight > 0, weighted_sum / jnp.where(weight > 0, weight, 1.0), slopes)
    return weights, network.respond(z), means, end


def _slopes_at(network: ShallowJacobian, slopes: Pairs, z: Pairs) -> Pairs:
    """Slopes between the one-sided ones stay, for their pairs slide; the others are those of
    `z`.
    """
    return jnp.where(_slides(network, slopes), slopes, network.activation.slope(z))


def _slides(network: ShallowJacobian, slopes: Pairs):
    low, high = _one_sided(network)
    return (slopes > low) & (slopes < high)


def _one_sided(network: ShallowJacobian):
    """The slopes left and right of the kink."""
    return tuple(network.activation.slope(jnp.asarray(side)) for side in (-1.0, 1.0))


def mean_slopes(
    z: Pairs, slopes: Pairs, own: Pairs, moved: Pairs, low: Scalar, high: Scalar
) -> tuple[Pairs, Pairs]:
    r"""Mean slopes over the step, and the slopes at its end.

    Args:
        z: pre-activations at the start, kink at 0.
        slopes: those with which `moved` was computed.
        own: $A$, the part of $\Delta z$ per unit of the own slope. moved: $\Delta z$.
        low, high: the slopes left and right of the kink.

    Returns:
        (mean slopes, end slopes): equal to `low` or `high` for pairs that stay on their side.
    """
    rest = moved - slopes * own
    left, right = rest + low * own, rest + high * own  # the displacement on either side
    # the slope at which B + s A = 0; the clip keeps rounding, and pairs that do not slide, in range
    stuck = jnp.clip(-rest / _nonzero(own), low, high)
    positive = z > 0
    here, there = jnp.where(positive, high, low), jnp.where(positive, low, high)
    toward, beyond = jnp.where(positive, right, left), jnp.where(positive, left, right)
    reaches = jnp.where(positive, z + toward < 0, z + toward > 0)
    # the displacement is linear in time over the part, so the kink is met at the share -z /
    # displacement
    when = jnp.clip(-z / _nonzero(toward), 0.0, 1.0)
    # beyond the kink the drift points back to it: from neither side can the pair leave
    slides = reaches & jnp.where(positive, beyond > 0, beyond < 0)
    after = jnp.where(slides, stuck, there)
    mean = jnp.where(reaches, when * here + (1 - when) * after, here)
    return mean, jnp.where(reaches, after, here)


def _nonzero(x):
    return jnp.where(x == 0, 1.0, x)
