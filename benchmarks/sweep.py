"""What a sweep costs beyond its runs: many small runs by hand in plain loops, and the same as a
sweep.

    python benchmarks/sweep.py --runs 1000 --workers 2

The loops by hand save nothing. One process a worker loops over its share of the runs, all side by
side, with the same number of threads as a worker: so both sides have the same cores, and a core
shared by two processes is as slow for the one as for the other. Loops, sweep, loops are timed in
turn, by the wall clock; compiling and importing is left out of the pace and told beside it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import jax

import wideflow as wf
from wideflow.experiments.registry import experiment
from wideflow.runs.sweeps import expand, read_spec
from wideflow.runs.sweeps.cluster import thread_environment


def description(runs: int, steps: int) -> dict:
    fixed = {"width": 256, "steps": steps, "records": 10}
    return {"experiment": "train", "size": "smoke", "set": fixed, "seeds": runs}


def loop(plan, first: int, stride: int) -> None:
    """The loop by hand over a share of the runs; it says when its first run, which compiles, and
    its last are done.
    """
    chosen = experiment("train")
    kind = type(chosen.settings["smoke"])
    moments = []
    for run in plan.runs[first::stride]:
        chosen.run(kind(**run.settings), jax.random.key(run.seed), lambda *_: None)
        moments.append(time.time())
    print(json.dumps([moments[0], moments[-1], len(moments)]))


def loops(asked) -> tuple[float, float]:
    """Seconds of one process a run, and seconds from the start until all is done."""
    began = time.time()
    words = [sys.executable, __file__, "--runs", str(asked.runs), "--steps", str(asked.steps)]
    crew = [
        subprocess.Popen(
            [*words, "--hand", str(i), str(asked.workers)],
            stdout=subprocess.PIPE,
            env=os.environ | thread_environment(1),
        )
        for i in range(asked.workers)
    ]
    answers = [json.loads(process.communicate()[0]) for process in crew]
    paces = [(last - first) / (count - 1) for first, last, count in answers]
    return sum(paces) / len(paces), max(last for _, last, _ in answers) - began


def swept(asked) -> tuple[float, float, float, float]:
    """Seconds of one worker a run (of the middle part), until all is done, of the whole call, of
    gathering the table.
    """
    began = time.time()
    moments: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        found = wf.sweep(
            description(asked.runs, asked.steps),
            folder,
            workers=asked.workers,
            progress=lambda done, total, what: moments.append((time.time(), done)),
        )
        ended = time.time()
        assert not found.missing, found.troubles
        start = next(m for m in moments if m[1] >= asked.runs // 5)
        end = next(m for m in moments if m[1] >= 9 * asked.runs // 10)
        done = next(m for m in moments if m[1] == asked.runs)
        pace = asked.workers * (end[0] - start[0]) / (end[1] - start[1])
        found.table  # noqa: B018 - reading it is what is timed
        return pace, done[0] - began, ended - began, time.time() - ended


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument(
        "--hand", type=int, nargs=2, metavar=("FIRST", "STRIDE"), help=argparse.SUPPRESS
    )
    asked = parser.parse_args()
    if asked.hand:
        return loop(expand(read_spec(description(asked.runs, asked.steps))), *asked.hand)
    before, sweep, after = loops(asked), swept(asked), loops(asked)
    hand, total = ((before[i] + after[i]) / 2 for i in range(2))
    pace, until_done, call, gathering = sweep
    print(f"{asked.runs} runs on {asked.workers} processes")
    print(
        f"a run: by hand {1e3 * hand:.2f} ms (before {1e3 * before[0]:.2f}, after "
        f"{1e3 * after[0]:.2f}), in the sweep {1e3 * pace:.2f} ms"
    )
    print(f"overhead a run: {1e3 * (pace - hand):.2f} ms, {100 * (pace / hand - 1):.1f} %")
    print(
        f"in all, with starting and compiling: by hand {total:.1f} s, sweep {until_done:.1f} s "
        f"until the last run, {call:.1f} s until it returns"
    )
    print(f"gathering the table: {1e3 * gathering / asked.runs:.2f} ms a run, once")


if __name__ == "__main__":
    main()
