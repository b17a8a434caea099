"""A certificate on the terminal and as a page with plots."""

import json
import pathlib
from typing import TYPE_CHECKING

from rich.console import Group
from rich.markup import escape
from rich.table import Table

from ..report.page import Sheet, write_page
from ..report.static import save_figure
from ..runs.files import write_whole
from ..runs.json_encoding import plain

if TYPE_CHECKING:
    from ..certify.certificate import Certificate

COLOURS = {
    "well": "green",
    "note": "yellow",
    "wrong": "bold red",
    "HOLDS": "green",
    "VIOLATED": "bold red",
    "VACUOUS": "yellow",
    "NOT_APPLICABLE": "dim",
}
CHIPS = {
    "well": "holds",
    "note": "declared",
    "wrong": "failed",
    "HOLDS": "holds",
    "VIOLATED": "failed",
    "VACUOUS": "declared",
    "NOT_APPLICABLE": "",
}
HEADINGS = {
    "Data": ("", "check", "found", "what it means"),
    "Numbers": ("what", "value", "what it means"),
    "Theorems": ("outcome", "statement", "requirement and guarantee", "why"),
    "Do not apply here": ("statements", "why"),
    "Laziness along width and gamma": (
        "where",
        "index",
        "verdict",
        "kernel change",
        "linearisation gap",
    ),
    "What happened": ("what", "value", "compared with the prediction"),
}


def sections(certificate: "Certificate") -> dict[str, list[tuple[str, ...]]]:
    """The certificate's tables by title, in reading order."""
    lazy = certificate.laziness
    places = [(f"width {w}", r) for w, r in zip(lazy.widths, lazy.along_width)]
    places += [(f"gamma {g}", r) for g, r in zip(lazy.gammas, lazy.along_gamma)]
    tables = {
        "Data": [(c.verdict, c.name, c.found, c.meaning) for c in certificate.checks],
        "Numbers": list(certificate.rows()),
        "What happened": [] if certificate.followed is None else list(certificate.followed.rows()),
        "Theorems": [
            (
                p.outcome.name,
                f"{p.name}: {p.about}",
                "; ".join(filter(None, (p.width_text(), p.rate_text()))),
                p.message,
            )
            for p in certificate.telling
        ],
        "Do not apply here": list(certificate.silent),
        "Laziness along width and gamma": [
            (
                name,
                f"{r.index:.3f}",
                r.verdict,
                f"{r.kernel_change:.3g}",
                f"{r.linearisation_gap:.3g}",
            )
            for name, r in places
        ],
    }
    return {title: rows for title, rows in tables.items() if rows}


def tables(certificate: "Certificate") -> Group:
    """Rich tables."""
    parts = []
    subject = ", ".join(f"{name} {value}" for name, value in certificate.subject.items())
    parts.append(f"[bold]Certificate[/bold] {escape(subject)}")
    parts += [f"[yellow]note:[/yellow] {escape(note)}" for note in certificate.notes]
    for title, rows in sections(certificate).items():
        table = Table(title=title, title_justify="left")
        for heading in HEADINGS[title]:
            table.add_column(heading, overflow="fold")
        for row in rows:
            colour = COLOURS.get(row[0])
            first = f"[{colour}]{escape(row[0])}[/]" if colour else escape(row[0])
            table.add_row(first, *map(escape, row[1:]))
        parts.append(table)
    if certificate.later:
        parts.append(
            f"[dim]{len(certificate.later)} more can be judged on a run (--train): "
            f"{escape(', '.join(certificate.later))}[/dim]"
        )
    parts.append(f"[bold]{escape(certificate.headline)}[/bold]")
    return Group(*parts)


def write(certificate: "Certificate", folder: pathlib.Path) -> tuple[pathlib.Path, ...]:
    """`certificate.html`, `.json`, `.png` and `.pdf` in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    spec, stem = certificate.figure(), folder / "certificate"
    png, pdf = save_figure(spec, stem)
    page, numbers = stem.with_suffix(".html"), stem.with_suffix(".json")
    write_whole(
        numbers,
        json.dumps(
            plain(certificate.to_dict(), spelt=False), indent=1, ensure_ascii=False
        ).encode(),
    )
    sheets = [
        Sheet(title, HEADINGS[title], tuple(rows), CHIPS)
        for title, rows in sections(certificate).items()
    ]
    lead = [certificate.headline, *certificate.notes]
    subject = {name: str(value) for name, value in certificate.subject.items()}
    links = {"figure (PNG)": png.name, "figure (PDF)": pdf.name, "numbers (JSON)": numbers.name}
    write_page(
        page, f"Certificate of {certificate.subject['data']}", lead, subject, sheets, spec, links
    )
    return page, numbers, png, pdf
