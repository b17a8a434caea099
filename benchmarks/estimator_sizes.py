"""Time, memory and test error of the estimators as the table grows: Friedman's first function of
ten columns, noise of deviation 1.

Run:  python benchmarks/estimator_sizes.py --out estimator_sizes.jsonl
          [--methods adam flow] [--rows 1000 20000] [--seeds 0 1 2]
          [--show]   only the table of docs/estimators.md, from what is there

Every fit has a process of its own, whose memory peak (VmHWM) is taken after the fit and includes
the libraries. The error is the root mean square over 5000 fresh rows divided by the deviation of
their targets; the same share of the noise alone is the floor. What is in the file is not computed
again.
"""

import argparse
import json
import multiprocessing
import pathlib
import re
import time

import numpy as np

METHODS = {
    "adam": "`WideRegressor()`",
    "sgd": '`solver="sgd", width=512`',
    "descent": '`solver="descent", width=512`',
    "flow": '`solver="flow", width=512`',
    "boosting": "gradient boosting",
    "slow boosting": "boosting, rate 0.05, at most 1000 rounds",
}
ROWS = (1000, 2000, 4000, 20000)
FRESH = 5000


def estimator(method: str):
    if "boosting" in method:
        from sklearn.ensemble import HistGradientBoostingRegressor

        slow = {"max_iter": 1000, "learning_rate": 0.05, "early_stopping": True}
        more = slow if method == "slow boosting" else {}
        return HistGradientBoostingRegressor(random_state=0, **more)
    import wideflow as wf

    if method == "adam":
        return wf.WideRegressor(random_state=0)
    return wf.WideRegressor(solver=method, width=512, random_state=0)


def peak() -> float:
    """MiB at most held by this process."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def measure(method: str, rows: int, seed: int) -> dict:
    from sklearn.datasets import make_friedman1

    x, y = make_friedman1(rows + FRESH, n_features=10, noise=1.0, random_state=seed)
    model, test = estimator(method), y[rows:]
    before, began, cpu = peak(), time.perf_counter(), time.process_time()
    model.fit(x[:rows], y[:rows])
    seconds, cpu, after = time.perf_counter() - began, time.process_time() - cpu, peak()
    error = float(np.sqrt(np.mean((model.predict(x[rows:]) - test) ** 2)) / test.std())
    return {
        "method": method,
        "rows": rows,
        "seed": seed,
        "rmse": error,
        "floor": float(1 / test.std()),
        "seconds": seconds,
        "processor_seconds": cpu,
        "peak_mib": after,
        "before_mib": before,
        "epochs": int(model.n_iter_),
    }


def show(fits: list[dict]) -> str:
    """The Markdown table: error and seconds as means over seeds, the largest memory peak."""
    lines = ["| rows | " + " | ".join(METHODS.values()) + " |", "|---|" + "---|" * len(METHODS)]
    for rows in sorted({f["rows"] for f in fits}):
        cells = []
        for method in METHODS:
            mine = [f for f in fits if (f["method"], f["rows"]) == (method, rows)]
            error, seconds = (np.mean([f[k] for f in mine] or [0.0]) for k in ("rmse", "seconds"))
            most = max((f["peak_mib"] for f in mine), default=0.0)
            cells.append(f"{error:.4f}, {seconds:.1f} s, {most:.0f} MiB" if mine else "not run")
        lines.append(f"| {rows} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--rows", nargs="*", type=int, default=list(ROWS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    earlier = [json.loads(line) for line in lines]
    if options.show:
        print(show(earlier))
        return
    done = {(f["method"], f["rows"], f["seed"]) for f in earlier}
    cases = [(m, r, s) for s in options.seeds for r in options.rows for m in options.methods]
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as fresh:
        for one in cases:
            if one not in done:
                fit = fresh.apply(measure, one)
                print(fit, flush=True)
                with options.out.open("a") as file:
                    file.write(json.dumps(fit) + "\n")


if __name__ == "__main__":
    main()
