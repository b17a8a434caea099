"""Cross-validated error of the estimators against scikit-learn's on the four UCI sets, as they come
and with nested selection.

Run:  WIDEFLOW_DATA=FOLDER python benchmarks/estimators.py --out estimators.jsonl
          [--sets concrete] [--folds 0 1] [--rows 2500]
          [--show [--methods "WideRegressor, default" ...]]   only the table, from what is there

All methods see the same five outer folds, shuffled by a seed that was used for nothing else (the
defaults of `WideRegressor` were chosen on folds of `CHOSEN_ON`). "As it comes" is a method at its
defaults; scikit-learn's network gets standardised columns and targets and 2000 iterations with
early stopping. The others choose, inside a fold, among six settings by their error on held-out
fifths of the training rows (`--inner` of them, the same for all), and are then fitted to all
training rows. Error: root mean square over the target's deviation. Time: processor seconds,
selection included. What is in the file is not computed again; the same set with another `--rows`
counts as another set.
"""

import argparse
import itertools
import json
import pathlib
import time
import warnings

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import wideflow as wf

SEED, FOLDS = 20261116, 5
CHOSEN_ON = 20261115  # the seed of the folds on which defaults were chosen
SETS = ("concrete", "energy", "airfoil", "plant")


def methods() -> dict:
    """Label -> (estimator, the six settings it chooses among)."""
    network = TransformedTargetRegressor(
        make_pipeline(
            StandardScaler(),
            MLPRegressor(max_iter=2000, early_stopping=True, n_iter_no_change=30, random_state=0),
        ),
        transformer=StandardScaler(),
    )
    inside = "regressor__mlpregressor__"
    return {
        "WideRegressor, default": (wf.WideRegressor(random_state=0), {}),
        "WideRegressor, solver='kernel'": (wf.WideRegressor(solver="kernel", random_state=0), {}),
        "scikit-learn's MLP, default": (network, {}),
        "gradient boosting, default": (HistGradientBoostingRegressor(random_state=0), {}),
        "WideRegressor": (
            wf.WideRegressor(random_state=0),
            {"scaling": ["zipf:0.5,0.7", "zipf:0.2,0.5", "ntk"], "activation": ["relu", "tanh"]},
        ),
        "random forest": (
            RandomForestRegressor(n_estimators=200, random_state=0),
            {"max_features": [1.0, 0.5, 0.33], "min_samples_leaf": [1, 3]},
        ),
        "gradient boosting": (
            HistGradientBoostingRegressor(random_state=0, early_stopping=False),
            {"learning_rate": [0.05, 0.1], "max_iter": [100, 300, 1000]},
        ),
        "scikit-learn's MLP": (
            network,
            {
                f"{inside}hidden_layer_sizes": [(512,), (100, 100)],
                f"{inside}alpha": [1e-4, 1e-2, 1.0],
            },
        ),
    }


def chosen(estimator, grid: dict, inner: int):
    """The estimator itself, or a search over its settings on held-out fifths."""
    if not grid:
        return estimator
    split = ShuffleSplit(inner, test_size=0.2, random_state=SEED + 1)
    return GridSearchCV(
        estimator, grid, scoring="neg_mean_squared_error", cv=split, error_score="raise"
    )


def judge(name: str, fold: int, label: str, inner: int, rows: int) -> dict:
    data = wf.data.uci(name)
    total, drawn = len(data), np.random.default_rng(SEED).permutation(len(data))[:rows]
    x, y = np.asarray(data.inputs)[drawn], np.asarray(data.targets)[drawn]
    fit, test = list(KFold(FOLDS, shuffle=True, random_state=SEED).split(x))[fold]
    estimator, grid = methods()[label]
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = chosen(estimator, grid, inner).fit(x[fit], y[fit])
    seconds = time.process_time() - began
    error = float(np.sqrt(np.mean((model.predict(x[test]) - y[test]) ** 2)) / y.std())
    picked = model.best_params_ if grid else {}
    return {
        "seed": SEED,
        "set": name,
        "rows": len(x),
        "rows_in_all": total,
        "fold": fold,
        "method": label,
        "rmse": error,
        "seconds": seconds,
        "inner": inner,
        "picked": {key.split("__")[-1]: value for key, value in picked.items()},
    }


def show(fits: list[dict]) -> str:
    """The Markdown table: mean and standard error over the outer folds that every method shown has
    been through, processor seconds a fold.
    """
    labels = [label for label in methods() if any(f["method"] == label for f in fits)]
    count = {(f["set"], f["fold"]): 0 for f in fits}
    for f in fits:
        count[f["set"], f["fold"]] += 1
    fits = [f for f in fits if count[f["set"], f["fold"]] == len(labels)]
    folds = {name: len({f["fold"] for f in fits if f["set"] == name}) for name in SETS}
    sets = [name for name in SETS if any(f["set"] == name for f in fits)]
    first = {n: next(f for f in fits if f["set"] == n) for n in sets}
    cell = lambda n, label: [f for f in fits if f["set"] == n and f["method"] == label]
    means = {
        (n, label): np.mean([f["rmse"] for f in cell(n, label)])
        for n in sets
        for label in labels
        if cell(n, label)
    }
    lines = [
        "| method | "
        + " | ".join(
            f"{n} ({f['rows']} of {f['rows_in_all']} rows, {folds[n]} folds)"
            for n, f in first.items()
        )
        + " |",
        "|---|" + "---|" * len(sets),
    ]
    for label in labels:
        cells = []
        for n in sets:
            errors = [f["rmse"] for f in cell(n, label)]
            if not errors:
                cells.append("")
                continue
            spread = np.std(errors, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else np.nan
            text = f"{np.mean(errors):.4f} ± {spread:.4f}"
            least = min(v for (m, _), v in means.items() if m == n)
            bold = "**" if means[n, label] == least else ""
            cells.append(
                f"{bold}{text}{bold}, {np.mean([f['seconds'] for f in cell(n, label)]):.0f} s"
            )
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--folds", nargs="*", type=int, default=list(range(FOLDS)))
    parser.add_argument("--methods", nargs="*", default=list(methods()))
    parser.add_argument(
        "--inner", type=int, default=1, help="held-out fifths a setting is judged on"
    )
    parser.add_argument("--rows", type=int, default=10_000, help="at most so many rows of a set")
    parser.add_argument("--seconds", type=float, default=np.inf, help="start nothing after so long")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    stored = [json.loads(line) for line in lines]
    earlier = [
        f
        for f in stored
        if f["seed"] == SEED
        and f["rows"] == min(options.rows, f["rows_in_all"])
        and f["method"] in options.methods
    ]
    if options.show:
        print(show(earlier))
        return
    done = {(f["set"], f["fold"], f["method"]) for f in earlier}
    cases = itertools.product(options.folds, options.sets, options.methods)
    pending = [
        (name, fold, label) for fold, name, label in cases if (name, fold, label) not in done
    ]
    began = time.perf_counter()
    for name, fold, label in pending:
        if time.perf_counter() - began > options.seconds:
            break
        fit = judge(name, fold, label, options.inner, options.rows)
        print(
            f"{name:9} {fold} {label:30} {fit['rmse']:.4f}  {fit['seconds']:.0f} s  "
            f"{fit['picked']}",
            flush=True,
        )
        with options.out.open("a") as file:
            file.write(json.dumps(fit) + "\n")


if __name__ == "__main__":
    main()
