"""The shell command `wideflow`: parse, call, print. Heavy imports wait inside the commands."""

import pathlib
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ._core.counted import counted
from .runs.failures import FAILED, INTERRUPTED, OK, USAGE, CommandError, guarded, usage_errors
from .shell.certify import certify
from .shell.lab import lab
from .shell.options import (
    DebugOption,
    DeviceOption,
    DevicesOption,
    FlowOption,
    FreshOption,
    JsonOption,
    OutOption,
    PrecisionOption,
    SeedOption,
    SeedsOption,
    SetOption,
    Size,
    SizeOption,
)
from .shell.phase import phase
from .shell.sweep import sweep

app = typer.Typer(
    name="wideflow",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Train wide neural networks and compare them with theory.",
    epilog="Start with: wideflow run caron2023-figure1 --size smoke",
)


# of the click that this typer brings along or depends on
UsageError: Any = typer.BadParameter.__base__


@app.command("list")
def list_(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="Show only experiments whose name, title, paper or figure contains all "
            "these words."
        ),
    ] = None,
    runs: Annotated[
        bool, typer.Option("--runs", help="Show the saved runs instead of the experiments.")
    ] = False,
    out: OutOption = pathlib.Path("runs"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> int:
    """List the experiments, or the runs saved in a folder."""
    from dataclasses import asdict

    from .shell import terminal

    if runs:
        from .runs.store import Store

        if out.exists() and not out.is_dir():
            raise CommandError(f"`--out` must be a folder, got the file {out}.", USAGE)
        store = Store(out)
        records, damaged = store.records()
        if as_json:
            terminal.print_json(
                {
                    "runs": [record.about() | {"file": str(record.path)} for record in records],
                    "damaged": [
                        {"file": str(damage.path), "reason": damage.reason} for damage in damaged
                    ],
                    "unfinished": [str(path) for path in store.unfinished()],
                }
            )
            return OK
        if not (records or damaged):
            terminal.out().print(f"No runs in {out}. Make one with: wideflow run NAME --out {out}")
        else:
            terminal.out().print(terminal.runs_table(records, damaged))
        for path in store.unfinished():
            terminal.out().print(
                f"Unfinished: checkpoints in {path}; give the same command again to resume."
            )
        return OK
    from .experiments.registry import experiments, others, papers

    words = words or []
    if as_json:
        terminal.print_json(
            [
                {
                    "name": experiment.name,
                    "paper": experiment.paper,
                    "title": experiment.title,
                    "figure": experiment.figure,
                    "needs_data": experiment.needs_data,
                    "settings": {
                        size: asdict(settings) for size, settings in experiment.settings.items()
                    },
                }
                for experiment in (*experiments().values(), *others().values())
                if terminal.matches(experiment, words)
            ]
        )
    elif not terminal.print_experiments(experiments(), papers(), others(), words):
        raise CommandError(
            f"no experiment matches {' '.join(words)!r}; `wideflow list` shows all experiments.",
            USAGE,
        )
    return OK


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="An experiment; `wideflow list` shows them all.")],
    size: SizeOption = Size.default,
    set_: SetOption = None,
    seeds: SeedsOption = None,
    seed: SeedOption = 0,
    out: OutOption = pathlib.Path("runs"),
    device: DeviceOption = None,
    devices: DevicesOption = None,
    precision: PrecisionOption = None,
    as_json: JsonOption = False,
    fresh: FreshOption = False,
    flow: FlowOption = False,
    debug: DebugOption = False,
) -> int:
    """Run one experiment, save it, draw its figure and judge its claims.

    The exit code is 0 only if every claim holds, or was declared not to reproduce and does not.
    """
    from .experiments.registry import experiment
    from .runs.overrides import parse
    from .shell import terminal, work

    with usage_errors():
        entry = experiment(name)
        overrides = parse(set_ or ()) | work.common_overrides(
            entry, seeds, precision and precision.value, strict=True, devices=devices
        )
    done = work.perform_shown(entry, out, size.value, overrides, seed, device, fresh, flow)
    record = done.record
    figures = work.draw(entry, record)
    if as_json:
        terminal.print_json(
            record.about()
            | {
                "file": str(record.path),
                "figures": list(map(str, figures)),
                "found": done.found,
                "outdated": done.outdated,
            }
        )
    else:
        terminal.print_done(done, figures)
    return OK if record.ok else FAILED


@app.command()
def reproduce(
    paper: Annotated[
        str | None, typer.Argument(help="A paper, such as caron2023; by default all of them.")
    ] = None,
    size: SizeOption = Size.default,
    seeds: SeedsOption = None,
    seed: SeedOption = 0,
    out: OutOption = pathlib.Path("runs"),
    device: DeviceOption = None,
    precision: PrecisionOption = None,
    as_json: JsonOption = False,
    fresh: FreshOption = False,
    debug: DebugOption = False,
) -> int:
    """Run every experiment of a paper, or of all, and write the report.

    Experiments whose data files are missing are skipped, and named.
    """
    from .data.files import DataNotFoundError
    from .report.html import write_report
    from .runs.runner import find_device
    from .runs.store import Store
    from .shell import terminal, work

    with usage_errors():
        experiments = work.experiments_of(paper)
        find_device(device)
    Store(out).check_writable()
    outcomes: list[dict[str, Any]] = []
    for experiment in experiments:
        work.drop_compiled_programs()
        overrides = work.common_overrides(
            experiment, seeds, precision and precision.value, strict=False
        )
        try:
            done = work.perform_shown(experiment, out, size.value, overrides, seed, device, fresh)
            figures = work.draw(experiment, done.record)
        except DataNotFoundError as error:
            outcomes.append(
                {"experiment": experiment.name, "outcome": "skipped", "reason": str(error)}
            )
        except CommandError as error:
            if error.code == INTERRUPTED:
                raise
            reason = error.sentence.removeprefix(f"{experiment.name} stopped: ")
            outcomes.append({"experiment": experiment.name, "outcome": "stopped", "reason": reason})
        else:
            outcome = "acceptable" if done.record.ok else "failed"
            outcomes.append(
                {"experiment": experiment.name, "outcome": outcome, **done.record.counts}
            )
            if not as_json:
                terminal.print_done(done, figures, briefly=done.record.ok)
            continue
        terminal.remarks().print(
            f"[yellow]{experiment.name} {outcomes[-1]['outcome']}:[/yellow] "
            f"{outcomes[-1]['reason']}"
        )
    shown = any(line["outcome"] in ("acceptable", "failed") for line in outcomes)
    page = write_report(Store(out), out / "report.html") if shown else None
    bad = [line["experiment"] for line in outcomes if line["outcome"] in ("failed", "stopped")]
    if as_json:
        terminal.print_json({"experiments": outcomes, "report": page and str(page)})
    else:
        skipped = sum(line["outcome"] == "skipped" for line in outcomes)
        terminal.out().print(
            f"\n{len(outcomes) - len(bad) - skipped} of {counted(len(outcomes), 'experiment')} "
            "came out as declared"
            + (f", {skipped} skipped because their data files are missing" if skipped else "")
            + (f"; [bold red]these did not:[/] {', '.join(bad)}" if bad else "")
        )
        if page is not None:
            terminal.out().print(f"Report: {page.resolve()}", soft_wrap=True)
    return FAILED if bad else OK


@app.command()
def report(
    out: OutOption = pathlib.Path("runs"),
    file: Annotated[
        pathlib.Path | None,
        typer.Option(help="Where to write the page; by default report.html in that folder."),
    ] = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> int:
    """Turn the runs saved in a folder into one page that works from disk."""
    from .report.html import write_report
    from .runs.store import Store
    from .shell import terminal

    page = file or out / "report.html"
    if page.is_dir():
        raise CommandError(f"`--file` must name a file, got the folder {page}.", USAGE)
    store = Store(out)
    with usage_errors():
        records, damaged = found = store.records()
        write_report(store, page, found)
    for damage in damaged:
        terminal.remarks().print(
            f"[yellow]left out:[/yellow] {damage.path}: {damage.reason}", soft_wrap=True
        )
    if as_json:
        terminal.print_json({"report": str(page)})
    else:
        terminal.out().print(f"Report: {page.resolve()}", soft_wrap=True)
    return OK if records or not damaged else FAILED


@app.command()
def doctor(
    out: OutOption = pathlib.Path("runs"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> int:
    """Check this installation, and compare independent routes to the same numbers."""
    from .doctor import examine
    from .shell import terminal, work

    work.keep_compiled_programs()
    findings = examine(out)
    if as_json:
        from dataclasses import asdict

        terminal.print_json([asdict(finding) for finding in findings])
    else:
        terminal.out().print(terminal.findings_table(findings))
    return FAILED if any(finding.verdict == "wrong" for finding in findings) else OK


app.command()(certify)
app.command()(phase)
app.command()(sweep)
app.command()(lab)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(context: typer.Context, debug: DebugOption = False) -> int:
    """Compare the speed with that of other programs; further options go to benchmarks/run.py."""
    import subprocess

    script = pathlib.Path(__file__).parents[2] / "benchmarks" / "run.py"
    if not script.is_file():
        raise CommandError(
            "the benchmarks are part of the repository, not of the installed package; clone it and "
            "run `make bench` there."
        )
    return subprocess.call([sys.executable, str(script), *context.args])


def _commands() -> list[str]:
    commands = [(command.name, command.callback) for command in app.registered_commands]
    return [name or getattr(function, "__name__", "") for name, function in commands]


def _interrupt(*_) -> None:
    raise KeyboardInterrupt


def main(words: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code: 0 success, 1 failure, 2 wrong usage, 130
    interrupted.
    """
    words = list(sys.argv[1:] if words is None else words)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # a scheduler's stop is an interruption
        signal.signal(signal.SIGTERM, _interrupt)

    def call() -> int:
        try:
            return app(args=words or ["--help"], prog_name="wideflow", standalone_mode=False) or OK
        except typer.Exit as error:
            return error.exit_code
        except typer.Abort as error:
            raise KeyboardInterrupt from error
        except UsageError as error:
            subcommand = [words[0]] if words[0] in _commands() else []
            message = error.format_message().replace("Value error, ", "")
            message += "" if message.endswith((".", "?")) else "."
            if words[0] == "run" and hasattr(error, "option_name"):
                message += " Settings are changed by `--set FIELD=VALUE`."
            usage = " ".join(["wideflow", *subcommand, "--help"])
            raise CommandError(
                f"{message} `{usage}` shows how to use it.",
                USAGE,
            ) from error

    return guarded(call, words)


if __name__ == "__main__":
    sys.exit(main())
