r"""The reduced flow of the depth-separation learner at infinite width, through Diffrax."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...._core.arrays import real_array
from ...._core.errors import check_count, check_kind, check_nonnegative, check_positive
from ...._core.precision import AbstractResult, double
from ..laws.base import AbstractRadialLaw, c_gamma
from ..laws.thresholds import Thresholds, as_thresholds
from .field import ReducedState, reduced_field, reduced_loss

__all__ = ["ReducedPath", "alpha_of_norm", "reduced_flow"]


class ReducedPath(AbstractResult):
    r"""States of the reduced flow at `time`; `w` and `b` have a last axis `width` unless they were
    given as numbers.

    Attributes:
        alpha: $\alpha$, shape (time,).
        loss: $L$, shape (time,).
        steps: how many the solver took.
    """

    time: Float[Array, " time"]
    alpha: Float[Array, " time"]
    w: Float[Array, "time ..."]
    b: Float[Array, "time ..."]
    loss: Float[Array, " time"]
    steps: int

    @property
    def final(self) -> ReducedState:
        """The last state."""
        return ReducedState(self.alpha[-1], self.w[-1], self.b[-1])


@double
def reduced_flow(
    law: AbstractRadialLaw,
    alpha,
    w,
    b,
    time,
    *,
    clip=None,
    rate: float | None = None,
    rtol: float = 1e-11,
    atol: float = 1e-14,
    max_steps: int = 100_000,
) -> ReducedPath:
    r"""The infinite-width learner from $(\alpha, w, b)$ on, under gradient flow on the population
    loss.

    The loss is $L = \frac12 E(f_* - f)^2$ and every neuron moves with its mean-field gradient
    (neuron factors $m_1, m_2$). One neuron $(\alpha, w, b)$ with $w < 0 < b$ is the system of
    Section 4; several are the particles of a second layer of finite width over a first layer of
    infinite width.

    Args:
        law: law of the radius; its `d` sets $g = C_\Gamma/\sqrt d$.
        alpha: $\alpha = g\, \mathrm{mean} \lVert w_1 \rVert^2 > 0$; see `alpha_of_norm`.
        w: second-layer weights, a number or (width,).
        b: second-layer biases, of the same shape.
        time: end, or increasing times to report.
        clip: None, or the three projection radii $(R_{v_1}, R_{v_2}, R_{r_2})$ (`Thresholds`).
        rate: if given, explicit Euler steps of this length instead of the flow.
        rtol, atol: tolerances of the adaptive solver (Tsit5), per step and component.
        max_steps: most steps of the solver, rejected ones included.

    Raises:
        ValueError: without projections on a heavy-tailed law, if some weight is not negative: the
            network then does not vanish at infinity and its gradient is infinite. Also where the
            solver gives up before the last time.

    Example:
        >>> from wideflow.papers.ren2023.limits import BesselLaw
        >>> path = reduced_flow(BesselLaw(10), 0.2, -0.8, 0.5, 40.0)
        >>> round(float(path.alpha[-1]), 8), round(float(path.loss[-1]), 8)
        (0.41048983, 0.00430636)
    """
    clip = as_thresholds(clip)
    state, scalar = start_state(law, alpha, w, b, clip)
    times = jnp.atleast_1d(real_array("time", time, "()", "(time)").astype(float))
    check_solver(rtol, atol, max_steps)
    if not (bool(jnp.all(jnp.diff(times) > 0)) and float(times[0]) >= 0):
        raise ValueError(f"`time` must be a finite end or increasing times from 0 on, got {time}.")
    if rate is not None:
        check_positive("rate", rate, remedy="For its limit leave `rate` out.")
    length = (
        None if rate is None else np.asarray(float(rate))
    )  # an array: one program for all rates
    states, steps, good = _solve(law, state, times, clip, length, rtol, atol, max_steps)
    if not bool(good):
        raise gave_up(max_steps, float(times[-1]))
    losses = _losses(law, states)
    shape = (lambda x: x[:, 0]) if scalar else (lambda x: x)
    return ReducedPath(times, states.alpha, shape(states.w), shape(states.b), losses, int(steps))


def start_state(law, alpha, w, b, clip: Thresholds) -> tuple[ReducedState, bool]:
    """Checked start as arrays, and whether the second layer was given as two numbers."""
    check_kind("law", law, AbstractRadialLaw, "a radial law such as `BesselLaw(d)`")
    check_positive("alpha", alpha, "From a norm: `alpha_of_norm(d, norm)`.")
    alpha = jnp.asarray(alpha, float)
    w, b = (real_array(name, value).astype(float) for name, value in (("w", w), ("b", b)))
    if w.shape != b.shape or w.ndim > 1:
        raise ValueError(
            f"`w` and `b` must be two numbers or two vectors of one length, got shapes {w.shape} "
            f"and {b.shape}."
        )
    if law.tail > 0 and math.isinf(sum(clip)) and not bool(jnp.all(w < 0)):
        raise ValueError(
            f"`w` must be negative on a heavy-tailed law, got {float(w.max())} at most: the "
            "network would not vanish "
            "at infinity and its gradient is infinite. Pass three finite `clip` bounds, or "
            "`Truncated(law, radius)`."
        )
    return ReducedState(alpha, jnp.atleast_1d(w), jnp.atleast_1d(b)), w.ndim == 0


def check_solver(rtol, atol, max_steps) -> None:
    check_positive("rtol", rtol)
    check_nonnegative("atol", atol)
    check_count("max_steps", max_steps)


def alpha_of_norm(d: int, norm: float) -> float:
    r"""$\alpha = (C_\Gamma/\sqrt d) \lVert v_1 \rVert^2$ of a first layer on the sphere of radius
    `norm`.

    Args:
        d: the dimension of the inputs.
        norm: $\lVert v_1\rVert$.
    """
    check_positive("norm", norm)
    return c_gamma(d) / math.sqrt(d) * norm**2


def gave_up(max_steps: int, time: float) -> ValueError:
    """The error of a solver that ran out of steps: its answer is unknown, not infinite."""
    return ValueError(
        f"`max_steps` = {max_steps} solver steps did not reach time {time:g}; allow more steps, "
        "an earlier end "
        "or larger tolerances."
    )


def integrate(
    law,
    state,
    start,
    stop,
    clip: Thresholds,
    *,
    rate=None,
    rtol=1e-11,
    atol=1e-14,
    max_steps=100_000,
    **options,
):
    """Diffrax on the reduced field; `options` (`saveat`, `event`) pass through.

    The field is evaluated at the nearest state of its domain (`_inside`): a trial stage may leave
    the domain, and one NaN there would make the next step length NaN and every later step a
    rejection.
    """
    from ...._core.solvers import diffrax

    field = lambda y: reduced_field(law, _inside(law, y, clip), clip)
    term = diffrax.ODETerm(lambda t, y, args: field(y))
    if rate is None:
        solver, control = diffrax.Tsit5(), diffrax.PIDController(rtol=rtol, atol=atol)
        first = jnp.minimum(_first_step(state, field(state), atol), 0.1 * (stop - start))
    else:
        solver, control, first = diffrax.Euler(), diffrax.ConstantStepSize(), rate
    return diffrax.diffeqsolve(
        term,
        solver,
        start,
        stop,
        first,
        state,
        stepsize_controller=control,
        max_steps=max_steps,
        throw=False,
        **options,
    )


def _first_step(state: ReducedState, speed: ReducedState, atol: float):
    r"""A hundredth of the shortest time in which a component would double.

    All components count: where $\dot w$ happens to vanish, $\alpha$ and $b$ still move. A second
    layer that starts next to zero moves on the scale of its own size, but nothing below the
    tolerance matters.
    """
    times = [
        jnp.min(jnp.maximum(jnp.abs(y), 1e3 * atol) / jnp.maximum(jnp.abs(v), 1e-12))
        for y, v in zip(state, speed, strict=True)
    ]
    return 0.01 * jnp.min(jnp.stack(times))


def _inside(law, state: ReducedState, clip: Thresholds) -> ReducedState:
    r"""The nearest state at which the field is finite.

    $\alpha > 0$ always; on a heavy-tailed law without all three projections also $w < 0$. The flow
    leaves neither: $\dot\alpha$ is proportional to $\alpha$, and as $w \to 0^-$ the far samples,
    where $f > f_* = 0$, push $w$ down with infinite strength.
    """
    alpha = jnp.clip(state.alpha, 1e-30, 1e30)
    highest = -1e-30 if law.tail > 0 and math.isinf(sum(clip)) else 1e30
    return ReducedState(alpha, jnp.clip(state.w, -1e30, highest), jnp.clip(state.b, -1e30, 1e30))


@eqx.filter_jit
def _solve(law, state, times, clip, rate, rtol, atol, max_steps):
    from ...._core.solvers import diffrax

    solution = integrate(
        law,
        state,
        0.0,
        times[-1],
        clip,
        rate=rate,
        rtol=rtol,
        atol=atol,
        max_steps=max_steps,
        saveat=diffrax.SaveAt(ts=times),
    )
    good = solution.result == diffrax.RESULTS.successful
    assert solution.ys is not None  # `saveat` asks for them
    return solution.ys, solution.stats["num_accepted_steps"], good


@eqx.filter_jit
def _losses(law, states):
    return jax.lax.map(lambda state: reduced_loss(law, state), states)
