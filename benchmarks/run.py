"""Runs every measurement side by side and writes the table, the JSON, a plot and
docs/performance.md.

Run:  make bench                                  everything (40 minutes on two quiet cores)
      python benchmarks/run.py --quick            small sizes only
      python benchmarks/run.py --only flow gram   some; the others keep their last numbers
      python benchmarks/run.py --write            only writes the page again
      python benchmarks/gpu.py                    on a machine with a GPU; its last line, saved
                                                  as results/gpu.json, joins the page
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

from environments import ENVIRONMENTS, build, python_of
from page import write_page
from timing import FLOW_CASES, GRAM_SIZES

HERE = pathlib.Path(__file__).parent
RESULTS = HERE / "results"


def commands(quick: bool) -> dict[str, list[list[str]]]:
    """Measurement -> the processes it takes, each printing its rows."""
    here, torch, nt = sys.executable, python_of("torch"), python_of("neural-tangents")
    sizes = GRAM_SIZES[:2] if quick else GRAM_SIZES
    gram = []
    for n in sizes:
        gram += [
            [here, "gram.py", "wideflow", str(n)],
            [nt, "peers/gram_nt.py", "3", str(n)],
            [nt, "peers/gram_nt.py", "1", str(n)],
        ]
        if n < 2000:  # at 2000 rows the Jacobian alone takes 1.6 GB
            gram += [
                [here, "gram.py", "explicit Jacobian", str(n)],
                [torch, "peers/gram_torch.py", str(n)],
            ]
    return {
        "descent": [[here, "descent.py"], [torch, "peers/descent_torch.py"]],
        "gram": gram,
        "kernels": [[here, "kernels.py"], [nt, "peers/kernels_nt.py"]],
        "deep_kernels": [[here, "deep_kernels.py"], [nt, "peers/deep_kernels_nt.py"]],
        "kernel_regression": [
            [
                *(here, "mnist_kernels.py", "--memory", "2GiB", "--kernels", "ntk"),
                *("--samples", "2000" if quick else "20000"),
            ]
        ],
        "flow": [
            *([here, "flow.py", case] for case in (FLOW_CASES[-3:] if quick else FLOW_CASES)),
            [here, "easy_flow.py"],
        ],
        "deep_gram": [
            [here, "deep_gram.py", "500"],
            [nt, "peers/deep_gram_nt.py", "500"],
            [torch, "peers/deep_gram_torch.py", "500"],
        ],
        "deep_flow": [[here, "deep_flow.py"]],
        "deep_training": [[here, "deep_training.py"]],
        "online": [[here, "online.py"]],
        "population": [[here, "population.py"]],
        "growth": [[here, "growth.py"]],
    }


def measure(command: list[str], limit: float) -> list[dict]:
    """The rows of one process; a fault is a row too."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "JAX_PLATFORMS": "cpu"}
    name = " ".join(pathlib.Path(part).name for part in command[1:])
    print(f"--- {name}", flush=True)
    try:
        done = subprocess.run(
            [command[0], *command[1:]],
            cwd=HERE,
            env=environment,
            capture_output=True,
            text=True,
            timeout=limit,
        )
    except (subprocess.TimeoutExpired, FileNotFoundError) as fault:
        return [{"program": name, "fault": str(fault)[:200]}]
    found = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not found:
        return [
            {
                "program": name,
                "fault": (done.stderr.strip().splitlines() or ["no result"])[-1][:200],
            }
        ]
    return json.loads(found[-1][7:])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=list(commands(True)))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--limit", type=float, default=1800, help="seconds for one process")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    place = RESULTS / "latest.json"
    table = json.loads(place.read_text()) if place.is_file() else {"measurements": {}}
    if not options.write:
        for name in ENVIRONMENTS:
            fault = build(name)
            if fault:
                print(f"{name} could not be built ({fault}); its rows will be missing.", flush=True)
        table["machine"] = {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        }
        for name, processes in commands(options.quick).items():
            if options.only and name not in options.only:
                continue
            rows = []
            table["measurements"][name] = {
                "when": time.strftime("%Y-%m-%d"),
                "load": os.getloadavg()[0],
                "rows": rows,
            }
            for process in processes:  # what was measured stays when a later one is cut short
                rows += measure(process, options.limit)
                temporary = place.with_suffix(".tmp")
                temporary.write_text(json.dumps(table, indent=1))
                temporary.replace(place)
    print(write_page(table, RESULTS, HERE.parent / "docs"))


if __name__ == "__main__":
    main()
