r"""Gradient flow of kinked networks by descent in small steps, checked by descent in steps of half
the size.

Explicit Euler steps $\theta - h\,cJ^\top g$ with $h = s/\lambda_{\max}$ chatter about a kink on
which the flow slides with an amplitude of $O(h)$, and converge to the solution in Filippov's sense
(limits of Euler polygons solve the differential inclusion). Nothing has to be predicted about
kinks, so nothing can be predicted wrongly; the price is a number of steps in proportion to
$\lambda_{\max}t$.

Each stretch of time is walked with $h$ and with $h/2$. Where both end at the same outputs, within
the tolerance, the finer path counts; else the finer one becomes the coarser of the next pair. The
method is of first order, so what the two differ by is about the error of the finer one.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..._core.trees import Parameters
from .exponential_integrator import (
    gradient_rounding,
    is_still,
    largest_rate,
    linearisation_rounding,
    norm,
)
from .linearisation import GramProblem, Linearisation

# `share` is s = h * lambda_max of the coarser path; Euler is stable below 2, and the largest
# eigenvalue is known from below (chosen).
FIRST_SHARE, LARGEST_SHARE, SMALLEST_SHARE = 2.0**-3, 2.0**-2, 2.0**-16
# of the error allowed: below it the next stretch is tried with twice the share, for the error is of
# first order
GROWTH = 0.25
STRETCH = 512.0  # of 1/lambda_max: how long one estimate of it serves (chosen)
# stretches of a tenth of the time so far, and longer ones, are allowed the whole tolerance; shorter
# ones in proportion less
PORTIONS = 10
# of the spare evaluations in one stretch: several hard ones in a row must not use them up (chosen)
SPENDABLE = 1 / 8
PATHS = 3  # evaluations of both paths, in steps of the coarser one: one of h and two of h/2


class DescentState(eqx.Module):
    """Where descent stands, and what it carries on.

    Attributes:
        end, theta: the time and the parameters there.
        share: step size of the coarser path in units of 1/lambda_max.
        steps, evaluations: steps of the paths that count, and of all that were walked.
        undecided: stretches that were accepted though both paths differed, for finer ones were not
            affordable.
        still: nothing moves any more. stuck: no step descends, or more evaluations are needed than
            there are.
    """

    end: Float[Array, ""]
    theta: Parameters
    share: Float[Array, ""]
    steps: Int[Array, ""]
    evaluations: Int[Array, ""]
    undecided: Int[Array, ""]
    still: Array
    stuck: Array


class ExplicitDescent(eqx.Module):
    """Pairs of Euler paths that must agree within `tolerance`, relative to the output gradient and
    to the loss.
    """

    tolerance: float = eqx.field(static=True)

    def init(self, theta: Parameters, time) -> DescentState:
        no, zero, time = jnp.zeros((), bool), jnp.zeros((), int), jnp.asarray(time, float)
        return DescentState(time, theta, jnp.asarray(FIRST_SHARE), zero, zero, zero, no, no)

    def restart(self, state: DescentState, theta: Parameters, time) -> DescentState:
        """`state` at another place and time, with all that it has counted."""
        no, time = jnp.zeros((), bool), jnp.asarray(time, float)
        return dataclasses.replace(state, end=time, theta=theta, still=no, stuck=no)

    def least_evaluations(self, problem: GramProblem, state: DescentState, stop):
        """Of descent to `stop`: of both paths at the largest share, if the largest eigenvalue
        stays.
        """
        rate = largest_rate(problem, problem.linearise(state.theta))
        return PATHS * jnp.maximum(stop - state.end, 0.0) * rate / LARGEST_SHARE

    def advance(
        self, problem: GramProblem, state: DescentState, stop, horizon, most
    ) -> DescentState:
        """Stretches of steps until `stop` is reached, or nothing moves, or no step descends, or
        evaluations run out.

        Args:
            horizon, most: the `most` evaluations have to last until then.
        """

        def going(now: DescentState):
            return (now.end < stop) & ~now.still & ~now.stuck

        def stretch(now: DescentState) -> DescentState:
            start = problem.linearise(now.theta)
            rate = largest_rate(problem, start)
            # equal stretches of at most STRETCH fastest times each
            pieces = jnp.maximum(jnp.ceil((stop - now.end) * rate / STRETCH), 1.0)
            length = (stop - now.end) / pieces

            # What the rest of the run takes at the first share is set aside; of what is left
            # besides, a part may go into this stretch.
            left = most - (now.evaluations - state.evaluations)
            both_paths = lambda time, share: PATHS * time * rate / share
            # evaluations grow like 1/share: below this share the rest of the run would take more
            # than is left
            share = jnp.clip(both_paths(horizon - now.end, 1.0) / left, now.share, LARGEST_SHARE)
            least = both_paths(length, LARGEST_SHARE)
            spare = left - both_paths(horizon - now.end, FIRST_SHARE)
            final = now.end + length >= horizon
            limit = jnp.where(final, 1.0, SPENDABLE) * jnp.maximum(spare, 0.0) + least

            still = is_still(problem, start, rate)
            hopeless = ~(least <= left) | ~jnp.isfinite(start.loss)
            moved = jax.lax.cond(
                still | hopeless,
                lambda: now,
                lambda: self._stretch(problem, now, start, rate, length, share, limit),
            )
            # `stop` itself and not a sum that rounds: the loop compares with it
            arrived = (pieces <= 1) & (moved.end > now.end)
            return dataclasses.replace(
                moved,
                end=jnp.where(arrived, stop, moved.end),
                still=moved.still | still,
                stuck=moved.stuck | (hopeless & ~still),
            )

        return jax.lax.while_loop(going, stretch, state)

    def _stretch(
        self,
        problem: GramProblem,
        now: DescentState,
        start: Linearisation,
        rate,
        length,
        share,
        limit,
    ) -> DescentState:
        """One stretch of time, by finer and finer paths until two of them agree or `limit`
        evaluations would be passed.
        """
        portion = jnp.minimum(PORTIONS * length / (now.end + length), 1.0)
        tolerance = self.tolerance * portion  # errors add up
        highest = start.loss + linearisation_rounding(problem, start)
        walk = lambda count: problem.linearise(euler(problem, now.theta, length / count, count))

        def refine(carry):
            share, count, walked, coarse, _, _ = carry
            # the finer path of one pair is the coarser of the next: only one new path is walked
            count, walked = 2 * count, walked + 2 * count
            fine = walk(count)
            error = _difference(problem, coarse, fine, tolerance)
            agree, descends = error <= 1, fine.loss <= highest
            # agreement on a rise within the tolerance is chatter: the loss has fallen by less than
            # two paths can tell
            chatters = agree & (fine.loss <= (1 + tolerance) * start.loss)
            finest = (share <= SMALLEST_SHARE) | (walked + 2 * count > limit)
            again = ~(agree & descends) & ~chatters & ~finest
            return jnp.where(again, share / 2, share), count, walked, fine, error, again

        count = jnp.maximum(jnp.ceil(length * rate / share), 1.0)
        first = (share, count, count, walk(count), jnp.asarray(jnp.inf), jnp.ones((), bool))
        share, count, walked, fine, error, _ = jax.lax.while_loop(lambda c: c[-1], refine, first)

        agree, descends = error <= 1, fine.loss <= highest
        # a network that only chatters stays where it is, until finer steps move it
        stays = agree & ~descends
        # twice the share makes twice the error, at most half of what is allowed
        share = jnp.where(descends & (error <= GROWTH), 2 * share, share)
        share = jnp.where(stays, share / 2, share)
        theta = jax.tree.map(lambda a, b: jnp.where(descends, a, b), fine.theta, now.theta)
        return DescentState(
            jnp.where(descends | stays, now.end + length, now.end),
            theta,
            jnp.clip(share, SMALLEST_SHARE, LARGEST_SHARE),
            now.steps + jnp.where(descends, count, 0).astype(int),
            now.evaluations + walked.astype(int),
            now.undecided + (descends & ~agree),
            now.still,
            ~descends & ~stays,
        )


def _difference(problem: GramProblem, coarse: Linearisation, fine: Linearisation, tolerance):
    """Of two ends, in output gradients and in losses, in units of what is allowed; infinite where
    one is not finite.
    """
    gradients = norm(coarse.cotangent - fine.cotangent)
    allowed = tolerance * norm(fine.cotangent) + gradient_rounding(problem, fine)
    losses = jnp.abs(coarse.loss - fine.loss)
    allowed_loss = tolerance * jnp.abs(fine.loss) + linearisation_rounding(problem, fine)
    error = jnp.maximum(gradients / allowed, losses / allowed_loss)
    return jnp.where(jnp.isfinite(error), error, jnp.inf)


def euler(problem: GramProblem, theta: Parameters, size, count) -> Parameters:
    r"""`count` steps $\theta - h\,cJ^\top g$; slopes at kinks are those of descent, 0 for ReLU."""

    def step(_, theta):
        outputs, jacobian = problem.operator.linearise(theta)
        _, cotangent = problem.loss.value_and_gradient(outputs, problem.targets)
        pull = problem.operator.vjp(jacobian, cotangent)
        return {name: theta[name] - size * pull[name] for name in theta}

    return jax.lax.fori_loop(0, jnp.asarray(count, int), step, theta)
