"""The answer in words; differences that are not significant are called that."""

import math
from collections.abc import Mapping

from .._core.counted import counted
from .answer import Answer
from .axes import Axis
from .comparisons import Interval

MOST_NOISE = math.log(1.3)  # beyond it "less than the noise" would say nothing (chosen)


def percent(log_ratio: Interval) -> str:
    """A log ratio of errors as '12 % ± 3 %', by size."""
    change = abs(math.expm1(log_ratio.mean))
    half = math.exp(log_ratio.mean) * math.sinh(min(log_ratio.half, 20.0))
    return f"{rounded(100 * change, 2)} % ± {rounded(100 * half, 1)} %"


def rounded(value: float, digits: int) -> str:
    """So many significant digits, never as a power of ten."""
    return f"{float(f'{value:.{digits}g}'):g}"


def number(value: float) -> str:
    return f"{value:.3g}"


def sentence(
    name: str,
    axes: tuple[Axis, Axis],
    verdict: Answer,
    fixed: Mapping[str, object],
    kind: str,
    limit: str,
    rich_limit: str = "",
) -> str:
    """One paragraph: lazy against rich, the best setting, its error, and what the axes bring.

    Args:
        name: of the data.
        fixed: settings that are no axes and worth saying.
        kind: what an error is a share of.
        limit: what the lazy limit is called.
        rich_limit: what the mean-field limit is called, if there is one.
    """
    where = ", ".join(f"{n} {v}" for n, v in fixed.items())
    parts = [f"On {name} {_lazy_against_rich(verdict)}{f' ({where})' if where else ''}."]
    place = ", ".join(f"{axis.name} = {verdict.setting[axis.name]:g}" for axis in axes)
    others = (
        ""
        if len(verdict.same) < 2
        else f"; {counted(len(verdict.same) - 1, 'other setting')} cannot be distinguished from it"
    )
    parts.append(
        f"Best at {place}, trained to a loss of {verdict.level:g} ({verdict.regime}){others}."
    )
    parts.append(
        f"Its error on rows that had no part in the selection is {number(verdict.error.mean)} ± "
        f"{verdict.error.half:.1g} ({kind}); "
        f"{_limit(verdict, limit)}."
    )
    if verdict.rich_limit is not None:
        parts.append(f"The other end, {rich_limit}, {_known(verdict.rich_limit)}.")
    parts += [text for axis in axes if (text := _axis(axis, verdict))]
    return " ".join(parts)


def _lazy_against_rich(verdict: Answer) -> str:
    difference = verdict.rich_over_lazy
    if difference is None:
        present = [r for r in ("lazy", "between", "rich") if r in verdict.regimes]
        only = " and ".join(present) or "no regime"
        return f"lazy and rich cannot be compared, for the plane holds {only} alone"
    if not difference.resolved:
        return "between rich and lazy there is no significant difference"
    winner, loser = ("rich", "lazy") if difference.mean < 0 else ("lazy", "rich")
    size = difference if difference.mean < 0 else Interval(-difference.mean, difference.half, 0)
    return f"{winner} beats {loser} by {percent(size)}"


def _limit(verdict: Answer, name: str) -> str:
    limit = f"{name} has {number(verdict.lazy_limit.mean)}"
    if not verdict.best_over_limit.resolved:
        return f"{limit}, no significant difference"
    better = "better" if verdict.best_over_limit.mean < 0 else "worse"
    return f"{limit}: the network is {better} by {percent(verdict.best_over_limit)}"


def _known(error: Interval) -> str:
    """An error with its interval, or that no level was reached."""
    if not error.count:
        return "reached no level"
    half = f" ± {error.half:.1g}" if error.count > 1 else ""
    return f"has {number(error.mean)}{half}"


def _axis(axis: Axis, verdict: Answer) -> str:
    """What lies beyond the best value of an axis that is a cost: width and depth."""
    enough = verdict.enough.get(axis.name)
    if axis.name not in ("width", "depth"):
        return ""
    word = {"width": "Wider", "depth": "Deeper"}[axis.name]
    if enough is None:
        return f"{word} still helps at {axis.values[-1]:g}, or the data do not suffice to tell."
    noise = f"{rounded(100 * math.expm1(min(enough.noise, 5.0)), 2)} %"
    if enough.noise > MOST_NOISE:
        return (
            f"What a larger {axis.name} brings is not known: differences below {noise} cannot be "
            "detected."
        )
    return f"{word} than {enough.value:g} brings less than the noise, {noise}."
