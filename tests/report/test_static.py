"""Figures for papers: what is drawn, that it is the same each time, and that no legend covers
data.
"""

import struct

import numpy as np
import pytest
from bokeh.models import LinearColorMapper
from small_experiment import EXPERIMENT, draw

from wideflow.figures import Bars, FigureSpec, Heatmap, HLine, Line, Panel, Points, VLine
from wideflow.report.interactive import plots
from wideflow.report.static import build, render, save_figure
from wideflow.report.style import PALETTE, edges, look
from wideflow.runs import Store, perform


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    return draw(
        perform(EXPERIMENT, Store(tmp_path_factory.mktemp("runs")), size="smoke").record.table
    )


def test_both_files_are_written_and_the_same_each_time(spec, tmp_path):
    png, pdf = save_figure(spec, tmp_path / "figure.of.dots")
    assert (png.name, pdf.name) == ("figure.of.dots.png", "figure.of.dots.pdf")
    assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert pdf.read_bytes()[:5] == b"%PDF-"
    assert struct.unpack(">II", png.read_bytes()[16:24])[0] == 1680  # 8.4 inches at 200 dots
    assert (png.read_bytes(), pdf.read_bytes()) == render(spec)


def test_no_legend_lies_on_axes(spec):
    figure = build(spec)
    figure.draw_without_rendering()
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    assert len(legends) >= 3
    for legend in legends:
        box = legend.get_window_extent()
        assert not any(box.overlaps(axes.get_window_extent()) for axes in figure.axes)
        assert figure.bbox.padded(1).count_contains(box.corners()) == 4


@pytest.mark.parametrize("captions", ["", "A caption of several lines. " * 20])
def test_no_legend_lies_on_names_or_labels_however_low_the_axes_are(captions):
    # long names of bars are turned, and a long caption leaves the axes little height
    names = tuple(f"N={100 * k}, m={50 * k}, no noise" for k in range(1, 5))
    x = [1.0, 2.0]
    panels = [
        Panel("bars", "case", "loss", [Bars(names, np.ones(4), key) for key in ("one", "two")]),
        Panel("lines", "samples n", "loss", [Line(x, x, f"kernel number {k}") for k in range(6)]),
    ]
    figure = build(FigureSpec("low axes", panels, columns=2, caption=captions))
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    for axes in figure.axes:
        box = axes.get_legend().get_window_extent()
        below = [axes.xaxis.label, *axes.get_xticklabels()]
        assert not any(box.overlaps(text.get_window_extent(renderer)) for text in below)
        assert axes.get_window_extent().height > 1.5 * figure.dpi  # inches: it can still be read


def test_one_key_has_one_colour_throughout():
    x = [0.0, 1.0]
    spec = FigureSpec(
        "colours",
        [
            Panel("a", "x", "y", [Line(x, x, "lazy"), Line(x, x, "rich")]),
            Panel(
                "b",
                "x",
                "y",
                [
                    Points(x, x, "rich"),
                    Line(x, x, "rich, theory", group="rich"),
                    HLine(0.5, "half"),
                ],
            ),
        ],
    )
    style = look(spec)
    colours = [[style.colour(mark) for mark in panel.marks] for panel in spec.panels]
    assert colours[0] == list(PALETTE[:2])
    assert colours[1][0] == colours[1][1] == PALETTE[1]
    assert style.shared == ("rich",)


def test_reference_lines_of_one_panel_differ():
    panel = Panel("a", "x", "y", [HLine(0.1, "one"), HLine(0.2, "two"), HLine(0.3, "one")])
    style = look(FigureSpec("t", [panel]))
    assert [style.dash(mark, panel) for mark in panel.marks] == ["dashed", "dotted", "dashed"]


def test_a_reference_line_of_several_panels_looks_the_same_in_all():
    # the figure's one legend shows it once
    times = [VLine(1.0, "first"), VLine(2.0, "second")]
    panels = [Panel("a", "x", "y", times), Panel("b", "x", "y", [HLine(0.5, "floor"), *times])]
    style = look(FigureSpec("t", panels))
    for panel in panels:
        assert [style.dash(mark, panel) for mark in times] == ["dashed", "dotted"]
    assert style.dash(panels[1].marks[0], panels[1]) == "dashdot"


def test_nonpositive_numbers_on_a_logarithmic_axis_are_a_gap():
    line = Line(
        [0.0, 1.0, 2.0], [1.0, 0.0, 10.0], "with a zero", [0.5, -1.0, 5.0], [2.0, 1.0, 20.0]
    )
    figure = build(FigureSpec("t", [Panel("a", "x", "y", [line], yscale="log")]))
    drawn = figure.axes[0].get_lines()[0].get_ydata()
    np.testing.assert_array_equal(drawn, [1.0, np.nan, 10.0])


def test_cells_of_a_map_meet_halfway_on_their_own_scale():
    np.testing.assert_allclose(edges([1.0, 2.0, 4.0], "linear"), [0.5, 1.5, 3.0, 5.0])
    np.testing.assert_allclose(edges([1.0, 100.0], "log"), [0.1, 10.0, 1000.0])
    np.testing.assert_allclose(edges([3.0], "linear"), [2.5, 3.5])


def test_a_map_and_the_points_on_it_share_their_colours_and_their_scale():
    grid = np.array([0.0, 1.0, 2.0])
    on_it = Points([0.5, 1.5], [0.5, 1.5], "data", values=[-3.0, 7.0])
    panel = Panel("map", "a", "b", [Heatmap(grid, grid, np.eye(3)), on_it], one_unit=True)
    spec = FigureSpec("maps", [panel, Panel("c", "x", "y", [Line(grid, grid, "curve")])])
    assert look(spec).numbers == {"curve": 0}  # what has a map's colours takes none of the others
    figure = build(spec)
    axes = figure.axes[0]
    assert {shown.get_clim() for shown in axes.collections} == {(-3.0, 7.0)}
    figure.draw_without_rendering()
    corners = axes.transData.transform([(0, 0), (1, 1)])
    assert np.ptp(corners[:, 0]) == pytest.approx(np.ptp(corners[:, 1]))
    plot = plots(spec, "owner")[0]
    assert plot.match_aspect
    mapper = plot.select_one(LinearColorMapper)
    assert (mapper.low, mapper.high) == (-3.0, 7.0)
    assert plot.renderers[1].glyph.fill_color.transform is mapper


def test_named_keys_take_the_first_colours():
    panel = Panel("a", "x", "y", [Line([0, 1], [0, 1], "b"), Line([0, 1], [0, 1], "a")])
    style = look(FigureSpec("t", [panel], first=("a", "elsewhere")))
    assert [style.colour(mark) for mark in panel.marks] == [PALETTE[2], PALETTE[0]]
