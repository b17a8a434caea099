"""When to record: every so many steps, on a logarithmic grid, or at given points."""

from dataclasses import dataclass

import numpy as np

from .._core.arrays import real_values
from .._core.errors import check_count, check_positive
from .arguments import MOST_STEPS

MOST_RECORDS = 10**8  # 800 MB for each recorded number


@dataclass(frozen=True)
class Logarithmic:
    """Records at 0 and then `per_decade` times per factor of ten, from `first` on.

    Args:
        per_decade: records a factor of ten.
        first: the first step, or time of a flow, after 0.
    """

    per_decade: int = 10
    first: float = 1.0

    def __post_init__(self):
        check_count("per_decade", self.per_decade)
        check_positive("first", self.first)


def record_grid(flow: bool, dynamics, steps, time, every) -> np.ndarray:
    """When a run records: its steps, or the times of a flow."""
    if flow:
        if steps is not None or time is None:
            raise ValueError(
                "a flow runs for `time=...`, not for `steps`; for steps use `GradientDescent`."
            )
        return record_times(every, time)
    if (steps is None) == (time is None):
        raise ValueError("give exactly one of `steps` and `time`.")
    if steps is None:
        rates = np.asarray(getattr(dynamics, "rate", np.nan))
        if not np.all(np.isfinite(rates)) or np.unique(rates).size != 1:
            raise ValueError(
                "`time` needs dynamics with one constant `rate`; give `steps` instead."
            )
        check_positive("time", time)
        check_count("time / rate", int(min(time / float(rates.flat[0]), 1e30)), 0, MOST_STEPS)
        steps = int(np.ceil(time / float(rates.flat[0]) * (1 - 1e-12)))
    return record_steps(every, steps)


def record_steps(every, steps) -> np.ndarray:
    """The recorded steps: strictly increasing, from 0 to `steps`."""
    check_count("steps", steps, least=0)
    if every is None:
        every = max(1, steps // 100)
    if isinstance(every, Logarithmic):
        grid = _logarithmic(every, float(steps))
        return np.unique(np.concatenate([[0], np.round(grid).astype(np.int64), [steps]]))
    if np.ndim(every) == 0:
        check_count("every", every)
        _check_records(steps / every)
        return np.unique(np.append(np.arange(0, steps + 1, every), steps))
    grid = np.unique(_whole_steps(every))
    if grid.size == 0 or grid[0] < 0 or grid[-1] > steps:
        raise ValueError(
            f"`every` must hold steps between 0 and `steps` = {steps}, got {list(grid)[:5]}..."
        )
    return np.unique(np.concatenate([[0], grid, [steps]]))


def record_times(every, time) -> np.ndarray:
    """The recorded times: strictly increasing, from 0 to `time`."""
    check_positive("time", time)
    if every is None:
        every = time / 100
    if isinstance(every, Logarithmic):
        return np.unique(np.concatenate([[0.0], _logarithmic(every, float(time)), [time]]))
    if np.ndim(every) == 0:
        check_positive("every", every)
        _check_records(time / every)
        count = int(np.floor(time / every * (1 + 1e-12)))
        return np.unique(np.concatenate([np.arange(count + 1) * every, [time]]))[: count + 2]
    grid = np.unique(np.asarray(real_values("every", every), np.float64))
    if grid[0] < 0 or grid[-1] > time:
        raise ValueError(f"`every` must hold times between 0 and `time` = {time}.")
    return np.unique(np.concatenate([[0.0], grid, [time]]))


def _logarithmic(schedule: Logarithmic, last: float) -> np.ndarray:
    if last <= schedule.first:
        return np.array([last], dtype=float)
    decades = np.log10(last / schedule.first)
    return schedule.first * 10 ** np.linspace(
        0, decades, max(2, int(decades * schedule.per_decade) + 1)
    )


def recording(steps: int, records: int) -> np.ndarray:
    """A geometric grid for the beginning joined with an even one for the end."""
    even = np.linspace(0, steps, records + 1)
    early = np.geomspace(1, max(steps, 2), records)
    return np.unique(np.concatenate([even, early]).round().astype(int).clip(0, steps))


def _check_records(count: float) -> None:
    """Refuses grids of records that no memory holds."""
    if not count <= MOST_RECORDS:
        raise ValueError(
            f"`every` asks for {count:.3g} records, more than {MOST_RECORDS:.0e}. "
            "Record less often, or on a `Logarithmic()` grid."
        )


def _whole_steps(every) -> np.ndarray:
    """Recorded steps given as a list: whole numbers."""
    try:
        values = np.asarray(every, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`every` must hold whole numbers of steps, got {every!r}.") from error
    if values.ndim != 1 or not np.all(values == np.floor(values)):
        raise ValueError(f"`every` must hold whole numbers of steps, got {every!r}.")
    return values.astype(np.int64)
