"""When to record: every so many steps, on a logarithmic grid, or at given points."""

from dataclasses import dataclass

import numpy as np

from .._core.arrays import real_values
from .._core.errors import check_count, check_positive
from ..training.arguments import check_records, whole_steps


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
        check_records(steps / every)
        return np.unique(np.append(np.arange(0, steps + 1, every), steps))
    grid = np.unique(whole_steps(every))
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
        check_records(time / every)
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
