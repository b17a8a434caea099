"""A sweep on the terminal and on its page: plan, status, outcome, table and figure."""

import pathlib
from collections.abc import Mapping
from typing import Any

import xarray as xr
from rich.markup import escape
from rich.table import Table

from .._core.counted import counted
from ..figures import FigureSpec
from ..report.page import Sheet, write_page
from ..report.static import save_figure
from ..runs.failures import FAILED, OK
from ..runs.files import write_whole
from ..runs.progress import duration
from ..runs.store import Store
from ..runs.sweeps.cluster import default_workers
from ..runs.sweeps.collect import SECONDS, STATUS
from ..runs.sweeps.estimate import calibration, estimate
from ..runs.sweeps.figures import draw
from ..runs.sweeps.plan import Plan, short, survey
from ..runs.sweeps.sweep import OUTDATED, Swept, sweep
from . import terminal

CHIPS = {
    "failed": "failed",
    "warning": "declared",
    "damaged, run again": "declared",
    OUTDATED: "declared",
}
SHOWN = 20  # lines of a table on the terminal; the page has all


def print_status(plan: Plan, out: pathlib.Path, as_json: bool) -> int:
    """Prints how many runs are done, running, failed and missing; returns the exit code."""
    store = Store(out, small=True)
    state = survey(plan, store)
    remaining = estimate(plan, store, state)
    counts = {
        "runs": len(plan.by_address),
        "done": len(state.done),
        "running": len(state.running),
        "failed": len(state.failed),
        "begun": len(state.unfinished),
        "damaged": len(state.damaged),
        "missing": len(plan.by_address) - len(state.done),
    }
    if as_json:
        troubles = [
            {"run": plan.describe(plan.by_address[a]), "reason": why}
            for a, why in state.failed.items()
        ]
        damaged = [{"file": str(d.path), "reason": d.reason} for d in state.damaged]
        terminal.print_json(
            counts
            | {
                "seconds_left": remaining and remaining.seconds,
                "troubles": troubles,
                "damage": damaged,
            }
        )
        return OK
    console = terminal.out()
    console.print(
        f"{plan.spec.name}: "
        + ", ".join(
            f"{count} {name}"
            for name, count in counts.items()
            if count or name in ("runs", "done", "missing")
        )
    )
    if remaining is not None and counts["missing"]:
        console.print(f"About {duration(remaining.seconds)} of work for one worker remains.")
    rows = [("failed", plan.describe(plan.by_address[a]), why) for a, why in state.failed.items()]
    rows += [("damaged", damage.path.name, damage.reason) for damage in state.damaged]
    if rows:
        console.print(_troubles_table(rows))
    return OK


def print_plan(
    plan: Plan, out: pathlib.Path, workers, threads: int, scheduler, as_json: bool
) -> int:
    """Counts, groups, and the time estimated from finished runs; if there are none yet, the two
    cheapest are run first, and saved.
    """
    store = Store(out, small=True)
    state = survey(plan, store)
    missing = [run for address, run in plan.by_address.items() if address not in state.done]
    remaining = estimate(plan, store, state)
    stopped = ""
    if remaining is None and missing:
        trial = sweep(
            {},
            out,
            workers=1,
            threads=threads,
            scheduler=scheduler,
            plan=plan,
            only=calibration(plan, missing),
        )
        stopped = trial.stopped or "; ".join(
            why for what, _, why in trial.troubles if what != OUTDATED
        )
        state = survey(plan, store)
        remaining = estimate(plan, store, state)
    count = workers or default_workers(threads)
    planned = {
        "runs": len(plan.by_address),
        "done": len(state.done),
        "missing": len(plan.by_address) - len(state.done),
        "programs": len(plan.groups),
        "workers": count,
        "seconds": remaining and remaining.seconds / count,
        "learnt_from": remaining.learnt_from if remaining else 0,
        "axes": {axis.name: len(axis.points) for axis in plan.spec.axes}
        | {"seed": len(plan.spec.seeds)},
    }
    if as_json:
        terminal.print_json(planned | {"stopped": stopped})
        return FAILED if stopped else OK
    console = terminal.out()
    axes = " × ".join(f"{name} {length}" for name, length in planned["axes"].items())
    console.print(
        f"{plan.spec.name}: {plan.spec.experiment.name} ({plan.spec.size}), {axes} = "
        f"{counted(planned['runs'], 'run')} in {counted(planned['programs'], 'compiled program')}"
    )
    console.print(
        f"{planned['done']} done, {planned['missing']} to run in {out} on "
        f"{counted(count, 'worker')} with {counted(threads, 'thread')} each"
    )
    if remaining is not None:
        console.print(
            f"About {duration(planned['seconds'])}, estimated from "
            f"{counted(remaining.learnt_from, 'finished run')}"
        )
    table = Table(title="Programs", title_justify="left")
    for heading in ("runs", "missing", "first of them"):
        table.add_column(heading, overflow="fold")
    for runs in list(plan.groups.values())[:SHOWN]:
        table.add_row(
            str(len(runs)),
            str(sum(run.address not in state.done for run in runs)),
            escape(plan.describe(runs[0])),
        )
    console.print(table)
    if len(plan.groups) > SHOWN:
        console.print(f"and {counted(len(plan.groups) - SHOWN, 'more program')}")
    if stopped:
        console.print(f"[bold red]The run for the estimate failed:[/] {escape(stopped)}")
    return FAILED if stopped else OK


def summary(swept: Swept) -> dict[str, Any]:
    """The outcome in plain values."""
    return {
        "sweep": swept.plan.spec.name,
        "runs": len(swept.plan.by_address),
        "found": len(swept.found),
        "computed": swept.computed,
        "missing": len(swept.missing),
        "workers_replaced": swept.replaced,
        "stopped": swept.stopped,
        "troubles": [
            {"what": what, "which": which, "why": why} for what, which, why in swept.troubles
        ],
    }


def write(swept: Swept, plot: Mapping[str, str] | None) -> tuple[list[pathlib.Path], str]:
    """The table, the figure where one is wanted, and the page, in a folder of the sweep's name.

    Returns the files, and why there is no figure where it cannot be drawn.
    """
    if len(swept.missing) == len(swept.plan.by_address):
        return [], ""
    folder, table = swept.store.folder / swept.plan.spec.name, swept.table
    files = [folder / "table.nc"]
    write_whole(files[0], bytes(table.to_netcdf(engine="h5netcdf")))
    spec, trouble = draw(table, {"y": SECONDS, "x": str(table[STATUS].dims[0])}), ""
    if plot is not None:
        try:
            spec = draw(table, plot)
        except ValueError as error:
            trouble = str(error)
        else:
            files += save_figure(spec, folder / "figure")
    page = folder / "index.html"
    _write_page(page, swept, spec, table, {path.name: path.name for path in files})
    return [*files, page], trouble


def _write_page(
    page: pathlib.Path, swept: Swept, spec: FigureSpec, table: xr.Dataset, links: Mapping[str, str]
) -> None:
    about = summary(swept)
    subject = {"experiment": f"{swept.plan.spec.experiment.name} ({swept.plan.spec.size})"}
    for axis in (*swept.plan.spec.axes, None):
        for name in axis.fields if axis else ("seed",):
            subject[name] = ", ".join(short(value.item()) for value in table[name].values[:SHOWN])
    subject |= {name: short(value) for name, value in swept.plan.spec.fixed.items()}
    lead = [
        f"{about['runs'] - about['missing']} of {counted(about['runs'], 'run')} available, "
        f"{about['computed']} of them computed by the last call."
    ]
    if swept.stopped:
        lead.append(f"The engine stopped: {swept.stopped}")
    sheets = []
    if swept.troubles:
        sheets.append(Sheet("Problems", ("", "run", "why"), tuple(swept.troubles), CHIPS))
    write_page(page, f"Sweep {swept.plan.spec.name}", lead, subject, sheets, spec, links)


def print_swept(swept: Swept, files: list[pathlib.Path]) -> None:
    about, console = summary(swept), terminal.out()
    if swept.troubles:
        console.print(_troubles_table(swept.troubles))
    replaced = ""
    if swept.replaced:
        verb = "was" if swept.replaced == 1 else "were"
        replaced = f"; {counted(swept.replaced, 'worker')} died and {verb} replaced"
    console.print(
        f"{about['sweep']}: {about['computed']} computed, {about['found']} found, "
        f"{about['missing']} missing of {counted(about['runs'], 'run')}{replaced}"
    )
    if swept.stopped:
        console.print(
            f"[bold red]The engine stopped:[/] {escape(swept.stopped)} The same command continues "
            "from here."
        )
    for path in files:
        console.print(f"Wrote {path}", soft_wrap=True)


def _troubles_table(rows) -> Table:
    table = Table(title="Problems", title_justify="left")
    for heading in ("", "run", "why"):
        table.add_column(heading, overflow="fold")
    for what, which, why in rows[:SHOWN]:
        table.add_row(
            f"[bold red]{what}[/]" if what == "failed" else f"[yellow]{what}[/]",
            escape(which),
            escape(why),
        )
    if len(rows) > SHOWN:
        table.add_row("", f"and {len(rows) - SHOWN} more", "")
    return table
