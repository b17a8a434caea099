"""A single page of tables and one figure; works from disk."""

import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..figures import FigureSpec
from ..runs.files import write_whole
from .environment import templates
from .interactive import chips, plots
from .tex import as_text


@dataclass(frozen=True)
class Sheet:
    """A titled table of text; where `chips` names a first cell's word, it is shown as good,
    middling or bad.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    chips: Mapping[str, str] = field(default_factory=dict)


def write_page(
    page: pathlib.Path,
    title: str,
    lead: Sequence[str],
    subject: Mapping[str, str],
    sheets: Sequence[Sheet],
    spec: FigureSpec,
    links: Mapping[str, str],
) -> None:
    """Writes `title`, the sentences of `lead`, what it is about, the figure and the tables to
    `page`.
    """
    from bokeh.embed import components
    from bokeh.resources import Resources

    models = {str(number): plot for number, plot in enumerate(plots(spec, "figure"))}
    script, divs = components(models)
    text = (
        templates()
        .get_template("page.html")
        .render(
            title=title,
            lead=lead,
            subject=subject,
            sheets=sheets,
            figure_title=as_text(spec.title),
            caption=as_text(spec.caption),
            legend=chips(spec),
            divs=[divs[name] for name in models],
            columns=spec.columns,
            links=links,
            bokeh=Resources(mode="inline", components=["bokeh"]).render(),
            script=script,
        )
    )
    write_whole(page, text.encode())
