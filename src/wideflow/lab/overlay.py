"""Two runs in one figure: the curves of the one laid over the panels of the other."""

from collections.abc import Sequence
from dataclasses import replace

from ..experiments.training_panels import NOW
from ..figures import FigureSpec, Heatmap, Line, Mark, Panel, Points


def beside(spec: FigureSpec, other: FigureSpec, name: str, *, muted: bool) -> FigureSpec:
    """`spec` with the solid curves and the nodes of `other` in every panel that both have, called
    `name`; grey where `muted`.
    """
    panels = {panel.title: panel for panel in other.panels}
    laid = [_laid(panel, panels.get(panel.title), name) for panel in spec.panels]
    return replace(spec, panels=laid, muted=(*spec.muted, name) if muted else spec.muted)


def _laid(panel: Panel, other: Panel | None, name: str) -> Panel:
    if other is None or any(isinstance(mark, Heatmap) for mark in panel.marks):
        return panel  # a map hides what lies under it
    copies = [copy for mark in other.marks if (copy := _copy(mark, name)) is not None]
    return replace(panel, marks=[*copies, *panel.marks])


def _copy(mark: Mark, name: str) -> Mark | None:
    """The mark under another name; predictions (dashed) and what both runs share are left out."""
    if isinstance(mark, Line) and mark.dash == "solid":
        return Line(mark.x, mark.y, name, group=name)
    if isinstance(mark, Points) and NOW in (mark.group, mark.label):
        return Points(mark.x, mark.y, name, size=mark.size, group=name)
    return None


def fitting(panels: int, one_unit: bool) -> Sequence[str]:
    """Sizes of the first and the last of so many plots in three columns, so that the last row is
    full.
    """
    if panels % 3 == 1:
        return ("large", "whole") if one_unit else ("broad", "broad")
    return ("broad", "") if panels % 3 == 2 else ("", "")
