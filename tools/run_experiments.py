"""Runs many experiments side by side, each in a process of its own, and says how each ended.

    python tools/run_experiments.py --size default --jobs 2 --out runs/default
    python tools/run_experiments.py li2020 ren2023 --size paper --jobs 8 --out runs/paper

The first runs all of them, the second those whose names begin so.

Works on a bare node (`wideflow.runs.minimal_cli`). The exit code is that of the worst run: 0 where
every claim holds or is declared, 1 where one fails, 2 where a run stopped. A run that is cut short
by `--limit` resumes when the command is given again.
"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

from wideflow.papers import papers


def names(wanted: list[str]) -> list[str]:
    all_names = [name for paper in papers().values() for name in paper.experiments]
    names = [name for name in all_names if not wanted or any(name.startswith(w) for w in wanted)]
    if not names:
        raise SystemExit(f"no experiment begins with {wanted}; `wideflow list` shows all.")
    return names


def run(name: str, size: str, out: pathlib.Path, limit: float, threads: int) -> tuple[int, float]:
    environment = {
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # several processes share an accelerator
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
    } | os.environ
    command = [sys.executable, "-m", "wideflow.runs.minimal_cli", name, "--size", size]
    log, began = out / f"{name}.log", time.perf_counter()
    with log.open("w") as stream:
        try:
            code = subprocess.run(
                [*command, "--out", str(out)],
                stdout=stream,
                stderr=stream,
                env=environment,
                timeout=limit,
            ).returncode
        except subprocess.TimeoutExpired:
            code = 124
    return code, time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", help="beginnings of names; all without one")
    parser.add_argument("--size", default="default", choices=("smoke", "default", "paper"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", type=float, default=7200.0, help="seconds for one run")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/all"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    worst = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        jobs = {
            pool.submit(
                run, name, arguments.size, arguments.out, arguments.limit, arguments.threads
            ): name
            for name in names(arguments.names)
        }
        for job in concurrent.futures.as_completed(jobs):
            code, seconds = job.result()
            word = {0: "ok", 1: "a claim FAILS", 124: "cut short"}.get(code, "stopped")
            print(f"{jobs[job]:32} {word:14} {seconds:7.1f} s", flush=True)
            worst = max(worst, code if code < 2 else 2)
    return worst


if __name__ == "__main__":
    sys.exit(main())
