r"""Stage times of the reduced flow as roots of event functions along the integration."""

import math

import equinox as eqx
import jax.numpy as jnp

from ...._core.errors import check_flag, check_positive
from ...._core.precision import double
from ..laws.base import AbstractRadialLaw
from ..laws.stage_times import StageTimes
from ..laws.thresholds import as_thresholds
from .field import ReducedState, reduced_loss
from .flow import check_solver, gave_up, integrate, start_state

__all__ = ["reduced_stages", "time_to_loss"]


@double
def reduced_stages(
    law: AbstractRadialLaw,
    alpha,
    w,
    b,
    *,
    clip,
    epsilon: float,
    constant: float = 1.0,
    horizon: float = 1e5,
    stage_two: bool = True,
    rtol: float = 1e-11,
    atol: float = 1e-14,
    max_steps: int = 100_000,
) -> StageTimes:
    r"""Stage times $T_{1.1}, T_{1.2}, T_1, T_2$ of the clipped reduced flow (Section 4; definitions
    in `StageTimes`).

    Args:
        law, alpha, w, b, clip, rtol, atol, max_steps: as for `reduced_flow`; `clip` is needed, as
            $T_1$ refers to $R_{v_2}$.
        epsilon: the loss that ends Stage 2.
        constant: $C_1$ of the level $C_1/R_{v_2}$.
        horizon: latest time to look at.
        stage_two: whether to go on to $T_2$ after $T_1$.
    """
    check_positive("epsilon", epsilon)
    check_positive("constant", constant)
    check_positive("horizon", horizon)
    check_flag("stage_two", stage_two)
    check_solver(rtol, atol, max_steps)
    clip = as_thresholds(clip)
    if math.isinf(clip.weight):
        raise ValueError(
            "`clip` must bound the second-layer weights, got an infinite bound. The end of Stage "
            "1 is -mean(w) = C_1 / bound."
        )
    start, _ = start_state(law, alpha, w, b, clip)

    def run(kind: str, level: float, time: float, state: ReducedState):
        if not math.isfinite(time):
            return math.inf, state
        if float(_gap(law, state, _EVENTS.index(kind), level)) <= 0:
            return time, state
        return _event_time(law, state, time, horizon, clip, kind, level, (rtol, atol), max_steps)

    level = constant / clip.weight
    t11, at11 = run("signs", 0.0, 0.0, start)
    t12, at12 = run("mean", law.d * spread(at11), t11, at11)
    t1, at1 = run("mean", level, t12, at12)
    level_time, _ = run("mean", level, 0.0, start)
    t2 = loss_time = math.inf
    if stage_two:
        t2, _ = run("loss", epsilon, t1, at1)
        loss_time, _ = run("loss", epsilon, t11, at11)
    return StageTimes(t11, t12, t1, t2, level_time, loss_time, at1 if math.isfinite(t1) else None)


@double
def time_to_loss(
    law: AbstractRadialLaw,
    alpha,
    w,
    b,
    epsilon: float,
    *,
    clip=None,
    horizon: float = 1e6,
    rtol: float = 1e-11,
    atol: float = 1e-14,
    max_steps: int = 100_000,
) -> float:
    r"""First time at which the reduced flow has $L \le$ `epsilon`; infinite if not before
    `horizon`.

    Args:
        law, alpha, w, b, clip, rtol, atol, max_steps: as for `reduced_flow`.
        epsilon: the level of the loss.
        horizon: latest time to look at.

    Raises:
        ValueError: if `max_steps` end before the level or the horizon: then the time is unknown.
    """
    check_positive("epsilon", epsilon)
    check_positive("horizon", horizon)
    check_solver(rtol, atol, max_steps)
    clip = as_thresholds(clip)
    start, _ = start_state(law, alpha, w, b, clip)
    if float(reduced_loss(law, start)) <= epsilon:
        return 0.0
    tolerances = (rtol, atol)
    return _event_time(law, start, 0.0, horizon, clip, "loss", epsilon, tolerances, max_steps)[0]


def spread(state: ReducedState) -> float:
    r"""$\delta_2 = \max_{j,l} \lVert (w_j, b_j) - (w_l, b_l) \rVert$."""
    points = jnp.stack([state.w, state.b], axis=1)
    return float(jnp.linalg.norm(points[:, None] - points[None], axis=-1).max())


_EVENTS = ("signs", "mean", "loss")


def _gap(law, state: ReducedState, kind, level):
    """Positive before the event of number `kind`, zero at it; one program serves all events."""
    loss = jnp.minimum(reduced_loss(law, state), 1e6)
    return jnp.stack([jnp.max(state.w) - level, jnp.mean(state.w) + level, loss - level])[kind]


def _event_time(law, state, begin, horizon, clip, kind: str, level, tolerances, max_steps: int):
    """Time and state of the event, or infinity and the state at the horizon; a solver that gives up
    raises.
    """
    number, event = lambda x: jnp.asarray(x, float), jnp.asarray(_EVENTS.index(kind))
    reached, stopped, at, state = _until(
        law,
        state,
        clip,
        event,
        number(begin),
        number(horizon),
        number(level),
        tolerances,
        max_steps,
    )
    if not (bool(reached) or bool(stopped)):
        raise gave_up(max_steps, horizon)
    return (float(at) if bool(reached) else math.inf), state


@eqx.filter_jit
def _until(law, state, clip, kind, start, horizon, level, tolerances, max_steps):
    from ...._core.solvers import diffrax, optimistix

    def condition(t, y, args, **_):
        return _gap(law, y, kind, level)

    # bisection: Newton's method does not converge where the loss bends inside a step, and its
    # failure looks like "never"
    event = diffrax.Event(condition, optimistix.Bisection(rtol=1e-12, atol=1e-14))
    solution = integrate(
        law,
        state,
        start,
        horizon,
        clip,
        rtol=tolerances[0],
        atol=tolerances[1],
        max_steps=max_steps,
        event=event,
    )
    reached = solution.result == diffrax.RESULTS.event_occurred
    stopped = solution.result == diffrax.RESULTS.successful
    assert solution.ts is not None  # by default the end is saved
    assert solution.ys is not None
    return reached, stopped, solution.ts[-1], ReducedState(*(leaf[-1] for leaf in solution.ys))
