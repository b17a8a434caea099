"""What both renderers share: colours, dashes, and which legend says what."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..figures import Bars, FigureSpec, Heatmap, HLine, Line, Mark, Panel, Points, VLine

# Okabe and Ito's colours, told apart under every common colour blindness; yellow is left out (too
# faint on white)
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F5AA8", "#6B6B6B")
REFERENCE = "#8A8A8A"
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "plus", "x", "star")


def entry(mark: Mark) -> str:
    """What the legend calls a mark; '' for marks that need no entry."""
    if isinstance(mark, Heatmap):
        return ""
    return mark.label or getattr(mark, "group", None) or ""


def colour_key(mark: Mark) -> str | None:
    """Marks with one key share a colour throughout the figure; None for reference lines, maps and
    what has a map's colours.
    """
    if isinstance(mark, HLine | VLine | Heatmap) or getattr(mark, "values", None) is not None:
        return None
    return mark.group or mark.label or ""


@dataclass(frozen=True)
class Look:
    """The colour and number of every key of a figure, and the entries that panels have in
    common.
    """

    numbers: Mapping[str, int]
    shared: tuple[str, ...]
    muted: tuple[str, ...] = ()

    def colour(self, mark: Mark) -> str:
        key = colour_key(mark)
        return (
            REFERENCE
            if key is None or key in self.muted
            else PALETTE[self.numbers[key] % len(PALETTE)]
        )

    def dash(self, mark: Mark, panel: Panel) -> str:
        """The mark's own; reference lines of one panel that would look alike take different ones,
        those that panels share the same in all.
        """
        if not isinstance(mark, HLine | VLine):
            return getattr(mark, "dash", "solid")
        names = list(
            dict.fromkeys(
                entry(m)
                for m in panel.marks
                if isinstance(m, HLine | VLine) and m.dash == mark.dash
            )
        )
        names.sort(
            key=lambda name: self.shared.index(name) if name in self.shared else len(self.shared)
        )
        order = [
            mark.dash,
            *(dash for dash in ("dashed", "dotted", "dashdot") if dash != mark.dash),
        ]
        return order[names.index(entry(mark)) % len(order)]

    def marker(self, mark: Mark) -> str:
        key = colour_key(mark)
        return MARKERS[0 if key is None else self.numbers[key] % len(MARKERS)]


def look(spec: FigureSpec) -> Look:
    """Colours in order of appearance, after `spec.first`; an entry in two panels or more goes to
    the figure's one legend.
    """
    marks = list(itertools.chain.from_iterable(panel.marks for panel in spec.panels))
    used = (key for mark in marks if (key := colour_key(mark)) is not None)
    keys = dict.fromkeys((*spec.first, *used))
    keys = [key for key in keys if key not in spec.muted] + [*spec.muted]
    places: dict[str, set[int]] = {}
    for number, panel in enumerate(spec.panels):
        for mark in panel.marks:
            if name := entry(mark):
                places.setdefault(name, set()).add(number)
    shared = tuple(name for name, where in places.items() if len(where) > 1)
    return Look({key: number for number, key in enumerate(keys)}, shared, spec.muted)


def ordered(panel: Panel) -> Iterator[Mark]:
    """Maps and bars first, then reference lines, then curves, then points on top."""
    rank = {Heatmap: 0, Bars: 1, HLine: 2, VLine: 2, Line: 3, Points: 4}
    return iter(sorted(panel.marks, key=lambda mark: rank[type(mark)]))


def map_range(panel: Panel) -> tuple[float, float]:
    """The smallest and the largest value that a panel shows by a map's colours."""
    shown = [
        m.values for m in panel.marks if isinstance(m, Heatmap | Points) and m.values is not None
    ]
    values = np.concatenate([np.ravel(np.asarray(v, float)) for v in shown])
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def edges(centres, scale: str) -> np.ndarray:
    """Borders of a map's cells, halfway between their centres on an axis of that scale."""
    c = np.log(np.asarray(centres, float)) if scale == "log" else np.asarray(centres, float)
    if len(c) == 1:
        borders = np.array([c[0] - 0.5, c[0] + 0.5])
    else:
        middle = (c[1:] + c[:-1]) / 2
        borders = np.concatenate([[2 * c[0] - middle[0]], middle, [2 * c[-1] - middle[-1]]])
    return np.exp(borders) if scale == "log" else borders
