r"""The Gram-matrix exponential flow: steps of `gram_step` under an adaptive controller.

A step is accepted when its defect is below `tolerance` times the size of the output gradient. For kinked activations pre-activations
that chatter about their kink leave a defect of first order in the step that no step size removes faster; steps below
$0.05/\lambda_{\max}(H\Theta)$ (in proportion less for tolerances below 1e-2) are therefore always accepted, so that the controller cannot stall:
the limit is the Filippov solution.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .._core.trees import Parameters
from .gram_step import GramProblem, Place, kinked_step, smooth_step

GROW, SHRINK, SAFETY = 8.0, 0.2, 0.85
NOISE = 64  # roundings in an output, in units of the machine precision


class Progress(eqx.Module):
    """Where a leg of the flow stands."""

    time: Float[Array, ""]
    size: Float[Array, ""]
    place: Place
    steps: Int[Array, ""]
    tried: Int[Array, ""]
    stationary: Array


def advance_by_gram(
    problem: GramProblem, theta: Parameters, start, stop, size, *, tolerance: float, kinked: bool,
    structured: bool, most_steps: int,
) -> Progress:  # fmt: skip
    """From `start` to `stop`, or until nothing moves, or until `most_steps` were tried.

    Args:
        size: the first step; the last one of the leg before, or NaN.
        kinked: whether the activation has kinks. structured: whether its slopes can be averaged.
    """
    step = kinked_step if kinked and structured else smooth_step
    power = 1 / 2 if kinked else 1 / 4
    place = problem.place(theta)
    rate = largest_rate(problem, place)
    floor = 0.05 * min(1.0, tolerance / 1e-2) / rate if kinked else 0.0
    epsilon = NOISE * jnp.finfo(place.outputs.dtype).eps

    def noise(place):
        scale = _norm(jnp.abs(place.outputs) + jnp.abs(problem.targets))
        return epsilon * place.curvature.largest() * scale

    def still(place):
        """The gradient vanished: the outputs fit, or nothing pulls, to rounding."""
        g = place.cotangent
        pulled = _pulled_square(problem, place)
        limit = (epsilon * _norm(g)) ** 2 * rate / place.curvature.largest()
        return (_norm(g) <= noise(place)) | (pulled <= limit)

    def going(now: Progress):
        return (now.time < stop) & (now.tried < most_steps) & ~now.stationary

    def body(now: Progress) -> Progress:
        left = stop - now.time
        last = now.size >= left
        h = jnp.where(last, left, now.size)
        new, meant = step(problem, now.place, h)
        defect = _norm(new.cotangent - meant)
        allowed = tolerance * _norm(now.place.cotangent) + noise(now.place)
        error = jnp.where(jnp.isfinite(defect), defect / allowed, jnp.inf)
        good = (error <= 1) | ((h <= floor) & jnp.isfinite(defect))
        factor = jnp.clip(SAFETY * jnp.maximum(error, 1e-16) ** -power, SHRINK, GROW)
        proposed = jnp.where(good & last, jnp.maximum(now.size, factor * h), factor * h)
        place = jax.tree.map(lambda a, b: jnp.where(good, a, b), new, now.place)
        time = jnp.where(good, jnp.where(last, stop, now.time + h), now.time)
        return Progress(
            time, jnp.maximum(proposed, floor), place, now.steps + good, now.tried + 1,
            good & still(place),
        )  # fmt: skip

    first = jnp.where(jnp.isfinite(size), size, 0.5 / rate)
    zero = jnp.zeros((), int)
    begin = Progress(start, jnp.asarray(first), place, zero, zero, still(place))
    return jax.lax.while_loop(going, body, begin)


def largest_rate(problem: GramProblem, place: Place, iterations: int = 6) -> Float[Array, ""]:
    r"""$\lambda_{\max}(\Theta)\,\lambda_{\max}(H)$, the fastest decay, from below by a few power iterations; never 0."""

    def body(_, v):
        new = problem.product((1.0,), (place,), v)
        size = _norm(new)
        return jnp.where(size > 0, new / jnp.where(size > 0, size, 1.0), v)

    v = jnp.ones_like(place.cotangent) + place.cotangent / _positive(_norm(place.cotangent))
    v = jax.lax.fori_loop(0, iterations, body, v / _norm(v))
    rate = _norm(problem.product((1.0,), (place,), v)) * place.curvature.largest()
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
