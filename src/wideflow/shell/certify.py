"""`wideflow certify`: the theorems on a user's own table."""

import pathlib
import warnings
from typing import Annotated

import typer

from ..runs.failures import OK, usage_errors
from .options import DebugOption, JsonOption, SeedOption

TargetOption = Annotated[
    str | None,
    typer.Option(help="Name or position of the target column; by default the last one."),
]
DropOption = Annotated[
    list[str] | None, typer.Option(help="A column to leave out; may be given more than once.")
]
SeparatorOption = Annotated[
    str, typer.Option(help="The separator between the values of a line: ',', ';' or a tab.")
]
WidthOption = Annotated[int, typer.Option(help="Width of the network.", min=1)]
ScalingOption = Annotated[
    str, typer.Option(help="ntk, mean-field, zipf:GAMMA,ALPHA or abc:A1,A2;B1,B2;C.")
]
ActivationOption = Annotated[str, typer.Option(help="relu, tanh, erf, gelu, ...")]
TrainOption = Annotated[
    bool, typer.Option("--train", help="Also run the flow and compare every prediction with it.")
]
SamplesOption = Annotated[
    int | None,
    typer.Option(help="Use at most this many rows; default 2000, or 200 with --train.", min=1),
]
DeltaOption = Annotated[
    float,
    typer.Option("--failure-probability", "--delta", help="Allowed probability of failure."),
]
RawOption = Annotated[
    bool,
    typer.Option(
        "--raw", help="Use the numbers unchanged: no standardising, no bias column, no unit ball."
    ),
]
FolderOption = Annotated[
    pathlib.Path | None, typer.Option(help="Write a page, a figure and the JSON into this folder.")
]


def certify(
    file: Annotated[
        pathlib.Path, typer.Argument(help="A CSV file with a header line, plain or compressed.")
    ],
    target: TargetOption = None,
    drop: DropOption = None,
    separator: SeparatorOption = ",",
    width: WidthOption = 4096,
    scaling: ScalingOption = "ntk",
    activation: ActivationOption = "relu",
    train: TrainOption = False,
    samples: SamplesOption = None,
    delta: DeltaOption = 0.1,
    raw: RawOption = False,
    seed: SeedOption = 0,
    out: FolderOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> int:
    """Report what theory guarantees for a network on the data in a CSV file.

    Unless --raw is given, the table is standardised, duplicate rows are merged, a bias column is
    appended and the rows are scaled into the unit ball; every step is reported.
    """
    from .._core.scalings import parse_scaling
    from ..certify.build import certify as build
    from ..data.prepare import prepare
    from ..data.tables import read_csv
    from ..models.shallow import Shallow
    from . import certify_pages, terminal
    from .work import keep_compiled_programs

    keep_compiled_programs()
    with usage_errors():
        data = read_csv(
            file,
            target,
            drop=tuple(drop or ()),
            constant="keep",
            separator=separator.replace("\\t", "\t"),
        )
        notes: tuple[str, ...] = ()
        if not raw:
            data, notes = prepare(data)
        network = Shallow.init(
            seed,
            features=data.dimension,
            width=width,
            scaling=parse_scaling(scaling),
            activation=activation,
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            certificate = build(
                network,
                data,
                train,
                failure_probability=delta,
                samples=samples,
                key=seed,
                notes=notes,
            )
    for warning in caught:
        terminal.remarks().print(f"[yellow]warning:[/yellow] {warning.message}", soft_wrap=True)
    if as_json:
        terminal.print_json(certificate.to_dict())
    else:
        terminal.out().print(certify_pages.tables(certificate), soft_wrap=False)
    if out is not None:
        for path in certify_pages.write(certificate, out):
            terminal.remarks().print(f"Wrote {path}", soft_wrap=True)
    return OK
