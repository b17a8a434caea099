"""Tables and progress on the terminal, by Rich; results go to stdout, progress and remarks to
stderr.
"""

import contextlib
import json
import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from .._core.compile_time import working_time
from ..doctor.findings import Finding
from ..experiments.base import Experiment
from ..runs.json_encoding import plain
from ..runs.progress import PrintedProgress, TimeLeft, duration
from ..runs.records import TOO_SMALL, Damage, Judged, Record
from ..runs.runner import Performed
from ..training.session import Progress as ProgressCall

COLOURS = {"failed": "bold red", "declared": "yellow", "unasked": "dim", "holds": "green"}
WORDS = {
    "failed": "FAILS",
    "declared": "does not reproduce (declared)",
    "unasked": TOO_SMALL,
    "holds": "holds",
}


def out() -> Console:
    return Console(highlight=False)


def remarks() -> Console:
    return Console(stderr=True, highlight=False)


@contextlib.contextmanager
def progress_of(name: str) -> Iterator[ProgressCall]:
    """A bar with rate and time left on a terminal, lines in a log; neither counts the time that
    compiling takes.
    """
    console = remarks()
    if not console.is_terminal:
        yield PrintedProgress(sys.stderr)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("[progress.data.speed]{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("[progress.remaining]{task.fields[left]}"),
        TextColumn("[dim]{task.fields[what]}"),
    )
    time_left, _ = TimeLeft(), working_time()  # from here on it counts compilations
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(name, total=1.0, rate="", left="", what="compiling")

        def call(done: float, total: float, what: str) -> None:
            share, now = (done / total if total else 0.0), working_time()
            time_left.mark(now, share)
            rate, seconds = time_left.rate, time_left.seconds(now)
            bar.update(
                task,
                completed=share,
                what=what,
                rate="" if rate is None else f"{6000 * rate:.3g} %/min",
                left="" if seconds is None else f"{duration(seconds)} left",
            )

        yield call


def claims_table(record: Record) -> Table:
    """The claims of a run, failed ones first."""
    table = Table(
        title=f"{record.experiment} ({record.size}, seed {record.seed})", title_justify="left"
    )
    table.add_column("verdict")
    table.add_column("claim")
    table.add_column("ours", justify="right")
    table.add_column("expected")
    if any(claim.published is not None for claim in record.claims):
        table.add_column("published", justify="right")
    for claim in failed_first(record.claims):
        note = f"\n[dim]{escape(claim.note)}[/dim]" if claim.note else ""
        verdict = claim.verdict if claim.kind == "failed" else WORDS[claim.kind]
        row = [
            f"[{COLOURS[claim.kind]}]{escape(verdict)}[/]",
            escape(claim.text) + note,
            claim.ours,
            escape(claim.bound),
        ]
        if len(table.columns) == 5:
            row.append("–" if claim.published is None else f"{claim.published:.4g}")
        table.add_row(*row)
    return table


def failed_first(claims: Sequence[Judged]) -> list[Judged]:
    order = list(COLOURS)
    return sorted(claims, key=lambda claim: order.index(claim.kind))


def verdict_line(record: Record) -> str:
    """'12 hold, 1 FAILS', coloured."""
    several = {
        "failed": "FAIL",
        "declared": "do not reproduce (declared)",
        "unasked": TOO_SMALL,
        "holds": "hold",
    }
    parts = [
        f"[{COLOURS[kind]}]{count} {WORDS[kind] if count == 1 else several[kind]}[/]"
        for kind, count in record.counts.items()
        if count
    ]
    return ", ".join(parts) or "[dim]makes no claims[/dim]"


def print_experiments(
    experiments: Mapping[str, Experiment],
    papers: Mapping[str, str],
    others: Mapping[str, Experiment],
    words: Sequence[str] = (),
) -> bool:
    """A line for each experiment that matches all `words`, under its paper; whether there is any.

    On a terminal a line is cut to the width, in a file or a pipe it is whole.
    """
    console = out()
    groups = [
        (paper, about, [each for each in experiments.values() if each.paper == paper])
        for paper, about in papers.items()
    ]
    groups.append(("more", "A network of your own, and the lab's guided tours", [*others.values()]))
    matching = [
        (title, about, [each for each in group if matches(each, words)])
        for title, about, group in groups
    ]
    matching = [group for group in matching if group[2]]
    for title, about, group in matching:
        _line(console, Text.assemble((title, "bold"), "  ", (about, "bold")))
        column = max(len(each.name) for each in group)
        for each in group:
            mark = " *" if each.needs_data else ""
            _line(console, Text(f"  {each.name:{column}}  {each.title}{mark}"))
    if any(each.needs_data for _, _, group in matching for each in group):
        _line(
            console, Text("* needs data files; `wideflow doctor` says which are available", "dim")
        )
    return bool(matching)


def matches(experiment: Experiment, words: Sequence[str]) -> bool:
    """Whether every word occurs in the experiment's name, title, paper or figure."""
    text = f"{experiment.name} {experiment.summary}".lower()
    return all(word.lower() in text for word in words)


def _line(console: Console, text: Text) -> None:
    """One line, cut with an ellipsis where the terminal is narrower."""
    if console.is_terminal:
        text.truncate(console.width, overflow="ellipsis")
    console.print(text, soft_wrap=True)


def runs_table(records: Sequence[Record], damaged: Sequence[Damage]) -> Table:
    table = Table(title="Saved runs", title_justify="left")
    for heading in ("experiment", "size", "seed", "claims", "when (UTC)", "took", "address"):
        table.add_column(heading, overflow="fold")
    for record in records:
        table.add_row(
            record.experiment,
            record.size + ("*" if record.changed else ""),
            str(record.seed),
            verdict_line(record),
            record.started[:16].replace("T", " "),
            duration(record.seconds),
            record.address,
        )
    for damage in damaged:
        table.add_row(
            "[bold red]damaged[/]",
            "",
            "",
            f"[red]{escape(damage.reason)}[/]",
            "",
            "",
            damage.path.name,
        )
    return table


def findings_table(findings: Sequence[Finding]) -> Table:
    table = Table(title="wideflow doctor", title_justify="left")
    for heading in ("", "what", "found"):
        table.add_column(heading, overflow="fold")
    colours = {"well": "green", "note": "yellow", "wrong": "bold red"}
    for finding in findings:
        table.add_row(
            f"[{colours[finding.verdict]}]{finding.verdict}[/]",
            escape(finding.what),
            escape(finding.found),
        )
    return table


def print_done(done: Performed, figures: Sequence[pathlib.Path], briefly: bool = False) -> None:
    """What became of a run: its claims and files, or one line."""
    record, console = done.record, out()
    if briefly:
        source = "found, from a different version of the code" if done.outdated else "found"
        effort = source if done.found else f"{record.seconds:.1f} s"
        console.print(
            f"{record.experiment} ({record.size}): {verdict_line(record)} [dim]{effort}[/dim]"
        )
        return
    if record.claims:
        console.print(claims_table(record))
    console.print(f"{record.experiment}: {verdict_line(record)}; {record.status}")
    if done.found:
        if done.outdated:
            console.print(
                "[bold]wideflow's sources have changed since this run was computed[/bold]: its "
                "numbers and verdicts may be out of date."
            )
        console.print(
            f"Found in the folder, computed {record.started[:16].replace('T', ' ')} UTC at "
            f"revision {record.revision}; --fresh computes it again."
        )
    console.print(f"Table:  {record.path}\nFigure: {figures[0]}, {figures[1].name}", soft_wrap=True)


def print_json(value: Any) -> None:
    """Strict JSON on stdout; what is not finite is null."""
    print(json.dumps(plain(value, spelt=False), indent=1, ensure_ascii=False))
