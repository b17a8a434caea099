"""Cross-validated error of the estimators against scikit-learn's on the four UCI sets.

Run:  WIDEFLOW_DATA=FOLDER python benchmarks/estimators.py [--folds 5] [--rows 1500] [--out docs/estimators.json]

All methods see the same folds. Kernel ridge uses the tangent kernel of the same network at infinite width (`wf.limits.mean_ntk`, bias column
included) with the ridge chosen by leave-one-out inside the fold; the others use scikit-learn's defaults on standardised inputs (the network
of scikit-learn with 2000 iterations, so that it converges). Error: root mean square, in units of the target's deviation.
"""

import argparse
import json
import pathlib
import time
import warnings

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import wideflow as wf

RIDGES = np.logspace(-8, 0, 17)


class TangentRidge:
    """Kernel ridge regression with the mean tangent kernel; the ridge by leave-one-out."""

    def __init__(self, activation: str = "relu"):
        self.activation = activation

    def _inputs(self, x):
        return np.concatenate([(x - self.mean) / self.deviation, np.ones((len(x), 1))], axis=1)

    def fit(self, x, y):
        self.mean, self.deviation = x.mean(0), np.where(x.std(0) > 0, x.std(0), 1.0)
        self.seen, self.offset = self._inputs(x), y.mean()
        kernel = np.asarray(wf.limits.mean_ntk(self.seen, self.activation))
        values, vectors = np.linalg.eigh(kernel)
        values, modes = np.maximum(values, 0.0), vectors.T @ (y - self.offset)
        errors = []
        for ridge in RIDGES * values[-1]:
            shrunk = values / (values + ridge)
            residual = y - self.offset - vectors @ (shrunk * modes)
            leverage = (vectors**2) @ shrunk
            errors.append(np.mean((residual / np.maximum(1 - leverage, 1e-12)) ** 2))
        ridge = (RIDGES * values[-1])[int(np.argmin(errors))]
        self.weights = vectors @ (modes / (values + ridge))
        return self

    def predict(self, x):
        return (
            np.asarray(wf.limits.mean_ntk(self._inputs(x), self.activation, self.seen))
            @ self.weights
            + self.offset
        )


def methods() -> dict:
    network = MLPRegressor(
        hidden_layer_sizes=(512,),
        max_iter=2000,
        early_stopping=True,
        n_iter_no_change=30,
        random_state=0,
    )
    return {
        "WideRegressor (Zipf 0.5, 0.7)": lambda: wf.WideRegressor(random_state=0),
        "WideRegressor (NTK)": lambda: wf.WideRegressor(scaling="ntk", random_state=0),
        "kernel ridge, tangent kernel": TangentRidge,
        "random forest": lambda: RandomForestRegressor(random_state=0),
        "gradient boosting": lambda: HistGradientBoostingRegressor(random_state=0),
        "scikit-learn's MLP": lambda: TransformedTargetRegressor(
            make_pipeline(StandardScaler(), network), transformer=StandardScaler()
        ),
    }


def compare(name: str, rows: int, folds: int) -> dict:
    data = wf.data.uci(name)
    order = np.random.default_rng(0).permutation(len(data))[:rows]
    x, y = data.inputs[order], data.targets[order]
    found = {"rows": len(order), "rows_in_all": len(data), "folds": folds, "methods": {}}
    for label, build in methods().items():
        errors, began = [], time.perf_counter()
        for fit, test in KFold(folds, shuffle=True, random_state=0).split(x):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                predicted = build().fit(x[fit], y[fit]).predict(x[test])
            errors.append(float(np.sqrt(np.mean((predicted - y[test]) ** 2)) / y.std()))
        seconds = (time.perf_counter() - began) / folds
        found["methods"][label] = {
            "rmse": float(np.mean(errors)),
            "spread": float(np.std(errors)),
            "seconds_a_fit": seconds,
        }
        print(
            f"{name:9} {label:30} {np.mean(errors):.3f} ± {np.std(errors):.3f}  {seconds:.1f} s a fit",
            flush=True,
        )
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--folds", type=int, default=5)
    options.add_argument("--rows", type=int, default=10_000, help="at most so many rows of a set")
    options.add_argument("--sets", nargs="*", default=["concrete", "energy", "airfoil", "plant"])
    options.add_argument("--out", type=pathlib.Path)
    given = options.parse_args()
    found = {name: compare(name, given.rows, given.folds) for name in given.sets}
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
