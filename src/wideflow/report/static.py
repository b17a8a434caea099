"""A figure's description drawn by Matplotlib: PNG for pages, PDF for papers."""

import io
import pathlib
import re
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.errors import check_kind, check_path
from ..figures import SCALES, Bars, FigureSpec, Heatmap, HLine, Line, Panel, Points, VLine
from ..runs.files import write_whole
from .style import Look, edges, entry, look, map_range, ordered

_DASHES = {
    "solid": "-",
    "dashed": (0, (5, 2.5)),
    "dotted": (0, (1, 1.6)),
    "dashdot": (0, (6, 2, 1, 2)),
}
_MARKERS = dict(
    circle="o",
    square="s",
    triangle="^",
    diamond="D",
    inverted_triangle="v",
    plus="P",
    x="X",
    star="*",
)
if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

_STYLE: "dict[RcKeyType, Any]" = {
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "mathtext.fontset": "dejavusans",
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.edgecolor": "#333333",
    "axes.grid": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.direction": "out",
    "ytick.direction": "out",
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
}

# inches: a row of panels, the title above them, a line of a legend or of the caption
_PANEL, _TITLE, _LINE = 2.95, 0.55, 0.18


def save_figure(spec: FigureSpec, stem: str | pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Writes `stem`.png and `stem`.pdf; the same figure gives the same bytes.

    Args:
        spec: what to draw.
        stem: the path without its ending.
    """
    check_kind("spec", spec, FigureSpec, "a `FigureSpec` of `wideflow.figures`")
    check_path("stem", stem)
    stem = pathlib.Path(stem)
    paths = stem.with_name(stem.name + ".png"), stem.with_name(stem.name + ".pdf")
    for path, payload in zip(paths, render(spec), strict=True):
        write_whole(path, payload)
    return paths


def render(spec: FigureSpec) -> tuple[bytes, bytes]:
    """The figure as PNG and as PDF."""
    figure = build(spec)
    png = _written(figure, "png")
    # the PDF has the PNG's layout: making room for all labels takes most of a drawing
    figure.set_layout_engine("none")
    return png, _written(figure, "pdf")


def render_png(spec: FigureSpec) -> bytes:
    """The figure as PNG alone, which takes half as long."""
    return _written(build(spec), "png")


def _written(figure, kind: str) -> bytes:
    import matplotlib as mpl

    # nothing of the moment or of the versions: the same figure gives the same bytes
    dated = ("Software",) if kind == "png" else ("CreationDate", "Producer", "Creator")
    buffer = io.BytesIO()
    with mpl.rc_context(_STYLE):
        figure.savefig(buffer, format=kind, metadata=dict.fromkeys(dated))
    return buffer.getvalue()


def build(spec: FigureSpec):
    """The figure as an object of Matplotlib's."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with mpl.rc_context(_STYLE):
        columns = max(1, min(spec.columns, len(spec.panels)))
        rows = -(-len(spec.panels) // columns)
        width = {1: 5.6, 2: 8.4}.get(columns, 3.6 * columns)
        layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, wspace=0.03, hspace=0.05)
        figure = Figure(figsize=(width, _PANEL * rows), layout=layout)
        FigureCanvasAgg(figure)
        seen: dict = {}
        style = look(spec)
        for number, panel in enumerate(spec.panels):
            axes = figure.add_subplot(rows, columns, number + 1)
            _draw_panel(figure, axes, panel, style, seen)
        caption = textwrap.fill(spec.caption, int(17 * width)) if spec.caption else ""
        own = _legends_below(figure, columns)
        entries = -(-len(seen) // _columns(list(seen), width)) if seen else 0
        lines = own + entries + (caption.count("\n") + 1 if caption else 0)
        figure.set_figheight(_PANEL * rows + _TITLE + _LINE * lines)
        if seen:  # the caption as the legend's title: the layout makes room for the two together
            figure.legend(
                list(seen.values()),
                list(seen),
                loc="outside lower center",
                ncols=_columns(list(seen), width),
                title=caption or None,
                title_fontsize=7.5,
            )
        elif caption:
            figure.supxlabel(caption, fontsize=7.5)
        figure.suptitle(spec.title, fontsize=11.5, fontweight="bold", x=0.01, ha="left")
    return figure


def _legends_below(figure, columns: int) -> int:
    """Puts each panel's legend below its axis, names and label included, however high the layout
    makes the axes; gives the lines that these legends take in all rows of panels.
    """
    from matplotlib.transforms import ScaledTranslation

    lines: dict[int, int] = {}
    for number, axes in enumerate(figure.axes):
        legend = axes.get_legend()
        if legend is None:
            continue
        # what stands below the axes has the same height in inches whatever the axes' own
        below = axes.bbox.y0 - axes.xaxis.get_tightbbox(figure.canvas.get_renderer()).y0
        drop = ScaledTranslation(0, -below / figure.dpi - 0.05, figure.dpi_scale_trans)
        legend.set_bbox_to_anchor((0.5, 0), axes.transAxes + drop)
        entries = -(-len(legend.get_texts()) // legend._ncols)
        row = number // columns
        lines[row] = max(entries, lines.get(row, 0))
    return sum(lines.values())


def _draw_panel(figure, axes, panel: Panel, style: Look, seen: dict) -> None:
    own: dict = {}
    bars = [mark for mark in panel.marks if isinstance(mark, Bars)]
    _scales(axes, panel)
    for mark in ordered(panel):
        handle = _draw(figure, axes, mark, style, panel)
        name = entry(mark)
        if handle is not None and name:
            (seen if name in style.shared else own).setdefault(name, handle)
    axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
    if panel.one_unit:
        axes.set_aspect("equal", adjustable="datalim")
    _short_logarithms(axes)
    if bars or any(isinstance(mark, Heatmap) for mark in panel.marks):
        axes.grid(visible=False, axis="x")
    if own:
        size = figure.get_size_inches()[0] / axes.get_subplotspec().get_gridspec().ncols
        axes.legend(
            list(own.values()),
            list(own),
            loc="upper center",
            ncols=_columns(list(own), size),
            fontsize=8,
            borderaxespad=0,
        )
    if panel.note:
        axes.annotate(
            panel.note,
            (0, 1),
            (0, 1),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=7.5,
            color="#555555",
            va="bottom",
        )
        axes.set_title(panel.title, pad=14)


def _scales(axes, panel: Panel) -> None:
    for set_scale, scale, across in (
        (axes.set_xscale, panel.xscale, 0),
        (axes.set_yscale, panel.yscale, 1),
    ):
        assert scale in SCALES
        if scale == "symlog":
            set_scale("symlog", linthresh=linear_threshold(panel, across))
        elif scale == "log":
            set_scale("log", nonpositive="clip")


def _short_logarithms(axes) -> None:
    """Over less than two decades a log axis is labelled 1, 2, 5 in plain numbers (over less than
    one 1, 2, 3, 5): powers of ten alone are too few, all minor ticks overlap.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if axis.get_scale() == "log" and 0 < low < high < 100 * low:
            subs = (1.0, 2.0, 3.0, 5.0) if high < 10 * low else (1.0, 2.0, 5.0)
            axis.set_major_locator(LogLocator(subs=subs))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())


def linear_threshold(panel: Panel, across: int) -> float:
    """Where a symlog axis turns linear: a thousandth of the largest number on it."""
    numbers = [
        np.abs(np.ravel(np.asarray((mark.x, mark.y)[across], float)))
        for mark in panel.marks
        if isinstance(mark, Line | Points)
    ]
    finite = [values[np.isfinite(values)] for values in numbers]
    largest = max((float(values.max()) for values in finite if values.size), default=1.0)
    return 1e-3 * largest if largest > 0 else 1.0


def _draw(figure, axes, mark, style: Look, panel: Panel):
    """Draws one mark and returns what its legend entry shows."""
    colour, dash = style.colour(mark), _DASHES[style.dash(mark, panel)]
    match mark:
        case Line():
            if mark.low is not None and mark.high is not None:
                axes.fill_between(
                    mark.x, mark.low, mark.high, color=colour, alpha=0.18, linewidth=0
                )
            heights = np.asarray(mark.y, float)
            if axes.get_yscale() == "log":  # a gap, not a plunge, where there is no logarithm
                heights = np.where(heights > 0, heights, np.nan)
            return axes.plot(mark.x, heights, color=colour, linestyle=dash)[0]
        case Points(values=values) if values is not None:
            low, high = map_range(panel)
            return axes.scatter(
                mark.x,
                mark.y,
                mark.size**2,
                values,
                cmap="viridis",
                vmin=low,
                vmax=high,
                edgecolors="white",
                linewidths=0.8,
                clip_on=False,
            )
        case Points():
            return axes.errorbar(
                mark.x,
                mark.y,
                yerr=mark.errors,
                fmt=_MARKERS[style.marker(mark)],
                markersize=mark.size,
                color=colour,
                markeredgecolor="white",
                markeredgewidth=0.4,
                elinewidth=0.9,
                capsize=2,
                clip_on=not any(
                    isinstance(other, Heatmap) for other in panel.marks
                ),  # a map ends where its points are
            )
        case HLine():
            return axes.axhline(mark.y, color=colour, linestyle=dash, linewidth=1.1)
        case VLine():
            return axes.axvline(mark.x, color=colour, linestyle=dash, linewidth=1.1)
        case Bars():
            bars = [other for other in panel.marks if isinstance(other, Bars)]
            names = list(dict.fromkeys(name for bar in bars for name in bar.names))
            width = 0.8 / len(bars)
            shift = (bars.index(mark) - (len(bars) - 1) / 2) * width
            places = np.array([names.index(name) for name in mark.names]) + shift
            long = max(len(str(name)) for name in names) * len(names) > 42
            axes.set_xticks(
                range(len(names)),
                names,
                rotation=25 if long else 0,
                ha="right" if long else "center",
            )
            return axes.bar(places, mark.heights, width * 0.92, color=colour)
        case Heatmap():
            x, y = edges(mark.x, panel.xscale), edges(mark.y, panel.yscale)
            low, high = map_range(panel)
            image = axes.pcolormesh(
                x,
                y,
                np.asarray(mark.values, float),
                cmap="viridis",
                vmin=low,
                vmax=high,
                rasterized=True,
            )
            figure.colorbar(image, ax=axes, label=mark.label, pad=0.02)
    return None


def _columns(names: list[str], width: float) -> int:
    """How many entries stand beside each other in `width` inches."""
    longest = max(len(re.sub(r"[\\${}]", "", name)) for name in names)
    return max(1, min(len(names), int((width - 0.3) / (0.55 + 0.066 * longest))))
