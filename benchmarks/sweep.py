"""What a sweep costs beyond its runs: many small runs by hand in one loop, and the same as a sweep.

    python benchmarks/sweep.py --runs 1000 --workers 2

prints seconds a run of the loop (nothing saved), of the sweep with all workers from the first record to the last, and the sweep's
overhead a run: its workers' time that is not computing, over the computing.
"""

import argparse
import pathlib
import tempfile
import time

import jax

import wideflow as wf
from wideflow.experiments.registry import experiment
from wideflow.runs import Store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2000)
    asked = parser.parse_args()
    fixed = {"width": 256, "steps": asked.steps, "records": 10}
    spec = {"experiment": "train", "size": "smoke", "set": fixed, "seeds": asked.runs}

    chosen = experiment("train")
    settings = type(chosen.settings["smoke"])(**{**vars(chosen.settings["smoke"]), **fixed})
    sample = min(asked.runs, 50)
    chosen.run(settings, jax.random.key(0), lambda *_: None)  # compiles
    began = time.perf_counter()
    for seed in range(sample):
        chosen.run(settings, jax.random.key(seed), lambda *_: None)
    by_hand = (time.perf_counter() - began) / sample

    with tempfile.TemporaryDirectory() as folder:
        moments: list[tuple[float, float]] = []
        began = time.perf_counter()
        swept = wf.sweep(
            spec, folder, workers=asked.workers,
            progress=lambda done, total, what: moments.append((time.perf_counter(), done)),
        )  # fmt: skip
        wall = time.perf_counter() - began
        assert not swept.missing, swept.troubles
        warm = next(i for i, (_, done) in enumerate(moments) if done >= min(20, asked.runs // 2))
        (start, first), (end, last) = moments[warm], moments[-1]
        a_run = (end - start) / (last - first) * asked.workers
        computing = sorted(r.seconds for r in Store(pathlib.Path(folder)).records()[0])
        inside = computing[len(computing) // 2]
        began = time.perf_counter()
        swept.table  # noqa: B018 - reading it is what is timed
        gather = (time.perf_counter() - began) / asked.runs
    print(f"one loop by hand             {1e3 * by_hand:8.2f} ms a run")
    print(
        f"sweep, a worker's time       {1e3 * a_run:8.2f} ms a run, of which {1e3 * inside:.2f} ms compute"
    )
    print(
        f"sweep, all workers together  {1e3 * a_run / asked.workers:8.2f} ms a run; {wall:.1f} s in all with the start of the workers"
    )
    print(f"gathering the table          {1e3 * gather:8.2f} ms a run")
    print(
        f"overhead a run               {100 * (a_run - inside) / inside:8.1f} % of its computing; against the loop {100 * (a_run / asked.workers - by_hand) / by_hand:+.1f} % of wall time"
    )


if __name__ == "__main__":
    main()
