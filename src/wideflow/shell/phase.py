"""`wideflow phase`: which regime is best on a user's own table."""

import pathlib
from typing import Annotated

import typer

from ..runs.failures import FAILED, INTERRUPTED, OK, USAGE, CommandError, usage_errors
from .certify import DropOption, SeparatorOption, TargetOption
from .options import (
    DebugOption,
    JsonOption,
    SchedulerOption,
    SecurityOption,
    SeedOption,
    ThreadsOption,
    WorkersOption,
)

AxisOption = Annotated[
    list[str] | None,
    typer.Option(
        "--axis",
        metavar="NAME[=LOW:HIGH]",
        help="One of two axes: richness, alpha, width, share, tail, weight_std, depth or rate, "
        "with its range LOW:HIGH, LOW:HIGH:COUNT or values V1,V2,...",
    ),
]
LossOption = Annotated[
    list[float] | None,
    typer.Option(
        help="Training loss at which to stop, below 1; several, in decreasing order, are compared."
    ),
]


def phase(
    data: Annotated[
        str,
        typer.Argument(
            help="A CSV file with a header line, or concrete, energy, airfoil, plant, mnist (the "
            "digits' parity), sphere-sines."
        ),
    ],
    target: TargetOption = None,
    drop: DropOption = None,
    separator: SeparatorOption = ",",
    axis: AxisOption = None,
    runs: Annotated[int, typer.Option(help="Maximum number of networks to train.", min=16)] = 120,
    minutes: Annotated[float | None, typer.Option(help="Maximum number of minutes.")] = 10.0,
    loss: LossOption = None,
    samples: Annotated[
        int, typer.Option(help="Maximum number of training rows per run.", min=10)
    ] = 400,
    folds: Annotated[int, typer.Option(help="Number of folds.", min=3)] = 5,
    particles: Annotated[
        int,
        typer.Option(help="Particles for the mean-field limit at the rich end; 0 omits it.", min=0),
    ] = 0,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="A setting for all networks, such as activation=tanh.",
        ),
    ] = None,
    workers: WorkersOption = None,
    threads: ThreadsOption = 1,
    scheduler: SchedulerOption = None,
    security: SecurityOption = None,
    seed: SeedOption = 0,
    out: Annotated[
        pathlib.Path, typer.Option(help="The folder for runs, page, figure and tables.")
    ] = pathlib.Path("runs/phase"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> int:
    """Find how rich and how wide a network should be for the data in a table.

    Networks are trained over a plane of two axes, refined where the regime or the error changes;
    the result is a map and a sentence. After an interruption the same command continues.
    """
    from ..phase import phase as find
    from ..phase.axes import parse_axis
    from ..phase.report import summary
    from . import terminal
    from .work import keep_compiled_programs

    keep_compiled_programs()
    with usage_errors():
        table = _table(data, target, tuple(drop or ()), separator.replace("\\t", "\t"))
        pair = [parse_axis(text) for text in axis or ("richness", "width")]
        settings = _settings(set_ or ())
    try:
        with terminal.progress_of(f"phase of {table.name}") as progress:
            plane = find(
                table,
                {one.name: one for one in pair},
                runs=runs,
                minutes=minutes,
                loss=loss,
                samples=samples,
                folds=folds,
                particles=particles,
                seed=seed,
                out=out,
                workers=workers,
                threads=threads,
                scheduler=scheduler,
                security=security,
                progress=progress,
                **settings,
            )
    except KeyboardInterrupt as error:
        raise CommandError(
            f"the plane was interrupted; its runs are saved in {out}, and the same command "
            "continues from there.",
            INTERRUPTED,
        ) from error
    except ValueError as error:
        raise CommandError(str(error), USAGE) from error
    except RuntimeError as error:
        raise CommandError(str(error), FAILED) from error
    files = plane.write(out)
    if as_json:
        terminal.print_json(summary(plane) | {"files": list(map(str, files))})
        return OK
    terminal.out().print(plane.sentence, soft_wrap=True)
    terminal.out().print(f"\n{summary(plane)['python']}", soft_wrap=True, markup=False)
    terminal.remarks().print(f"{plane.runs} runs; {plane.stopped}.", soft_wrap=True)
    for path in files:
        terminal.remarks().print(f"Wrote {path}", soft_wrap=True)
    return OK


def _table(data: str, target: str | None, drop: tuple[str, ...], separator: str):
    """The data by name, or from a file."""
    from ..data.files import UCI, mnist, uci
    from ..data.synthetic import sphere_sines
    from ..data.tables import read_csv
    from ..phase.images import parity

    if data in UCI:
        return uci(data)
    if data == "mnist":
        return parity(mnist(count=10_000))
    if data == "sphere-sines":
        return sphere_sines(0, samples=1000, features=10)
    return read_csv(data, target, drop=drop, constant="drop", separator=separator)


def _settings(texts) -> dict:
    """Settings as text, each read as its field's type."""
    from ..phase.network import Network, Training
    from ..runs.overrides import overridden, parse

    overrides = parse(texts)
    values = {}
    for name, text in overrides.items():
        kind = Network if name in Network.__dataclass_fields__ else Training
        values[name] = getattr(overridden(kind(), {name: text}, "phase"), name)
    return values
