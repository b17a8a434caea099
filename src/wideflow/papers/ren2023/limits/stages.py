r"""Stage times of the reduced flow as roots of event functions along the integration."""

import math

import diffrax
import equinox as eqx
import jax.numpy as jnp
import optimistix

from ...._core.errors import check_positive
from ...._core.precision import double
from ..laws.base import AbstractRadialLaw
from ..laws.stage_times import StageTimes
from ..laws.thresholds import as_thresholds
from .field import ReducedState, reduced_loss
from .flow import integrate, start_state


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
    rtol: float = 1e-9,
    atol: float = 1e-13,
    max_steps: int = 100_000,
) -> StageTimes:
    r"""Stage times $T_{1.1}, T_{1.2}, T_1, T_2$ of the clipped reduced flow (Section 4; definitions in `StageTimes`).

    Args:
        law, alpha, w, b, clip, rtol, atol, max_steps: as for `reduced_flow`; `clip` is needed, as $T_1$ refers to $R_{v_2}$.
        epsilon: the loss that ends Stage 2.
        constant: $C_1$ of the level $C_1/R_{v_2}$.
        horizon: latest time to look at.
        stage_two: whether to go on to $T_2$ after $T_1$.
    """
    check_positive("epsilon", epsilon)
    check_positive("constant", constant)
    check_positive("horizon", horizon)
    clip = as_thresholds(clip)
    if math.isinf(clip.weight):
        raise ValueError(
            "`clip` must bound the second-layer weights, got an infinite bound. The end of Stage 1 is -mean(w) = C_1 / bound."
        )
    start, _ = start_state(law, alpha, w, b, clip)

    def run(kind: str, level: float, time: float, state: ReducedState):
        if not math.isfinite(time):
            return math.inf, state
        number = jnp.asarray(_EVENTS.index(kind))
        if float(_gap(law, state, number, level)) <= 0:
            return time, state
        begin, end, aim = (jnp.asarray(x, float) for x in (time, horizon, level))
        found, at, state = _until(
            law, state, begin, end, clip, number, aim, (rtol, atol), max_steps
        )
        return (float(at) if bool(found) else math.inf), state

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
    law: AbstractRadialLaw, alpha, w, b, epsilon: float, *, clip=None, horizon: float = 1e6
) -> float:
    r"""First time at which the reduced flow has $L \le$ `epsilon`; infinite if not before `horizon`."""
    check_positive("epsilon", epsilon)
    clip = as_thresholds(clip)
    start, _ = start_state(law, alpha, w, b, clip)
    if float(reduced_loss(law, start)) <= epsilon:
        return 0.0
    begin, end, aim = (jnp.asarray(x, float) for x in (0.0, horizon, epsilon))
    found, at, _ = _until(
        law,
        start,
        begin,
        end,
        clip,
        jnp.asarray(_EVENTS.index("loss")),
        aim,
        (1e-9, 1e-13),
        100_000,
    )
    return float(at) if bool(found) else math.inf


def spread(state: ReducedState) -> float:
    r"""$\delta_2 = \max_{j,l} \lVert (w_j, b_j) - (w_l, b_l) \rVert$."""
    points = jnp.stack([state.w, state.b], axis=1)
    return float(jnp.linalg.norm(points[:, None] - points[None], axis=-1).max())


_EVENTS = ("signs", "mean", "loss")


def _gap(law, state: ReducedState, kind, level):
    """Positive before the event of number `kind`, zero at it; one program serves all events."""
    loss = jnp.minimum(reduced_loss(law, state), 1e6)
    return jnp.stack([jnp.max(state.w) - level, jnp.mean(state.w) + level, loss - level])[kind]


@eqx.filter_jit
def _until(law, state, start, horizon, clip, kind, level, tolerances, max_steps):
    def condition(t, y, args, **_):
        return _gap(law, y, kind, level)

    event = diffrax.Event(condition, optimistix.Newton(rtol=1e-10, atol=1e-13))
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
    found = solution.result == diffrax.RESULTS.event_occurred
    return found, solution.ts[-1], ReducedState(*(leaf[-1] for leaf in solution.ys))
