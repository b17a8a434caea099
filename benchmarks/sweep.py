"""What a sweep costs beyond its runs: many small runs by hand in one loop, and the same as a sweep.

    python benchmarks/sweep.py --runs 1000 --workers 2

prints, per run, the processor time of a loop that saves nothing and of the same runs as a worker does them (reserved, checked, saved),
taken in turns so that a busy machine disturbs both alike; then the wall time of the whole sweep beside that of the loop.
"""

import argparse
import tempfile
import time

import jax

import wideflow as wf
from wideflow.experiments.registry import experiment
from wideflow.runs.sweeps import expand, read_spec
from wideflow.runs.sweeps.worker import Task, work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2000)
    asked = parser.parse_args()
    fixed = {"width": 256, "steps": asked.steps, "records": 10}
    spec = {"experiment": "train", "size": "smoke", "set": fixed, "seeds": asked.runs}

    chosen, plan = experiment("train"), expand(read_spec(spec))
    kind = type(chosen.settings["smoke"])
    tasks = [Task(run.address, plan.file_name(run), run.settings, run.seed) for run in plan.runs]

    def by_hand(run) -> None:
        chosen.run(kind(**run.settings), jax.random.key(run.seed), lambda *_: None)

    spent = {"loop": 0.0, "worker": 0.0}
    sample = min(asked.runs - 1, 50)
    with tempfile.TemporaryDirectory() as folder:
        by_hand(plan.runs[0])  # compiles
        work(folder, "train", "smoke", tasks[:1])
        for run, task in zip(plan.runs[1 : sample + 1], tasks[1:], strict=False):
            start = time.process_time()
            by_hand(run)
            middle = time.process_time()
            work(folder, "train", "smoke", [task])
            spent["loop"] += (middle - start) / sample
            spent["worker"] += (time.process_time() - middle) / sample
    with tempfile.TemporaryDirectory() as folder:
        moments: list[tuple[float, float]] = []
        swept = wf.sweep(
            spec, folder, workers=asked.workers,
            progress=lambda done, total, what: moments.append((time.perf_counter(), done)),
        )  # fmt: skip
        assert not swept.missing, swept.troubles
        warm = next(i for i, (_, done) in enumerate(moments) if done >= asked.runs // 5)
        (start, first), (end, last) = moments[warm], moments[-1]
        began = time.perf_counter()
        swept.table  # noqa: B018 - reading it is what is timed
        gather = (time.perf_counter() - began) / asked.runs
    began = time.perf_counter()
    for run in plan.runs[:sample]:
        by_hand(run)
    loop = (time.perf_counter() - began) / sample
    added = spent["worker"] - spent["loop"]
    print(
        f"processor time a run: loop {1e3 * spent['loop']:.1f} ms, worker {1e3 * spent['worker']:.1f} ms"
    )
    print(f"overhead a run: {1e3 * added:.1f} ms, {100 * added / spent['loop']:.1f} %")
    print(
        f"wall time a run: loop {1e3 * loop:.1f} ms, sweep with {asked.workers} workers {1e3 * (end - start) / (last - first):.1f} ms"
    )
    print(f"gathering the table: {1e3 * gather:.1f} ms a run")


if __name__ == "__main__":
    main()
