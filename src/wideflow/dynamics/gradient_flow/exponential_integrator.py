r"""The Gram-matrix exponential flow: steps under an adaptive controller that no recording time cuts.

A step is accepted when its defect is below `tolerance` times the size of the output gradient. For kinked activations pre-activations
that chatter about their kink leave a defect of first order in the step that no step size removes faster; steps below
$0.05/\lambda_{\max}(H\Theta)$ (in proportion less for tolerances below 1e-2) are therefore always accepted, so that the controller cannot stall:
the limit is the Filippov solution.

Where exponential steps fail again and again and the neurons' own curvature is fast against them, the step is tried again with the whole Hessian, and
so are the next ones.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..._core.trees import Parameters
from .commutator_free import SmoothStep
from .either_step import EitherStep, can_curve
from .filippov import KinkedStep
from .linearisation import GramProblem, Place
from .sliding_jacobian import HeldTangents
from .step_base import AbstractStep, AbstractTracedStep, Taken

GROW, SHRINK, SAFETY = 8.0, 0.2, 0.85
CURVED = 30  # steps with the whole Hessian before exponentials are tried again
FAILED = 4  # a failure weighs as much as so many successes
TROUBLE = 8  # from so much of it on the whole Hessian is used
NOISE = 64  # roundings in an output, in units of the machine precision


class GramState(eqx.Module):
    """The last step, from `before` at time `begin` to `taken.place` at time `end`; the length of the next; whether nothing moves any more.

    `curved` counts the steps for which the whole Hessian is still to be used; `trouble` weighs how often exponentials failed of late.
    """

    begin: Float[Array, ""]
    end: Float[Array, ""]
    size: Float[Array, ""]
    before: Place
    taken: Taken
    steps: Int[Array, ""]
    tried: Int[Array, ""]
    passes: Int[Array, ""]
    curved: Int[Array, ""]
    trouble: Int[Array, ""]
    still: Array


class GramSolver(eqx.Module):
    """How to step; `kinked` if the activation has kinks."""

    tolerance: float = eqx.field(static=True)
    kinked: bool = eqx.field(static=True)

    def step(self, problem: GramProblem, curved: Int[Array, ""]) -> AbstractStep:
        if self.kinked:
            return KinkedStep() if isinstance(problem.tangents, HeldTangents) else SmoothStep()
        return EitherStep(curved > 0) if can_curve(problem) else SmoothStep()

    def init(self, problem: GramProblem, theta: Parameters, time) -> GramState:
        """At rest at `time`, before the first step."""
        place = problem.place(theta)
        size = 0.5 / largest_rate(problem, place)
        zero, time = jnp.zeros((), int), jnp.asarray(time, float)
        trace = self.step(problem, zero).no_trace(problem, place)
        taken = Taken(place, place.cotangent, trace, zero)
        return GramState(
            time, time, size, place, taken, zero, zero, zero, zero, zero, jnp.zeros((), bool)
        )

    def advance(
        self, problem: GramProblem, state: GramState, stop, most_steps: int, exactly: bool = False
    ) -> GramState:
        """Steps until `stop` is reached (`exactly`) or passed, or nothing moves, or `most_steps` were tried."""
        rate = largest_rate(problem, state.taken.place)
        floor = 0.05 * min(1.0, self.tolerance / 1e-2) / rate if self.kinked else 0.0
        power = 1 / 2 if self.kinked else 1 / 4
        epsilon = NOISE * jnp.finfo(problem.targets.dtype).eps

        def noise(place):
            scale = _norm(jnp.abs(place.outputs) + jnp.abs(problem.targets))
            return epsilon * place.curvature.largest() * scale

        def still(place):
            """The gradient vanished: the outputs fit, or nothing pulls, to rounding."""
            g = place.cotangent
            pulled = _pulled_square(problem, place)
            limit = (epsilon * _norm(g)) ** 2 * rate / place.curvature.largest()
            return (_norm(g) <= noise(place)) | (pulled <= limit)

        def going(now: GramState):
            return (now.end < stop) & (now.tried < state.tried + most_steps) & ~now.still

        def body(now: GramState) -> GramState:
            here, step = now.taken.place, self.step(problem, now.curved)
            h = jnp.minimum(now.size, stop - now.end) if exactly else now.size
            new = step(problem, here, h)
            defect = _norm(new.place.cotangent - new.meant)
            allowed = self.tolerance * _norm(here.cotangent) + noise(here)
            sane, error = jnp.isfinite(defect), defect / allowed
            good = sane & ((error <= 1) | (h <= floor))
            factor = jnp.clip(SAFETY * jnp.maximum(error, 1e-16) ** -power, SHRINK, GROW)
            factor = jnp.where(sane, factor, 0.5)
            failed = jax.lax.cond(
                good, lambda: jnp.zeros((), bool), lambda: step.should_curve(problem, here, h)
            )
            eased = jnp.maximum(now.trouble - (good & (now.curved == 0)), 0)
            trouble = jnp.where(failed, now.trouble + FAILED, eased)
            begins = failed & (trouble >= TROUBLE)
            reached = dataclasses.replace(
                now, begin=now.end, end=now.end + h, before=here, taken=new, steps=now.steps + 1,
                still=still(new.place),
            )  # fmt: skip
            kept = jax.tree.map(lambda a, b: jnp.where(good, a, b), reached, now)
            return dataclasses.replace(
                kept, size=jnp.where(begins, h, jnp.maximum(factor * h, floor)),
                tried=now.tried + 1, passes=now.passes + new.passes,
                curved=jnp.where(begins, CURVED, jnp.maximum(now.curved - 1, 0)),
                trouble=jnp.minimum(trouble, TROUBLE - 1),
            )  # fmt: skip

        begin = dataclasses.replace(state, still=state.still | still(state.taken.place))
        return jax.lax.while_loop(going, body, begin)

    def between(
        self, problem: GramProblem, state: GramState, time, most_steps: int
    ) -> tuple[Parameters, Int[Array, ""]]:
        """The parameters at a `time` of the last step, those at its end beyond it; and the forward passes that this took."""
        size = jnp.where(state.end > state.begin, state.end - state.begin, 1.0)
        part = jnp.clip(time - state.begin, 0.0, size)
        step = self.step(problem, state.curved)

        def inside():
            if not isinstance(step, AbstractTracedStep):
                return self._retraced(problem, state, part, most_steps)
            theta = step.between(problem, state.before, state.taken, size, part)
            return theta, jnp.asarray(step.inner_passes(problem, state.taken))

        at_end = lambda: (state.taken.place.theta, jnp.zeros((), int))
        return jax.lax.cond(time < state.end, inside, at_end)

    def _retraced(self, problem, state: GramState, part, most_steps):
        """By steps of their own, under the same control: what a long step may miss, a shorter one from the same place may not."""
        place, zero = state.before, jnp.zeros(())
        taken = dataclasses.replace(state.taken, place=place, meant=place.cotangent)
        start = dataclasses.replace(
            state, begin=zero, end=zero, size=part, taken=taken, passes=jnp.zeros((), int), still=jnp.zeros((), bool)
        )  # fmt: skip
        moved = self.advance(problem, start, part, most_steps, exactly=True)
        return moved.taken.place.theta, moved.passes


def largest_rate(problem: GramProblem, place: Place, iterations: int = 6) -> Float[Array, ""]:
    r"""$\lambda_{\max}(\Theta)\,\lambda_{\max}(H)$, the fastest decay, from below by a few power iterations; never 0."""

    product = problem.product_map((1.0,), (place,))

    def body(_, v):
        new = product(v)
        size = _norm(new)
        return jnp.where(size > 0, new / jnp.where(size > 0, size, 1.0), v)

    v = jnp.ones_like(place.cotangent) + place.cotangent / _positive(_norm(place.cotangent))
    v = jax.lax.fori_loop(0, iterations, body, v / _norm(v))
    rate = _norm(product(v)) * place.curvature.largest()
    return _positive(rate)


def _pulled_square(problem: GramProblem, place: Place) -> Float[Array, ""]:
    r"""$g^\top\Theta g$, the speed of the loss."""
    g = place.cotangent
    if place.gram is not None:
        return jnp.vdot(g.ravel(), place.gram @ g.ravel())
    return jnp.vdot(g, problem.product((1.0,), (place,), g))


def _positive(x):
    return jnp.where(x > 0, x, jnp.finfo(x.dtype).tiny ** 0.5)


def _norm(v):
    return jnp.sqrt(jnp.sum(v**2))
