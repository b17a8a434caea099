"""The options that commands share, each defined and explained once."""

import enum
import pathlib
from typing import Annotated

import typer


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
    pathlib.Path, typer.Option(help="The folder for runs: records, figures, report.")
]
# of 63 bits at most, as JAX's keys take it
SeedOption = Annotated[
    int, typer.Option(help="Seed for all random draws.", min=-(2**63), max=2**63 - 1)
]
SeedsOption = Annotated[
    int | None,
    typer.Option(
        help="Number of repetitions, instead of the size's default.", min=1, max=1_000_000
    ),
]
DeviceOption = Annotated[
    str | None, typer.Option(help="cpu, gpu or gpu:1; by default JAX chooses.")
]
DevicesOption = Annotated[
    int | None, typer.Option(help="Distribute the neurons over this many devices.", min=1)
]
PrecisionOption = Annotated[
    Precision | None,
    typer.Option(help="Precision of training; theory is always computed in float64."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Compute the run again even if it is in the folder.")
]
FlowOption = Annotated[
    bool,
    typer.Option(
        "--flow",
        help="Use gradient flow instead of full-batch descent, recorded at the same times.",
    ),
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="Change one setting; may be given more than once. An unknown FIELD lists them all.",
    ),
]
# of the processes that share a sweep's runs
WorkersOption = Annotated[
    int | None,
    typer.Option(help="Number of processes; default one per GPU, else one per core.", min=1),
]
ThreadsOption = Annotated[
    int, typer.Option(help="Threads for XLA and BLAS in each process.", min=1, max=1024)
]
SchedulerOption = Annotated[
    str | None, typer.Option(help="Address of a running Dask scheduler, such as tls://host:8786.")
]
SecurityOption = Annotated[
    pathlib.Path | None,
    typer.Option(help="Folder with the certificate and key of that scheduler."),
]
