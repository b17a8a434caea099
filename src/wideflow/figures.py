"""A figure as a description: panels of marks. The report renders it to PNG, PDF and to the page."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ._core.errors import check_choice

__all__ = ["Bars", "FigureSpec", "HLine", "Heatmap", "Line", "Panel", "Points", "VLine"]

Numbers = Sequence[float | int] | np.ndarray

SCALES = ("linear", "log", "symlog")


def _array(values) -> np.ndarray:
    return np.asarray(values, dtype=float)


@dataclass(frozen=True, eq=False)
class Line:
    """A curve; `low` and `high` draw a band around it; one `group` is one colour and one legend
    entry.

    Args:
        x, y: the points, joined in order.
        label: the entry in the legend.
        dash: 'solid', 'dashed', 'dotted' or 'dashdot'.
    """

    x: Numbers
    y: Numbers
    label: str = ""
    low: Numbers | None = None
    high: Numbers | None = None
    dash: str = "solid"
    group: str | None = None

    def __post_init__(self):
        check_choice("dash", self.dash, ("solid", "dashed", "dotted", "dashdot"))
        if len(_array(self.x)) != len(_array(self.y)):
            raise ValueError(f"`x` and `y` of line {self.label!r} differ in length.")


@dataclass(frozen=True, eq=False)
class Points:
    """A scatter; `errors` are half lengths of vertical bars, `values` are shown in the colours of
    the panel's map.

    Args:
        x, y: the positions.
        label: the entry in the legend.
        size: the diameter of a marker, in points.
        group: points of one group share a colour.
    """

    x: Numbers
    y: Numbers
    label: str = ""
    errors: Numbers | None = None
    size: float | int = 5.0
    group: str | None = None
    values: Numbers | None = None


@dataclass(frozen=True, eq=False)
class HLine:
    """A horizontal reference line.

    Args:
        y: its height.
        label: the entry in the legend.
        dash: 'solid', 'dashed', 'dotted' or 'dashdot'.
    """

    y: float | int
    label: str = ""
    dash: str = "dashed"


@dataclass(frozen=True, eq=False)
class VLine:
    """A vertical reference line, for instance a detected event.

    Args:
        x: its position.
        label: the entry in the legend.
        dash: 'solid', 'dashed', 'dotted' or 'dashdot'.
    """

    x: float | int
    label: str = ""
    dash: str = "dashed"


@dataclass(frozen=True, eq=False)
class Bars:
    """Named bars.

    Args:
        names: one a bar, in order.
        heights: one a bar.
        label: the entry in the legend.
        group: bars of one group share a colour.
    """

    names: Sequence[str] | np.ndarray
    heights: Numbers
    label: str = ""
    group: str | None = None


@dataclass(frozen=True, eq=False)
class Heatmap:
    """Values on a grid, rows along y.

    Args:
        x: positions of the columns.
        y: positions of the rows.
        values: shape (row, column).
        label: of the colour bar.
    """

    x: Numbers
    y: Numbers
    values: Sequence[Numbers] | np.ndarray
    label: str = ""


Mark = Line | Points | HLine | VLine | Bars | Heatmap


@dataclass(frozen=True)
class Panel:
    """One pair of axes. `x` and `y` are axis labels, with units where there are any; `one_unit`
    draws both axes to one scale.

    Args:
        title: stands above the axes.
        marks: what is drawn: lines, points, bars, heat maps, reference lines.
        xscale, yscale: 'linear', 'log' or 'symlog'.
        note: small print below the axes.
    """

    title: str
    x: str
    y: str
    marks: Sequence[Mark]
    xscale: str = "linear"
    yscale: str = "linear"
    note: str = ""
    one_unit: bool = False

    def __post_init__(self):
        check_choice("xscale", self.xscale, SCALES)
        check_choice("yscale", self.yscale, SCALES)
        if not self.marks:
            raise ValueError(f"panel {self.title!r} is empty.")


@dataclass(frozen=True)
class FigureSpec:
    """Panels in reading order, `columns` beside each other; the groups or labels in `first` take
    the first colours, those in `muted` are grey.

    Args:
        title: stands above all panels.
        panels: at least one `Panel`.
        caption: stands below; says what is seen and from which run.
    """

    title: str
    panels: Sequence[Panel]
    columns: int = 2
    caption: str = field(default="")
    first: tuple[str, ...] = ()
    muted: tuple[str, ...] = ()
