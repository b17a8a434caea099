"""Plots that are on a page take new numbers: data, the range of colours, ticks; and no new model
where none is needed.
"""

import numpy as np
import pytest
from bokeh.models import ColorBar

from wideflow.figures import FigureSpec, Heatmap, Line, Panel
from wideflow.report.interactive import plots, refresh


def figure(scale: float) -> FigureSpec:
    x = np.linspace(0.0, 1.0, 5)
    curve = Panel("Curve", "x", "y", [Line(x, scale * (1 + 20 * x), "loss")], yscale="log")
    signed = Panel("Signed", "x", "y", [Line(x, scale * (x - 0.5), "gap")], yscale="symlog")
    field = Heatmap(x, x, scale * np.add.outer(x, -x), "f")
    return FigureSpec("T", [curve, signed, Panel("Map", "x", "y", [field])])


def test_new_numbers_arrive_in_curves_ticks_and_colours():
    drawn = plots(figure(1.0), "lab")
    before = [id(plot.yaxis[0].ticker) for plot in drawn]
    refresh(drawn, figure(30.0))
    anew = plots(figure(30.0), "lab")
    for plot, expected in zip(drawn, anew):
        for one, other in zip(plot.renderers, expected.renderers):
            for name, column in other.data_source.data.items():
                np.testing.assert_array_equal(one.data_source.data[name], column)
    for plot, expected in zip(drawn[:2], anew[:2]):
        assert plot.yaxis[0].ticker.ticks == expected.yaxis[0].ticker.ticks
    assert drawn[1].yaxis[0].major_label_overrides == anew[1].yaxis[0].major_label_overrides
    (bar,) = (item for item in drawn[2].right if isinstance(item, ColorBar))
    assert (bar.color_mapper.low, bar.color_mapper.high) == pytest.approx((-30.0, 30.0))
    assert before == [id(plot.yaxis[0].ticker) for plot in drawn]


def test_a_figure_of_other_marks_is_refused():
    with pytest.raises(ValueError, match="other panels or marks"):
        refresh(plots(figure(1.0), "lab")[:2], figure(1.0))
