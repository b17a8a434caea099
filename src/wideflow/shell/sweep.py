"""`wideflow sweep`: many runs from one description."""

import pathlib
from typing import Annotated

import typer

from ..runs.failures import FAILED, INTERRUPTED, OK, USAGE, CommandError, usage_errors
from .options import (
    DebugOption,
    JsonOption,
    SchedulerOption,
    SecurityOption,
    ThreadsOption,
    WorkersOption,
)

OutOption = Annotated[pathlib.Path, typer.Option(help="The folder for runs, shared by all sweeps.")]
PlotOption = Annotated[
    list[str] | None,
    typer.Option(
        "--plot",
        metavar="y=... x=... [hue=...]",
        help="Draw an observable over an axis, with bands and slopes.",
    ),
]


def sweep(
    spec: Annotated[
        pathlib.Path,
        typer.Argument(help="A YAML file; docs/guides/sweeps-on-a-cluster.md explains it."),
    ],
    more: Annotated[list[str] | None, typer.Argument(metavar="", help="", hidden=True)] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what would run and about how long it would take."),
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Show what is done, running, failed and missing.")
    ] = False,
    plot: PlotOption = None,
    workers: WorkersOption = None,
    threads: ThreadsOption = 1,
    scheduler: SchedulerOption = None,
    security: SecurityOption = None,
    out: OutOption = pathlib.Path("runs/sweeps"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> int:
    """Run every combination of settings and seeds in a file, and gather them in one table.

    Runs that are in the folder are not repeated; after an interruption the same command
    continues. The exit code is 0 only if every run has a result.
    """
    from ..runs.sweeps.figures import parse_plot
    from ..runs.sweeps.plan import expand
    from ..runs.sweeps.spec import read_spec
    from . import sweep_pages, terminal
    from .work import keep_compiled_programs

    with usage_errors():
        if more and not plot:
            raise ValueError(f"`sweep` takes one file, got {' '.join([str(spec), *more])!r}.")
        figure = parse_plot([*plot, *(more or ())]) if plot else None
        plan = expand(read_spec(spec))
    figure = figure or plan.spec.plot
    if status:
        return sweep_pages.print_status(plan, out, as_json)
    keep_compiled_programs()
    if dry_run:
        return sweep_pages.print_plan(plan, out, workers, threads, scheduler, as_json)
    swept = _performed(plan, out, workers, threads, scheduler, security)
    files, no_figure = sweep_pages.write(swept, figure)
    if as_json:
        terminal.print_json(sweep_pages.summary(swept) | {"files": list(map(str, files))})
    else:
        sweep_pages.print_swept(swept, files)
    if no_figure:
        raise CommandError(no_figure, USAGE)
    return FAILED if swept.missing else OK


def _performed(plan, out: pathlib.Path, workers, threads: int, scheduler, security):
    from ..runs.store import Store
    from ..runs.sweeps.plan import survey
    from ..runs.sweeps.sweep import sweep as perform
    from . import terminal

    try:
        with terminal.progress_of(plan.spec.name) as progress:
            return perform(
                {},
                out,
                workers=workers,
                threads=threads,
                scheduler=scheduler,
                security=security,
                progress=_with_link(progress),
                plan=plan,
            )
    except KeyboardInterrupt as error:
        done = len(survey(plan, Store(out)).done)
        raise CommandError(
            f"{plan.spec.name} was interrupted; {done} of {len(plan.by_address)} runs are saved in "
            f"{out}, and the same command continues from there.",
            INTERRUPTED,
        ) from error
    except ValueError as error:
        raise CommandError(str(error), USAGE) from error


def _with_link(progress):
    """The same progress, which also prints the engine's dashboard once."""
    from . import terminal

    def call(done: float, total: float, what: str) -> None:
        if what.startswith("dashboard "):
            terminal.remarks().print(f"The engine's {what}", soft_wrap=True)
            what = "starting workers"
        progress(done, total, what)

    return call
