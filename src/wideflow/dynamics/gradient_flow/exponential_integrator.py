r"""The Gram-matrix exponential flow: steps under an adaptive controller.

A step is accepted when its defect is below `tolerance` times the size of the output gradient *and* the loss does not rise: the loss is a Lyapunov function
of the flow, so a step that raises it, inside or at its end, beyond what rounding explains, is none. For kinked activations pre-activations that chatter about their kink
leave a defect of first order in the step that no step size removes faster; for steps below
$0.05/\lambda_{\max}(H\Theta)$ (in proportion less for tolerances below 1e-2) descent alone decides: the limit is the Filippov solution. Where no step
descends the solver says that it is stuck.

Where exponential steps fail again and again and the neurons' own curvature is fast against them, the step is tried again with the whole Hessian, and
so are the next ones.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..._core.trees import Parameters
from .commutator_free import ExponentialStep, SmoothStep
from .either_step import EitherStep, can_curve
from .filippov import KinkedStep
from .frozen_gram import has_spectrum
from .linearisation import GramProblem, Place
from .sliding_jacobian import HeldTangents
from .step_base import AbstractStep, AbstractTracedStep, Taken

GROW, SHRINK, SAFETY = 8.0, 0.2, 0.85
CURVED = 30  # steps with the whole Hessian before exponentials are tried again
FAILED = 4  # a failure weighs as much as so many successes
TROUBLE = 8  # from so much of it on the whole Hessian is used
NOISE = 64  # roundings in an output, in units of the machine precision
SHORTEST = 1e-10  # of 1/rate: where no longer step descends, none will


class GramState(eqx.Module):
    """The last step, from `before` at time `begin` to `taken.place` at time `end`; the length of the next.

    `still`: nothing moves any more; `stuck`: no step is good enough, however short.
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
    stuck: Array


class GramSolver(eqx.Module):
    """How to step; `kinked` if the activation has kinks."""

    tolerance: float = eqx.field(static=True)
    kinked: bool = eqx.field(static=True)

    def step(self, problem: GramProblem, curved: Int[Array, ""]) -> AbstractStep:
        if self.kinked and isinstance(problem.tangents, HeldTangents):
            return KinkedStep()
        if self.kinked or not has_spectrum(problem):
            return ExponentialStep()
        return EitherStep(curved > 0) if can_curve(problem) else SmoothStep()

    def init(self, problem: GramProblem, theta: Parameters, time) -> GramState:
        """At rest at `time`, before the first step."""
        place = problem.place(theta)
        size = 0.5 / largest_rate(problem, place)
        no, zero, time = jnp.zeros((), bool), jnp.zeros((), int), jnp.asarray(time, float)
        trace = self.step(problem, zero).no_trace(problem, place)
        taken = Taken(place, place.cotangent, place.loss, trace, zero)
        return GramState(time, time, size, place, taken, zero, zero, zero, zero, zero, no, no)

    def restart(self, problem: GramProblem, state: GramState, theta: Parameters, time) -> GramState:
        """`state` back at an earlier `time`, from `theta`, with all that it has counted."""
        place, time = problem.place(theta), jnp.asarray(time, float)
        no = jnp.zeros((), bool)
        taken = dataclasses.replace(state.taken, place=place, meant=place.cotangent)
        return dataclasses.replace(
            state, begin=time, end=time, before=place, taken=taken, still=no, stuck=no
        )

    def cuts(self, problem: GramProblem) -> bool:
        """Whether the path inside a step is unknown, so that steps have to end where one looks."""
        return not isinstance(self.step(problem, jnp.zeros((), int)), AbstractTracedStep)

    def advance(
        self, problem: GramProblem, state: GramState, stop, most_steps: int, exactly
    ) -> GramState:
        """Steps until `stop` is reached (`exactly`) or passed, or nothing moves, or none is good, or `most_steps` were tried."""
        rate = largest_rate(problem, state.taken.place)
        floor = 0.05 * min(1.0, self.tolerance / 1e-2) / rate if self.kinked else 0.0
        power = 1 / 2 if self.kinked else 1 / 4

        def still(place):
            """The gradient vanished: the outputs fit, or nothing pulls, to rounding."""
            g = place.cotangent
            pulled = _pulled_square(problem, place)
            epsilon = NOISE * jnp.finfo(g.dtype).eps
            limit = (epsilon * _norm(g)) ** 2 * rate / place.curvature.largest()
            return (_norm(g) <= _gradient_rounding(problem, place)) | (pulled <= limit)

        def going(now: GramState):
            return (now.end < stop) & (now.tried < state.tried + most_steps) & ~now.still & ~now.stuck

        def body(now: GramState) -> GramState:
            here, step = now.taken.place, self.step(problem, now.curved)
            cut = exactly & (now.size >= stop - now.end)
            h = jnp.where(cut, stop - now.end, now.size)
            new = step(problem, here, h)
            defect = _norm(new.place.cotangent - new.meant)
            allowed = self.tolerance * _norm(here.cotangent) + _gradient_rounding(problem, here)
            sane, error = jnp.isfinite(defect) & jnp.isfinite(new.place.loss), defect / allowed
            peak = jnp.maximum(new.place.loss, new.peak)
            descends = peak <= here.loss + _loss_rounding(problem, here)
            accurate = (error <= 1) | (h <= floor)
            good = sane & descends & accurate
            factor = jnp.clip(SAFETY * jnp.maximum(error, 1e-16) ** -power, SHRINK, GROW)
            factor = jnp.where(sane & descends, factor, jnp.minimum(factor, 0.5))
            size = jnp.where(sane & descends, jnp.maximum(factor * h, floor), factor * h)
            size = jnp.where(good & cut, jnp.maximum(size, now.size), size)
            failed = jax.lax.cond(
                good, lambda: jnp.zeros((), bool), lambda: step.should_curve(problem, here, h)
            )
            eased = jnp.maximum(now.trouble - (good & (now.curved == 0)), 0)
            trouble = jnp.where(failed, now.trouble + FAILED, eased)
            begins = failed & (trouble >= TROUBLE)
            end = jnp.where(cut, stop, now.end + h)
            reached = dataclasses.replace(
                now, begin=now.end, end=end, before=here, taken=new, steps=now.steps + 1,
                still=still(new.place),
            )  # fmt: skip
            kept = jax.tree.map(lambda a, b: jnp.where(good, a, b), reached, now)
            size = jnp.where(begins, h, size)
            shortest = jnp.maximum(SHORTEST / rate, 2 * jnp.finfo(h.dtype).eps * kept.end)
            return dataclasses.replace(
                kept, size=size, tried=now.tried + 1, passes=now.passes + new.passes,
                curved=jnp.where(begins, CURVED, jnp.maximum(now.curved - 1, 0)),
                trouble=jnp.minimum(trouble, TROUBLE - 1), stuck=~(size > shortest),
            )  # fmt: skip

        place = state.taken.place
        begin = dataclasses.replace(
            state,
            still=state.still | still(place),
            stuck=state.stuck | ~jnp.isfinite(rate) | ~jnp.isfinite(place.loss),
        )
        return jax.lax.while_loop(going, body, begin)

    def between(self, problem: GramProblem, state: GramState, time) -> Parameters:
        """The parameters at a `time` of the last step; those at its end beyond it."""
        step = self.step(problem, state.curved)
        at_end = state.taken.place.theta
        if not isinstance(step, AbstractTracedStep):
            return at_end
        size = jnp.where(state.end > state.begin, state.end - state.begin, 1.0)
        part = jnp.clip(time - state.begin, 0.0, size)
        inside = lambda: step.between(problem, state.before, state.taken, size, part)
        return jax.lax.cond(time < state.end, inside, lambda: at_end)


def output_rounding(outputs, targets) -> Float[Array, ""]:
    """The rounding error of the outputs, as a norm over samples."""
    scale = _norm(jnp.abs(outputs) + jnp.abs(targets))
    return NOISE * jnp.finfo(scale.dtype).eps * scale


def loss_rounding(outputs, targets, loss, cotangent, largest) -> Float[Array, ""]:
    r"""What it makes of the loss: $(|g| + |H|\epsilon)\,\epsilon$ for outputs that are $\epsilon$ off, and the rounding of the sum itself."""
    error = output_rounding(outputs, targets)
    return (_norm(cotangent) + largest * error) * error + NOISE * jnp.finfo(error.dtype).eps * jnp.abs(loss)  # fmt: skip


def _gradient_rounding(problem: GramProblem, place: Place):
    return place.curvature.largest() * output_rounding(place.outputs, problem.targets)


def _loss_rounding(problem: GramProblem, place: Place):
    p = place
    return loss_rounding(p.outputs, problem.targets, p.loss, p.cotangent, p.curvature.largest())


def largest_rate(problem: GramProblem, place: Place, iterations: int = 6) -> Float[Array, ""]:
    r"""$\lambda_{\max}(\Theta)\,\lambda_{\max}(H)$, the fastest decay, from below by a few power iterations; never 0."""

    product = problem.product_map((1.0,), (place,))

    def body(_, v):
        new = product(v)
        size = _norm(new)
        return jnp.where(size > 0, new / jnp.where(size > 0, size, 1.0), v)

    # twice as much of the one as of the other, so that the start is never 0: for one sample they may point against each other
    g, ones = place.cotangent, jnp.ones_like(place.cotangent)
    v = 2 * ones / _norm(ones) + g / _positive(_norm(g))
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
