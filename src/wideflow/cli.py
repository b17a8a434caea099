"""The shell command `wideflow`: parse, call, print. Heavy imports wait inside the commands."""

import enum
import json
import pathlib
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from .shell.failures import (
    FAILED,
    INTERRUPTED,
    OK,
    USAGE,
    CommandError,
    asked_wrongly,
    guarded,
    sentence_of,
)

app = typer.Typer(
    name="wideflow", add_completion=False, pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Trains wide neural networks and says what theory says of them.",
    epilog="Start with: wideflow run caron2023-figure1 --size smoke",
)  # fmt: skip


UsageError = typer.BadParameter.__base__  # of the click that this typer brings along or depends on


class Size(enum.StrEnum):
    smoke = "smoke"
    default = "default"
    paper = "paper"


class Precision(enum.StrEnum):
    float32 = "float32"
    float64 = "float64"


SizeOption = Annotated[
    Size, typer.Option(help="smoke: seconds; default: minutes on two cores; paper: as published.")
]
OutOption = Annotated[
    pathlib.Path, typer.Option(help="The folder of runs: records, figures, report.")
]
SeedOption = Annotated[int, typer.Option(help="Seed of every random draw.")]
SeedsOption = Annotated[
    int | None, typer.Option(help="How many repetitions, in place of the size's own number.", min=1)
]
DeviceOption = Annotated[
    str | None, typer.Option(help="cpu, gpu or gpu:1; default is JAX's own choice.")
]
PrecisionOption = Annotated[
    Precision | None, typer.Option(help="Of training; theory is always in float64.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Compute again even if the run is in the folder.")
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="FIELD=VALUE", help="Replace one setting; may be given more than once."
    ),
]


@app.command("list")
def list_(
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

        store = Store(out)
        records, damaged = store.records()
        if as_json:
            _print_json(
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
                f"Unfinished: checkpoints in {path}; the command that began it goes on from there."
            )
        return OK
    from .experiments.registry import PAPERS, experiments

    found = list(experiments().values())
    if as_json:
        _print_json(
            [
                {
                    "name": experiment.name, "paper": experiment.paper, "title": experiment.title,
                    "figure": experiment.figure, "needs_data": experiment.needs_data,
                    "settings": {size: asdict(settings) for size, settings in experiment.settings.items()},
                }
                for experiment in found
            ]
        )  # fmt: skip
    else:
        terminal.out().print(terminal.experiments_table(found, PAPERS))
    return OK


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="An experiment; `wideflow list` shows all.")],
    size: SizeOption = Size.default,
    set_: SetOption = None,
    seeds: SeedsOption = None,
    seed: SeedOption = 0,
    out: OutOption = pathlib.Path("runs"),
    device: DeviceOption = None,
    precision: PrecisionOption = None,
    as_json: JsonOption = False,
    fresh: FreshOption = False,
    debug: DebugOption = False,
) -> int:
    """Run one experiment, save it, draw its figure and judge its claims.

    Exit code 0 only if every claim holds, or is declared as not reproducing and does not.
    """
    from .experiments.registry import experiment
    from .runs.overrides import parse
    from .shell import terminal

    with asked_wrongly():
        chosen = experiment(name)
        overrides = parse(set_ or ()) | _common_overrides(chosen, seeds, precision, strict=True)
    done = _perform(chosen, out, size.value, overrides, seed, device, fresh)
    record = done.record
    figures = _figures(chosen, record)
    if as_json:
        _print_json(
            record.about()
            | {"file": str(record.path), "figures": list(map(str, figures)), "found": done.found}
        )
    else:
        _print_done(terminal, done, figures)
    return OK if record.acceptable else FAILED


@app.command()
def reproduce(
    paper: Annotated[
        str | None, typer.Argument(help="A paper, such as caron2023; all of them if left out.")
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

    An experiment whose data files are not on this machine is skipped and named.
    """
    from .data.files import DataNotFoundError
    from .experiments.registry import PAPERS, experiments
    from .shell import terminal

    with asked_wrongly():
        chosen = _of_paper(paper, experiments(), PAPERS)
    told: list[dict[str, Any]] = []
    for experiment in chosen:
        overrides = _common_overrides(experiment, seeds, precision, strict=False)
        try:
            done = _perform(experiment, out, size.value, overrides, seed, device, fresh)
            figures = _figures(experiment, done.record)
        except DataNotFoundError as error:
            told.append({"experiment": experiment.name, "outcome": "skipped", "reason": str(error)})
        except CommandError as error:
            if error.code != FAILED:
                raise
            told.append(
                {"experiment": experiment.name, "outcome": "stopped", "reason": error.sentence}
            )
        else:
            outcome = "acceptable" if done.record.acceptable else "failed"
            told.append({"experiment": experiment.name, "outcome": outcome, **done.record.counts})
            if not as_json:
                _print_done(terminal, done, figures, briefly=done.record.acceptable)
            continue
        terminal.remarks().print(
            f"[yellow]{experiment.name} {told[-1]['outcome']}:[/yellow] {told[-1]['reason']}"
        )
    page = _report(out)
    bad = [line["experiment"] for line in told if line["outcome"] in ("failed", "stopped")]
    if as_json:
        _print_json({"experiments": told, "report": str(page)})
    else:
        skipped = sum(line["outcome"] == "skipped" for line in told)
        terminal.out().print(
            f"\n{len(told) - len(bad) - skipped} of {len(told)} experiments as declared"
            + (f", {skipped} skipped for want of data" if skipped else "")
            + (f"; [bold red]not so:[/] {', '.join(bad)}" if bad else "")
        )
        terminal.out().print(f"Report: {page.resolve()}", soft_wrap=True)
    return FAILED if bad else OK


@app.command()
def report(
    out: OutOption = pathlib.Path("runs"),
    file: Annotated[
        pathlib.Path | None,
        typer.Option(help="Where to put the page; default is report.html in the folder."),
    ] = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> int:
    """Turn the runs saved in a folder into one page that works from disk."""
    from .shell import terminal

    page = _report(out, file)
    if as_json:
        _print_json({"report": str(page)})
    else:
        terminal.out().print(f"Report: {page.resolve()}", soft_wrap=True)
    return OK


@app.command()
def doctor(
    out: OutOption = pathlib.Path("runs"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> int:
    """Look over this installation, and check independent routes to the same numbers against each other."""
    from .doctor import examine
    from .shell import terminal

    _keep_compiled_programs()
    findings = examine(out)
    if as_json:
        from dataclasses import asdict

        _print_json([asdict(finding) for finding in findings])
    else:
        terminal.out().print(terminal.findings_table(findings))
    return FAILED if any(finding.verdict == "wrong" for finding in findings) else OK


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(context: typer.Context, debug: DebugOption = False) -> int:
    """Measure speed against other programs; further options go to benchmarks/run.py."""
    import subprocess

    script = pathlib.Path(__file__).parents[2] / "benchmarks" / "run.py"
    if not script.is_file():
        raise CommandError(
            "the benchmarks are part of the source checkout, not of the installed package; clone the repository and run `make bench` there."
        )
    return subprocess.call([sys.executable, str(script), *context.args])


def _perform(experiment, out, size, overrides, seed, device, fresh):
    """Runs into the folder, with progress; what goes wrong comes out as one sentence."""
    from .data.files import DataNotFoundError
    from .runs.runner import find_device, perform, settings_of
    from .runs.store import Store
    from .shell import terminal

    with asked_wrongly():
        settings_of(experiment, size, overrides)
        find_device(device)
    _keep_compiled_programs()
    store = Store(out)
    try:
        with terminal.progress_of(experiment.name) as progress:
            return perform(
                experiment, store, size=size, overrides=overrides, seed=seed, device=device, fresh=fresh,
                progress=progress,
            )  # fmt: skip
    except KeyboardInterrupt as error:
        kept = (
            "the last checkpoint is kept; the same command goes on from there."
            if store.unfinished()
            else "it had no checkpoint yet."
        )
        raise CommandError(f"{experiment.name} was interrupted; {kept}", INTERRUPTED) from error
    except (DataNotFoundError, CommandError):
        raise
    except Exception as error:
        raise CommandError(f"{experiment.name} stopped: {sentence_of(error)}") from error


def _common_overrides(
    experiment, seeds: int | None, precision: Precision | None, strict: bool
) -> dict[str, Any]:
    """`--seeds` and `--precision` as settings; an experiment without such a field refuses if `strict`."""
    wanted = {"seeds": seeds, "precision": precision.value if precision else None}
    given = {name: value for name, value in wanted.items() if value is not None}
    fields = vars(experiment.settings["default"])
    missing = [name for name in given if name not in fields]
    if missing and strict:
        raise ValueError(
            f"`{experiment.name}` has no setting {missing[0]!r}, so --{missing[0]} means nothing to it."
        )
    return {name: value for name, value in given.items() if name in fields}


def _of_paper(paper: str | None, known: dict, papers: dict[str, str]) -> list:
    from ._core.errors import check_choice

    if paper is None:
        return list(known.values())
    check_choice("paper", paper, papers)
    return [experiment for experiment in known.values() if experiment.paper == paper]


def _figures(experiment, record) -> tuple[pathlib.Path, ...]:
    from .report.static import save_figure

    return save_figure(experiment.draw(record.table), record.path.with_suffix(""))


def _report(out: pathlib.Path, file: pathlib.Path | None = None) -> pathlib.Path:
    from .report.html import write_report
    from .runs.store import Store

    return write_report(Store(out), file or out / "report.html")


def _print_done(terminal, done, figures, briefly: bool = False) -> None:
    record, console = done.record, terminal.out()
    if briefly:
        console.print(
            f"{record.experiment} ({record.size}): {terminal.verdict_line(record)} [dim]{'found' if done.found else f'{record.seconds:.1f} s'}[/dim]"
        )
        return
    if record.claims:
        console.print(terminal.claims_table(record))
    console.print(f"{record.experiment}: {terminal.verdict_line(record)}; {record.status}")
    if done.found:
        console.print(
            f"Found in the folder, computed {record.started[:16].replace('T', ' ')} UTC at revision {record.revision}; --fresh computes it again."
        )
    console.print(f"Table:  {record.path}\nFigure: {figures[0]}, {figures[1].name}", soft_wrap=True)


def _print_json(value: Any) -> None:
    from .runs.plain import plain

    print(json.dumps(plain(value), indent=1, ensure_ascii=False))


def _keep_compiled_programs() -> None:
    """Turns JAX's persistent compilation cache on, so that the same shapes start at once next time."""
    import os

    import jax

    from .data.files import cache_folder

    if (
        jax.config.jax_compilation_cache_dir is None
        and "JAX_COMPILATION_CACHE_DIR" not in os.environ
    ):
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def _interrupt(*_) -> None:
    raise KeyboardInterrupt


def main(words: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code: 0 well, 1 failed, 2 asked wrongly, 130 interrupted."""
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
            known = (
                [words[0]]
                if words[0] in (command.name for command in app.registered_commands)
                else []
            )
            message = error.format_message().replace("Value error, ", "")
            raise CommandError(
                f"{message} `{' '.join(['wideflow', *known, '--help'])}` tells more.", USAGE
            ) from error

    return guarded(call, words)


if __name__ == "__main__":
    sys.exit(main())
