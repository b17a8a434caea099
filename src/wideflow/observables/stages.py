r"""Stage boundaries of li2020 as events detected on recorded curves (mean-field time).

| event | paper | detector |
|---|---|---|
| $T_1$, end of 1.1 | $\Theta(d\log d)$ | first $t$ with $c_2\ell_2 \le 0.02\cdot$floor |
| below floor | | first $t$ with $L <$ floor (an event for narrow networks only) |
| escape | | first $t$ after $T_1$ with $\ell_4 \le 0.9\,\ell_4(T_1)$ |
| $T_2$, end of 1.2 | $\Theta(d^2/\log d)$ | $L \le \frac12$ floor ("half") |
| $T_3$, end of 2.1 | $T_2 + \Theta(d\log d)$ | $L \le 0.1$ floor; or $\min_i\gamma_i \ge 1/(10\kappa d)$ where masses were recorded |
| $T_4$, end of 2.2 | $T_3 + \Theta(d^{1+10Q})$ | $L \le 0.01$ floor |

floor $= (1 - 3/\pi)\sum a^2$: the loss of the best fit of degree two.

On samples order 2 does not fall to that level but to a noise floor of its own; there (`noisy`)
$T_1$ is the first $t$ from which it has stopped falling: $\ell_2(t)$ is at most twice its median
over $[t, t+d]$. While it settles it falls at the rate $4b_2/d = 5.1/d$, by a factor of 13 over half
that window.
"""

import math

import numpy as np

from .._core.arrays import increasing, paired, real_values
from .._core.errors import (
    check_between,
    check_count,
    check_flag,
    check_number,
    check_positive,
)

__all__ = ["first_time", "late_exponent", "moment_decay_time", "stage_events"]

STAGES = {
    "T1": "end of stage 1.1",
    "T2": "end of stage 1.2",
    "T3": "end of stage 2.1",
    "T4": "end of stage 2.2",
}


def first_time(times, condition) -> float:
    """The first time at which `condition` holds, NaN if never.

    Args:
        times: of the records.
        condition: whether it holds at each.

    >>> first_time([0.0, 1.0, 2.0], [False, True, True])
    1.0
    """
    # a run that has only begun has no records yet
    times = np.asarray(real_values("times", times, "(time,)", empty=True))
    if len(times):
        times = increasing("times", times, strictly=False)
    met = real_values("condition", condition, f"({len(times)},)", empty=True)
    hits = np.flatnonzero(np.asarray(met))
    return float(times[hits[0]]) if hits.size else math.nan


def _stopped_falling(times, values, span: float | int) -> np.ndarray:
    """Where a curve is at most twice its median over the next `span`; false where the records do
    not reach so far.
    """
    stopped = np.zeros(len(times), dtype=bool)
    for i, start in enumerate(times):
        window = (times >= start) & (times <= start + span)
        if times[-1] >= start + span and window.sum() >= 3:
            stopped[i] = values[i] <= 2 * np.median(values[window])
    return stopped


def stage_events(
    times, losses, second, fourth, coefficients, masses=None, noisy: bool = False
) -> dict[str, float]:
    r"""The events of the table above, by name: "T1", "below_floor", "escape", "T2", "T3",
    "T3_masses", "T4".

    Args:
        times: mean-field times of the records.
        losses: population loss $L$.
        second, fourth: raw $\ell_2$ and $\ell_4$.
        coefficients: $a$.
        masses: $\gamma_i$ at every record, (record, direction), for "T3_masses".
        noisy: the run was on samples: order 2 settles at a noise floor (records at most $d/2$ apart
            are needed).
    """
    check_flag("noisy", noisy)
    t = np.asarray(real_values("times", times, "(time,)"), float)
    loss, l2, l4 = (
        np.asarray(real_values(name, values, f"({len(t)},)"), float)
        for name, values in (("losses", losses), ("second", second), ("fourth", fourth))
    )
    a = np.asarray(real_values("coefficients", coefficients, "(direction)"), float)
    if not np.all(a > 0):
        raise ValueError(f"`coefficients` must be positive, got {a.min():g} among them.")
    if masses is not None:
        masses = np.asarray(real_values("masses", masses, f"({len(t)}, {len(a)})"), float)
    floor = (1 - 3 / np.pi) * np.sum(a**2)
    # c_2 = 1/pi, the second coefficient of |z| (`abs_hermite_squares`)
    settled = l2 / np.pi <= 0.02 * floor
    if noisy:
        if np.max(np.diff(t), initial=0.0) > a.size / 2:
            raise ValueError(
                f"`times` must be at most d/2 = {a.size / 2:g} apart with `noisy=True`, got a "
                "step of "
                f"{np.max(np.diff(t)):g}: order 2 is not seen to settle. Record more often."
            )
        settled |= _stopped_falling(t, l2, a.size)
    events = {
        "T1": first_time(t, settled),
        "below_floor": first_time(t, loss < floor),
    }
    if math.isnan(events["T1"]):
        events["escape"] = math.nan
    else:
        reference = l4[np.searchsorted(t, events["T1"])]
        events["escape"] = first_time(t, (t >= events["T1"]) & (l4 <= 0.9 * reference))
    events |= {
        name: first_time(t, loss <= level * floor)
        for name, level in (("T2", 0.5), ("T3", 0.1), ("T4", 0.01))
    }
    if masses is not None:
        spread = a / a.sum() * a.size
        kappa = max(spread.max(), 1 / spread.min())
        events["T3_masses"] = first_time(
            t, np.min(masses, axis=1) >= a.sum() / (10 * kappa * a.size)
        )
    return events


def moment_decay_time(
    times, second_errors, zeroth_errors, features: int, level: float | int = 2.0
) -> float:
    r"""$T_1$ by the paper's own scaling (Lemma A.2, wide networks): $d^2\max_i|q_i| \le$ `level`
    and $d^2|z| \le$ `level`.

    Args:
        times: of the records.
        second_errors: $q_i$, shape (record, direction).
        zeroth_errors: $z$, shape (record,).
        features: $d$.
        level: of both, in units of $1/d^2$.
    """
    check_count("features", features)
    check_positive("level", level)
    n = len(increasing("times", times))
    second_errors = real_values("second_errors", second_errors, f"({n}, direction)")
    q = np.max(np.abs(np.asarray(second_errors)), axis=1)
    z = np.abs(np.asarray(real_values("zeroth_errors", zeroth_errors, f"({n},)")))
    return first_time(times, features**2 * np.maximum(q, z) <= level)


def late_exponent(times, losses, start: float | int, stop: float | int = math.inf) -> float:
    r"""The slope of $\log L$ on $\log\tau$ over the records in [`start`, `stop`] with a positive
    loss.

    Args:
        times: $\tau$ of the records, increasing.
        losses: $L$ at each.
        start, stop: the window of times.
    """
    t = increasing("times", times)
    loss = paired("losses", losses, "times", len(t))
    check_number("start", start)
    check_between("stop", stop, -math.inf, math.inf)
    keep = (t >= start) & (t <= stop) & (loss > 0)
    if keep.sum() < 2:
        raise ValueError(
            f"`start` and `stop` must leave at least two records, got {int(keep.sum())} in "
            f"[{start}, {stop}]."
        )
    return float(np.polyfit(np.log(t[keep]), np.log(loss[keep]), 1)[0])
