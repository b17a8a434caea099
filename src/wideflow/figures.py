"""A figure as a description: panels of marks. The report renders it to PNG, PDF and to the page."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ._core.errors import check_choice

Numbers = Sequence[float | int] | np.ndarray

SCALES = ("linear", "log", "symlog")


def _array(values) -> np.ndarray:
    return np.asarray(values, dtype=float)


@dataclass(frozen=True, eq=False)
class Line:
    """A curve; `low` and `high` draw a band around it; one `group` is one colour and one legend entry."""

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
    """A scatter; `errors` are half lengths of vertical bars, `values` are shown in the colours of the panel's map."""

    x: Numbers
    y: Numbers
    label: str = ""
    errors: Numbers | None = None
    size: float | int = 5.0
    group: str | None = None
    values: Numbers | None = None


@dataclass(frozen=True, eq=False)
class HLine:
    """A horizontal reference line."""

    y: float | int
    label: str = ""
    dash: str = "dashed"


@dataclass(frozen=True, eq=False)
class VLine:
    """A vertical reference line, for instance a detected event."""

    x: float | int
    label: str = ""
    dash: str = "dashed"


@dataclass(frozen=True, eq=False)
class Bars:
    """Named bars."""

    names: Sequence[str] | np.ndarray
    heights: Numbers
    label: str = ""
    group: str | None = None


@dataclass(frozen=True, eq=False)
class Heatmap:
    """Values on a grid, rows along y."""

    x: Numbers
    y: Numbers
    values: Sequence[Numbers] | np.ndarray
    label: str = ""


Mark = Line | Points | HLine | VLine | Bars | Heatmap


@dataclass(frozen=True)
class Panel:
    """One pair of axes. `x` and `y` are axis labels, with units where there are any; `one_unit` draws both axes to one scale."""

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
    """Panels in reading order, `columns` beside each other; the groups or labels in `first` take the first colours, those in `muted` are grey."""

    title: str
    panels: Sequence[Panel]
    columns: int = 2
    caption: str = field(default="")
    first: tuple[str, ...] = ()
    muted: tuple[str, ...] = ()
