"""One page from saved runs: verdicts, figures, settings, and how to repeat each; works from
disk.
"""

import base64
import io
import itertools
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bokeh.core.types import ID
from bokeh.embed import json_item

from ..experiments import registry
from ..experiments.base import SIZES, Experiment
from ..runs.files import write_whole
from ..runs.progress import duration
from ..runs.records import KINDS, Damage, Judged, Record
from ..runs.store import Store
from .environment import templates
from .interactive import Chip, chips, plots
from .static import save_figure
from .tex import as_text


@dataclass(frozen=True)
class Section:
    """One experiment on the page: the run that is shown, and the others of the same experiment."""

    record: Record
    others: tuple[Record, ...]
    claims: tuple[Judged, ...]
    figure_title: str
    caption: str
    legend: tuple[Chip, ...]
    panels: tuple[tuple[str, str], ...]  # (id, description of the plot)
    columns: int
    trouble: str
    links: Mapping[str, str]
    picture: str  # the figure as a data URI: what is printed, and shown where no script runs

    @property
    def standing(self) -> str:
        """The worst kind among the claims; a run whose claims all hold 'holds'."""
        return next((kind for kind in KINDS if self.record.counts[kind]), "unasked")

    @property
    def verdict(self) -> str:
        """What came out, in a sentence or two."""
        return verdict(self.record.counts)


def write_report(
    store: Store,
    page: pathlib.Path,
    found: tuple[Sequence[Record], Sequence[Damage]] | None = None,
) -> pathlib.Path:
    """Writes the page on all runs of `store`, and the PNG and PDF of every run that lacks them.

    Args:
        found: what `store.records()` gave, if they have been read already.

    Raises:
        ValueError: there is nothing to report on.
    """
    records, damaged = found or store.records()
    if not (records or damaged or _sweeps(store.folder)):
        reason = "has no saved runs" if store.folder.is_dir() else "does not exist"
        raise ValueError(
            f"the folder '{store.folder}' {reason}, so there is nothing to report. "
            "Make a run with `wideflow run caron2023-figure1 --size smoke`, or name another "
            "folder with --out."
        )
    page.parent.mkdir(parents=True, exist_ok=True)
    write_whole(page, render(records, damaged, page.parent).encode())
    return page


def render(records: Sequence[Record], damaged: Sequence[Damage], base: pathlib.Path) -> str:
    """The page as text; links are relative to the folder `base`."""
    from bokeh.resources import Resources

    experiments = registry.experiments()
    drawable = experiments | registry.others()
    groups = itertools.groupby(
        sorted(records, key=lambda r: r.experiment), key=lambda r: r.experiment
    )
    sections = [
        _section(drawable.get(name), sorted(group, key=_rank, reverse=True), base)
        for name, group in groups
    ]
    place = {name: number for number, name in enumerate(drawable)}
    sections.sort(key=lambda s: (s.record.ok, place.get(s.record.experiment, len(place))))
    environment = templates()
    environment.filters |= {
        "number": _number,
        "setting": _setting,
        "duration": duration,
        "moment": _moment,
        "text": as_text,
    }
    papers = [
        _paper(paper, about, sections, list(experiments.values()))
        for paper, about in registry.papers().items()
    ]
    return environment.get_template("report.html").render(
        papers=papers,
        missing=sum(len(paper["missing"]) for paper in papers),
        verdict=_overall(sections),
        sections=sections,
        sweeps=_sweeps(base),
        damaged=damaged,
        kinds=KINDS,
        runs=len(records),
        latest=max((r.started for r in records), default=""),
        bokeh=Resources(mode="inline", components=["bokeh"]).render(),
    )


def _sweeps(base: pathlib.Path) -> dict[str, str]:
    """The pages of sweeps below `base`, each beside its table: name and link."""
    tables = sorted({*base.glob("*/table.nc"), *base.glob("*/*/table.nc")})
    pages = [table.with_name("index.html") for table in tables]
    return {page.parent.name: _relative(page, base) for page in pages if page.is_file()}


def _rank(record: Record) -> tuple:
    """The run that is shown: as declared before changed, larger before smaller, newer before
    older.
    """
    return (
        not record.changed,
        SIZES.index(record.size) if record.size in SIZES else -1,
        record.started,
    )


def _spec(experiment: Experiment | None, record: Record):
    """The figure of a record, or why there is none."""
    if experiment is None:
        return (
            None,
            f"{record.experiment} is not an experiment of this version of wideflow, so its figure "
            "is not drawn.",
        )
    try:
        return experiment.draw(record.table), ""
    except Exception as error:  # a table of an older version must not cost the page
        return (
            None,
            f"The figure could not be drawn from this table: {type(error).__name__}: {error}",
        )


def _section(experiment: Experiment | None, ranked: list[Record], base: pathlib.Path) -> Section:
    record = ranked[0]
    spec, trouble = _spec(experiment, record)
    links, picture = {"table (netCDF)": record.path}, ""
    if spec is not None and record.path is not None:
        stem = record.path.with_suffix("")
        png, pdf = (stem.with_name(stem.name + ending) for ending in (".png", ".pdf"))
        if not (png.exists() and pdf.exists()):
            save_figure(spec, stem)
        links = {"figure (PNG)": png, "figure (PDF)": pdf, **links}
        picture = _data_uri(png)
    return Section(
        record=record,
        others=tuple(ranked[1:]),
        claims=tuple(sorted(record.claims, key=lambda c: KINDS.index(c.kind))),
        figure_title=as_text(spec.title) if spec else "",
        caption=as_text(spec.caption) if spec else "",
        legend=tuple(chips(spec)) if spec else (),
        panels=tuple(
            _panel(plot, f"{record.experiment}-{i}")
            for i, plot in enumerate(plots(spec, record.experiment))
        )
        if spec
        else (),
        columns=spec.columns if spec else 1,
        trouble=trouble,
        links={name: _relative(path, base) for name, path in links.items() if path is not None},
        picture=picture,
    )


def _panel(plot, name: str) -> tuple[str, str]:
    """A plot as JSON that the page draws when the reader comes to it; '<' is spelt out, as it
    stands in a script.
    """
    return name, json.dumps(json_item(plot, ID(name)), allow_nan=False).replace("<", "\\u003c")


def _data_uri(png: pathlib.Path) -> str:
    """A picture for paper: 1600 pixels wide at most, 128 colours, a fifth of the bytes."""
    from PIL import Image

    image, small = Image.open(png).convert("RGB"), io.BytesIO()
    image.thumbnail((1600, 3200))
    image.quantize(128, dither=Image.Dither.NONE).save(small, format="png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(small.getvalue()).decode()


def _relative(path: pathlib.Path, base: pathlib.Path) -> str:
    return pathlib.Path(os.path.relpath(path, base)).as_posix()


def _paper(
    paper: str, about: str, sections: list[Section], known: list[Experiment]
) -> dict[str, Any]:
    own = [section for section in sections if section.record.paper == paper]
    done = {section.record.experiment for section in own}
    missing = [
        experiment
        for experiment in known
        if experiment.paper == paper and experiment.name not in done
    ]
    return {"key": paper, "about": about, "sections": own, "missing": missing}


def verdict(counts: Mapping[str, int]) -> str:
    """What the claims of a run came to, in a sentence or two.

    >>> verdict({"failed": 0, "declared": 1, "unasked": 0, "holds": 12})
    'All 12 claims hold. 1 more is known not to reproduce, and does not.'
    """
    failed, declared, unasked, holds = (counts[kind] for kind in KINDS)
    judged, parts = failed + holds, []
    if failed:
        parts.append(f"{failed} of {judged} claims FAIL{'S' if failed == 1 else ''}.")
    elif judged:
        parts.append(f"All {judged} claims hold." if judged > 1 else "Its one claim holds.")
    if declared:
        verb = ("is", "does") if declared == 1 else ("are", "do")
        parts.append(f"{declared} more {verb[0]} known not to reproduce, and {verb[1]} not.")
    if unasked:
        parts.append(f"This run is too small to judge {unasked} claim{'s' * (unasked > 1)}.")
    return " ".join(parts) or "No claims are judged at this size."


def _overall(sections: Sequence[Section]) -> str:
    """The page in a paragraph, on the run that is shown of each experiment."""
    counts = {kind: sum(s.record.counts[kind] for s in sections) for kind in KINDS}
    one = len(sections) == 1
    what = (
        f"{sections[0].record.title} (size {sections[0].record.size})."
        if one
        else f"{len(sections)} experiments, each at its largest run."
    )
    return f"{what} {verdict(counts)}"


def _number(value: float | None) -> str:
    return "–" if value is None or value != value else f"{value:.4g}"


def _setting(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _moment(text: str) -> str:
    return text[:16].replace("T", " ") + " UTC" if text else ""
