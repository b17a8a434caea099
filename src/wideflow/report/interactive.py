"""A figure's description drawn by Bokeh, one plot a panel, for pages."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from bokeh.models import (
    BasicTicker,
    ColorBar,
    ColumnDataSource,
    ContinuousColorMapper,
    FixedTicker,
    HoverTool,
    InlineStyleSheet,
    Legend,
    LegendItem,
    LinearColorMapper,
    LogTicker,
    Title,
)
from bokeh.plotting import figure

from ..figures import Bars, FigureSpec, Heatmap, HLine, Line, Mark, Panel, Points, VLine
from .style import Look, edges, entry, look, map_range, ordered
from .tex import as_text

MOST_POINTS = 1500  # of a curve on the page; the record and the PDF have them all
FRAME = 235  # pixels that a panel's axes are high, whatever stands around them
SQUARE = 1.08  # width over height of a panel whose axes have one unit, with what stands around them
WRAPPED = """
:host { max-width: 100%; grid-template-columns: minmax(0, 1fr) !important; }
.bk-grid { display: flex !important; flex-wrap: wrap; gap: 2px 14px !important; max-width: 100%; }
"""  # a legend's entries beside each other, as many as there is room for


@dataclass(frozen=True)
class Chip:
    """An entry of the legend that all panels share; a click on it hides its marks."""

    name: str
    colour: str
    dash: str


def chips(spec: FigureSpec) -> list[Chip]:
    """The shared legend, in order of appearance."""
    style, chips = look(spec), {}
    for panel in spec.panels:
        for mark in panel.marks:
            name = entry(mark)
            if name in style.shared and name not in chips:
                chips[name] = Chip(
                    as_text(name), style.colour(mark), getattr(mark, "dash", "solid")
                )
    return list(chips.values())


def plots(spec: FigureSpec, owner: str) -> list:
    """One Bokeh plot per panel, as wide as the page lets it be; marks are tagged `owner/entry`."""
    style = look(spec)
    return [_plot(panel, style, owner) for panel in spec.panels]


def refresh(drawn: list, spec: FigureSpec) -> None:
    """New numbers for plots that `plots` has drawn from a figure of the same panels and marks;
    whoever looks on sees them move.

    Raises:
        ValueError: the new figure has other panels or marks, so it must be drawn anew.
    """
    if not same_marks(drawn, spec):
        raise ValueError(
            "`spec` has other panels or marks than what is drawn; draw it with `plots`."
        )
    for plot, panel in zip(drawn, spec.panels):
        x, y = _axes(panel)
        fresh = [columns for mark in ordered(panel) for columns in _columns_of(mark, x, y, panel)]
        for renderer, columns in zip(plot.renderers, fresh):
            renderer.data_source.data = columns
        for bar in plot.right:
            if isinstance(bar, ColorBar) and isinstance(bar.color_mapper, ContinuousColorMapper):
                bar.color_mapper.low, bar.color_mapper.high = map_range(panel)
        x.label(plot.xaxis[0])
        y.label(plot.yaxis[0])


def same_marks(drawn: list, spec: FigureSpec) -> bool:
    """Whether `refresh` can show `spec` in these plots."""
    if len(drawn) != len(spec.panels):
        return False
    return all(
        plot.title.text == as_text(panel.title) and plot.tags == _kinds(panel)
        for plot, panel in zip(drawn, spec.panels)
    )


def _kinds(panel: Panel) -> list[str]:
    """What decides which renderers a panel has: its scales, and of each mark the kind and whether
    it has a band or bars.
    """
    more = lambda mark: [
        n for n in ("low", "errors", "values") if getattr(mark, n, None) is not None
    ]
    return [
        panel.xscale,
        panel.yscale,
        *(" ".join([type(mark).__name__, *more(mark)]) for mark in ordered(panel)),
    ]


class _Axis:
    """Numbers as they are drawn: symlog axes carry asinh of the number, which Bokeh has no scale
    for.
    """

    def __init__(self, scale: str, numbers: np.ndarray):
        finite = np.abs(numbers[np.isfinite(numbers)])
        largest = float(finite.max()) if finite.size else 0.0
        self.scale, self.threshold = scale, 1e-3 * largest if largest > 0 else 1.0
        self.largest = largest or 1.0
        positive = np.log10(finite[finite > 0]) if np.any(finite > 0) else np.zeros(1)
        self.decades = float(np.ptp(positive))
        self.powers = range(int(np.floor(positive.min())) - 1, int(np.ceil(positive.max())) + 1)

    @property
    def kind(self) -> Literal["log", "linear"]:
        return "log" if self.scale == "log" else "linear"

    def __call__(self, values) -> np.ndarray:
        values = np.asarray(values, float)
        if self.scale == "log":
            return np.where(values > 0, values, np.nan)
        return np.arcsinh(values / self.threshold) if self.scale == "symlog" else values

    def label(self, axis) -> None:
        """Puts powers of ten where a symlog axis has them, and 1, 2, 5 or round numbers where a
        logarithmic one is short.
        """
        if self.scale == "log" and self.decades < 0.8:
            if not isinstance(axis.ticker, BasicTicker):
                axis.ticker = BasicTicker(desired_num_ticks=5)
        elif self.scale == "log" and self.decades < 2.5:
            _put(axis, [m * 10.0**k for k in self.powers for m in (1, 2, 5)])
        elif self.scale == "log" and not isinstance(axis.ticker, LogTicker):
            axis.ticker = LogTicker()  # it was short before, and has grown
        if self.scale != "symlog":
            return
        top = int(np.floor(np.log10(self.largest)))
        numbers = [0.0, *(s * 10.0**k for k in range(top - 2, top + 1) for s in (1, -1))]
        places = self(numbers).tolist()
        _put(axis, sorted(places))
        axis.major_label_overrides = {p: f"{n:g}" for p, n in zip(places, numbers)}


def _put(axis, ticks: list[float]) -> None:
    """Ticks at these places. A ticker that is there is kept: a new model makes Bokeh walk through
    all others of the page, a tenth of a second.
    """
    if isinstance(axis.ticker, FixedTicker):
        axis.ticker.ticks = ticks
    else:
        axis.ticker = FixedTicker(ticks=ticks)


def _plot(panel: Panel, style: Look, owner: str):
    x, y = _axes(panel)
    size: dict[str, Any] = (
        dict(sizing_mode="scale_width", aspect_ratio=SQUARE, match_aspect=True)
        if panel.one_unit
        else dict(sizing_mode="stretch_width", height=None, frame_height=FRAME)
    )
    plot = figure(
        **size,
        frame_align=False,
        x_axis_type=x.kind,
        y_axis_type=y.kind,
        tools="pan,box_zoom,wheel_zoom,reset,save",
        active_drag=None,
        active_scroll=None,
        toolbar_location="above",
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        min_border_right=12,
    )
    plot.tags = _kinds(panel)
    description = f"{panel.title}: {panel.y} over {panel.x}"  # for those who do not see it
    plot.html_attributes = {"role": "img", "aria-label": as_text(description)}
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.title = Title(text=as_text(panel.title), text_font_size="14px")
    if panel.note:
        note = Title(text=as_text(panel.note), text_font_style="italic", text_font_size="12px")
        plot.add_layout(note, "above")
    plot.xaxis.axis_label, plot.yaxis.axis_label = as_text(panel.x), as_text(panel.y)
    for axis in (*plot.xaxis, *plot.yaxis):
        axis.axis_label_text_font_style = "normal"
        axis.minor_tick_line_color = None
    plot.grid.grid_line_alpha = 0.35
    own: dict[str, list] = {}
    for mark in ordered(panel):
        drawn = _draw(plot, mark, style, x, y, panel)
        name = entry(mark)
        for renderer in drawn:
            renderer.tags = [f"{owner}/{as_text(name)}"]
        if name and name not in style.shared:
            own.setdefault(as_text(name), []).extend(drawn)
    x.label(plot.xaxis[0])
    y.label(plot.yaxis[0])
    items = [LegendItem(label=name, renderers=drawn) for name, drawn in own.items()]
    if items:
        legend = Legend(
            items=items,
            click_policy="hide",
            orientation="horizontal",
            location="left",
            stylesheets=[InlineStyleSheet(css=WRAPPED)],
            border_line_color=None,
            background_fill_color=None,
            label_text_font_size="12px",
            margin=4,
        )
        plot.add_layout(legend, "below")
    return plot


def _axes(panel: Panel) -> list[_Axis]:
    scales = (panel.xscale, panel.yscale)
    return [_Axis(scale, _numbers(panel, i)) for i, scale in enumerate(scales)]


def _numbers(panel: Panel, across: int) -> np.ndarray:
    """All numbers along one axis of a panel."""
    parts = [np.zeros(0)]
    for mark in panel.marks:
        if isinstance(mark, Line | Points | Heatmap):
            parts.append(np.ravel(np.asarray((mark.x, mark.y)[across], float)))
        elif isinstance(mark, Bars):
            parts.append(
                np.arange(len(mark.names), dtype=float)
                if across == 0
                else np.asarray(mark.heights, float)
            )
    return np.concatenate(parts)


def _thinned(count: int) -> np.ndarray:
    if count <= MOST_POINTS:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, MOST_POINTS).astype(int))


def _draw(plot, mark: Mark, style: Look, x: _Axis, y: _Axis, panel: Panel) -> list:
    """Draws one mark; returns its renderers, the one shown in a legend first."""
    colour, dash = style.colour(mark), style.dash(mark, panel)
    match mark:
        case Line():
            return _draw_line(plot, mark, colour, dash, x, y)
        case Points():
            return _draw_points(plot, mark, colour, style.marker(mark), x, y)
        case HLine() | VLine():
            look = dict(line_color=colour, line_dash=dash, line_width=1.5)
            source = ColumnDataSource(_columns_of(mark, x, y, panel)[0])
            across = isinstance(mark, HLine)
            return [
                (plot.hspan if across else plot.vspan)(
                    "y" if across else "x", source=source, **look
                )
            ]
        case Bars():
            return [_draw_bars(plot, mark, colour, [m for m in panel.marks if isinstance(m, Bars)])]
        case Heatmap():
            return [_draw_heatmap(plot, mark, x, y, map_range(panel))]


def _hover(plot, renderer, name: str, named_x: str = "@true_x") -> None:
    title = [("", name)] if name else []
    tips = [
        *title,
        (plot.xaxis[0].axis_label or "x", named_x),
        (plot.yaxis[0].axis_label or "y", "@true_y"),
    ]
    plot.add_tools(HoverTool(renderers=[renderer], tooltips=tips, visible=False))


def _columns_of(mark: Mark, x: _Axis, y: _Axis, panel: Panel) -> list[dict]:
    """The numbers of each renderer of a mark, in the order in which `_draw` draws them."""
    match mark:
        case Line():
            return _line_columns(mark, x, y)
        case Points():
            return _points_columns(mark, x, y)
        case HLine():
            return [dict(y=y([mark.y]))]
        case VLine():
            return [dict(x=x([mark.x]))]
        case Bars():
            return [_bars_columns(mark, [m for m in panel.marks if isinstance(m, Bars)])]
        case Heatmap():
            return [_heatmap_columns(mark, (x.kind, y.kind))]


def _line_columns(mark: Line, x: _Axis, y: _Axis) -> list[dict]:
    keep = _thinned(len(np.asarray(mark.x)))
    across, heights = np.asarray(mark.x, float)[keep], np.asarray(mark.y, float)[keep]
    curve = dict(x=x(across), y=y(heights), true_x=across, true_y=heights)
    if mark.low is None or mark.high is None:
        return [curve]
    low, high = (np.asarray(v, float)[keep] for v in (mark.low, mark.high))
    if y.scale == "log":
        positive = heights[heights > 0]
        low = np.maximum(low, 0.1 * positive.min() if positive.size else 1e-300)
    return [curve, dict(x=x(across), low=y(low), high=y(high))]


def _draw_line(plot, mark: Line, colour: str, dash: str, x: _Axis, y: _Axis) -> list:
    curve, *band = map(ColumnDataSource, _line_columns(mark, x, y))
    line = plot.line("x", "y", source=curve, color=colour, line_dash=dash, line_width=2)
    _hover(plot, line, as_text(entry(mark)))
    shade = dict(fill_color=colour, fill_alpha=0.18)
    return [line, *(plot.varea("x", "low", "high", source=source, **shade) for source in band)]


def _points_columns(mark: Points, x: _Axis, y: _Axis) -> list[dict]:
    across, heights = np.asarray(mark.x, float), np.asarray(mark.y, float)
    points = dict(x=x(across), y=y(heights), true_x=across, true_y=heights)
    if mark.values is not None:
        points["value"] = np.asarray(mark.values, float)
    if mark.errors is None:
        return [points]
    errors = np.asarray(mark.errors, float)
    return [points, dict(x=x(across), low=y(heights - errors), high=y(heights + errors))]


def _draw_points(plot, mark: Points, colour: str, marker: str, x: _Axis, y: _Axis) -> list:
    points, *bars = map(ColumnDataSource, _points_columns(mark, x, y))
    alpha = 0.85 if len(np.asarray(mark.x)) < 200 else 0.5
    look = dict(size=1.4 * mark.size, color=colour, marker=marker, alpha=alpha)
    mapper = plot.select_one(LinearColorMapper)
    if mapper is not None:  # on a map a white border tells points from their ground
        look |= dict(line_color="white", line_width=1.2, alpha=1.0)
    if mark.values is not None:
        look |= dict(fill_color={"field": "value", "transform": mapper})
    drawn = plot.scatter("x", "y", source=points, **look)
    _hover(plot, drawn, as_text(entry(mark)))
    look = dict(color=colour, line_width=1.3)
    return [drawn, *(plot.segment("x", "low", "x", "high", source=bar, **look) for bar in bars)]


def _bars_columns(mark: Bars, bars: list[Bars]) -> dict:
    names = list(dict.fromkeys(name for bar in bars for name in bar.names))
    shift = (bars.index(mark) - (len(bars) - 1) / 2) * 0.8 / len(bars)
    places = [names.index(name) + shift for name in mark.names]
    heights = np.asarray(mark.heights, float)
    return dict(x=places, true_y=heights, name=[as_text(str(n)) for n in mark.names])


def _draw_bars(plot, mark: Bars, colour: str, bars: list[Bars]):
    names = list(dict.fromkeys(name for bar in bars for name in bar.names))
    width = 0.8 / len(bars)
    source = ColumnDataSource(_bars_columns(mark, bars))
    every = np.concatenate([np.asarray(bar.heights, float) for bar in bars])
    logarithmic = plot.y_scale.__class__.__name__ == "LogScale" and (every > 0).any()
    floor = 0.3 * every[every > 0].min() if logarithmic else 0.0
    drawn = plot.vbar("x", 0.92 * width, "true_y", floor, source=source, color=colour)
    plot.xaxis[0].ticker = FixedTicker(ticks=list(range(len(names))))
    plot.xaxis[0].major_label_overrides = {i: as_text(str(name)) for i, name in enumerate(names)}
    if sum(len(str(name)) for name in names) > 48:
        plot.xaxis[0].major_label_orientation = 0.6
    plot.xgrid.visible = False
    _hover(plot, drawn, as_text(mark.label), "@name")
    return drawn


def _heatmap_columns(mark: Heatmap, scales: tuple[str, str]) -> dict:
    values = np.asarray(mark.values, float)
    x, y = edges(mark.x, scales[0]), edges(mark.y, scales[1])
    rows, columns = np.indices(values.shape)
    return dict(
        left=x[columns].ravel(),
        right=x[columns + 1].ravel(),
        bottom=y[rows].ravel(),
        top=y[rows + 1].ravel(),
        true_x=np.asarray(mark.x, float)[columns].ravel(),
        true_y=np.asarray(mark.y, float)[rows].ravel(),
        value=values.ravel(),
    )


def _draw_heatmap(plot, mark: Heatmap, x: _Axis, y: _Axis, shown: tuple[float, float]):
    low, high = shown
    mapper = LinearColorMapper(palette="Viridis256", low=low, high=high, nan_color="#999999")
    source = ColumnDataSource(_heatmap_columns(mark, (x.kind, y.kind)))
    cells = plot.quad(
        "left",
        "right",
        "top",
        "bottom",
        source=source,
        color={
            "field": "value",
            "transform": mapper,
        },  # also of the border, or the page shows between cells
    )
    bar = ColorBar(
        color_mapper=mapper,
        title=as_text(mark.label),
        background_fill_color=None,
        width=14,
        padding=6,
        label_standoff=4,
        title_text_font_style="normal",
    )
    plot.add_layout(bar, "right")
    plot.add_tools(
        HoverTool(
            renderers=[cells], tooltips=[(as_text(mark.label) or "value", "@value")], visible=False
        )
    )
    plot.grid.visible = False
    return cells
