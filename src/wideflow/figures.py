"""A figure as a description: panels of marks. The report renders it to PNG, PDF and to the page."""

import typing
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ._core.annotations import check_fields
from ._core.arrays import real_values
from ._core.errors import check_choice, check_count, check_kind, check_positive

__all__ = ["Bars", "FigureSpec", "HLine", "Heatmap", "Line", "Panel", "Points", "VLine"]

Numbers = Sequence[float | int] | np.ndarray

SCALES = ("linear", "log", "symlog")


DASHES = ("solid", "dashed", "dotted", "dashdot")


def _numbers(mark, name: str) -> np.ndarray:
    """A field of numbers, NaN where nothing is drawn."""
    return np.asarray(real_values(name, getattr(mark, name), finite=False, empty=True))


def _check_beside(mark, name: str, x: np.ndarray) -> None:
    """Numbers beside the points, where they are given: one a point."""
    if getattr(mark, name) is not None and _numbers(mark, name).shape[:1] != x.shape[:1]:
        raise ValueError(f"`{name}` of {mark.label!r} must have one number for each `x`.")


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
        check_fields(self)
        check_choice("dash", self.dash, DASHES)
        x, y = _numbers(self, "x"), _numbers(self, "y")
        if x.shape[:1] != y.shape[:1]:
            raise ValueError(f"`x` and `y` of line {self.label!r} differ in length.")
        for name in ("low", "high"):
            _check_beside(self, name, x)


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

    def __post_init__(self):
        check_fields(self)
        x, y = _numbers(self, "x"), _numbers(self, "y")
        if x.shape[:1] != y.shape[:1]:
            raise ValueError(f"`x` and `y` of points {self.label!r} differ in length.")
        check_positive("size", self.size)
        for name in ("errors", "values"):
            _check_beside(self, name, x)
        if self.errors is not None and np.any(_numbers(self, "errors") < 0):
            raise ValueError(f"`errors` of points {self.label!r} must not be negative.")


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

    def __post_init__(self):
        check_fields(self)
        check_choice("dash", self.dash, DASHES)


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

    def __post_init__(self):
        check_fields(self)
        check_choice("dash", self.dash, DASHES)


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

    def __post_init__(self):
        check_fields(self)
        for name in self.names:
            check_kind("names", name, str, "text, one a bar")
        if len(self.names) != len(_numbers(self, "heights")):
            raise ValueError(f"`names` and `heights` of bars {self.label!r} differ in length.")


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

    def __post_init__(self):
        check_fields(self)
        shape = len(_numbers(self, "y")), len(_numbers(self, "x"))
        if _numbers(self, "values").shape != shape:
            raise ValueError(f"`values` of heat map {self.label!r} must have shape {shape}.")


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
        check_fields(self)
        check_choice("xscale", self.xscale, SCALES)
        check_choice("yscale", self.yscale, SCALES)
        if len(self.marks) == 0:
            raise ValueError(f"`marks` of panel {self.title!r} must hold at least one, got none.")
        for mark in self.marks:
            check_kind("marks", mark, typing.get_args(Mark), "lines, points, bars or heat maps")


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

    def __post_init__(self):
        check_fields(self)
        check_count("columns", self.columns)
        for panel in self.panels:
            check_kind("panels", panel, Panel, "a `Panel`")


def __dir__() -> list[str]:
    return __all__  # completion shows what is this module's own
