"""Runs an experiment on a bare compute node: standard library, JAX, xarray, SciPy and Matplotlib
are enough.

    python -m wideflow.runs.minimal_cli caron2023-figure1 --size paper --out results --set seeds=10

writes into the folder the record (netCDF; the same file that `wideflow run` writes, so that copying
it into a folder of runs makes it part of the report), `<stem>.claims.json`, and the figure as PNG
and PDF.
"""

import argparse
import json
import pathlib
import sys
from dataclasses import asdict

from .._core.errors import as_key
from ..experiments import registry
from ..experiments.base import SIZES
from ..report.static import save_figure
from .failures import FAILED, OK, guarded, usage_errors
from .files import write_whole
from .json_encoding import plain
from .overrides import parse
from .progress import PrintedProgress
from .runner import find_device, perform, settings_of
from .store import Store


def main(words: list[str] | None = None) -> int:
    """Runs the experiment that the words ask for; gives the exit code, as `wideflow run` does."""
    words = sys.argv[1:] if words is None else words
    arguments = _parsed(words)
    return guarded(lambda: _performed(arguments), words)


def _parsed(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m wideflow.runs.minimal_cli", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("name", nargs="?", help="the experiment; without one, lists them")
    parser.add_argument("--size", choices=SIZES, default="default")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="replace one setting"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", help="cpu, gpu, gpu:1; default is JAX's own choice")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs"))
    parser.add_argument("--fresh", action="store_true", help="run even if the result exists")
    parser.add_argument("--flow", action="store_true", help="gradient flow in place of descent")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser.parse_args(words)


def _performed(arguments: argparse.Namespace) -> int:
    if arguments.name is None:
        print(
            "\n".join(
                f"{name:34} {entry.summary}" for name, entry in registry.experiments().items()
            )
        )
        return OK
    with usage_errors():
        experiment = registry.experiment(arguments.name)
        overrides = parse(arguments.set)
        settings_of(experiment, arguments.size, overrides)
        find_device(arguments.device)
        as_key(arguments.seed)
        done = perform(
            experiment,
            Store(arguments.out),
            size=arguments.size,
            overrides=overrides,
            seed=arguments.seed,
            device=arguments.device,
            fresh=arguments.fresh,
            flow=arguments.flow,
            progress=PrintedProgress(sys.stderr),
        )
    record = done.record
    claims = json.dumps(
        plain([asdict(claim) for claim in record.claims], spelt=False), indent=1, ensure_ascii=False
    )
    write_whole(arguments.out / f"{record.stem}.claims.json", claims.encode())
    for claim in record.claims:
        print(f"{claim.verdict:>30}  {claim.text}: {claim.value:.6g} (expected {claim.bound})")
    save_figure(experiment.draw(record.table), arguments.out / record.stem)
    print(
        f"{record.path} in {record.seconds:.1f} s on {record.device}"
        + (" (found)" if done.found else "")
    )
    return OK if record.ok else FAILED


if __name__ == "__main__":
    sys.exit(main())
