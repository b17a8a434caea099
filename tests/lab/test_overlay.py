"""Two runs in one figure."""

import pytest

from wideflow.experiments.training_panels import NOW
from wideflow.figures import FigureSpec, Heatmap, Line, Panel, Points
from wideflow.lab.overlay import beside, fitting
from wideflow.report.interactive import chips, plots
from wideflow.report.style import REFERENCE, look


def spec(height: float) -> FigureSpec:
    curve = [Line([0, 1], [height, height], NOW), Line([0, 1], [9, 9], "ahead", dash="dashed")]
    nodes = [Points([1], [height], NOW), Points([1], [7], "data")]
    chart = [Heatmap([0, 1], [0, 1], [[1, 2], [3, 4]])]
    return FigureSpec(
        "Two",
        [
            Panel("Loss", "t", "l", curve),
            Panel("Nodes", "j", "m", nodes),
            Panel("Map", "x", "y", chart),
        ],
        first=(NOW,),
    )


@pytest.mark.parametrize("muted", [True, False])
def test_the_other_runs_own_marks_are_laid_under(muted):
    both = beside(spec(1.0), spec(2.0), "before", muted=muted)
    loss, nodes, chart = both.panels
    assert [(mark.label, list(mark.y)) for mark in loss.marks] == [
        ("before", [2, 2]),
        (NOW, [1, 1]),
        ("ahead", [9, 9]),
    ]
    assert [(mark.label, list(mark.y)) for mark in nodes.marks] == [
        ("before", [2]),
        (NOW, [1]),
        ("data", [7]),
    ]
    assert len(chart.marks) == 1  # a map hides what lies under it
    colour = {chip.name: chip.colour for chip in chips(both)}["before"]
    assert (colour == REFERENCE) == muted
    assert look(both).colour(loss.marks[1]) == look(spec(1.0)).colour(spec(1.0).panels[0].marks[0])
    assert len(plots(both, "lab")) == 3


@pytest.mark.parametrize("count", range(3, 10))
def test_three_columns_end_in_a_full_row(count):
    cells = {"": 1, "broad": 2, "large": 4, "whole": 3}
    for one_unit in (False, True):
        first, last = fitting(count, one_unit)
        taken = cells[first] + cells[last] + count - 2
        assert taken % 3 == 0
