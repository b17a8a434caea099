"""4b. Easy flows, where nothing is stiff: `auto` against plain `tsit5` at the same tolerance, after
compilation.
"""

import jax
from timing import best, report

import wideflow as wf

EASY = {  # name: (samples, features, width, activation, time, records)
    "sphere, n=20, tanh": (20, 50, 200, "tanh", 10.0, 1),
    "sphere, n=20, tanh, 100 records": (20, 50, 200, "tanh", 10.0, 100),
    "sphere, n=100, relu": (100, 50, 2000, "relu", 10.0, 1),
    "sphere, n=200, softplus": (200, 50, 500, "softplus", 5.0, 1),
}


def measured(method: str, samples, features, width, activation, end, records) -> dict:
    """Evaluations, final loss and seconds of one method."""
    data = wf.data.sphere_sines(jax.random.key(0), samples=samples, features=features)
    net = wf.Shallow.init(jax.random.key(1), features=features, width=width, activation=activation)

    def run():
        return wf.train(
            net, data, wf.GradientFlow(1e-6, method=method), time=end, every=end / records
        )

    done, seconds = run(), best(run, repeats=3)
    numbers = {"evaluations": int(done.state.evaluations), "loss": float(done.table.loss[-1])}
    return {f"{method}_{name}": value for name, value in {**numbers, "seconds": seconds}.items()}


def main():
    rows = []
    for name, case in EASY.items():
        row = {"case": name, "program": "auto against tsit5"}
        row |= measured("auto", *case) | measured("tsit5", *case)
        row["ratio"] = row["auto_seconds"] / row["tsit5_seconds"]
        print(row, flush=True)
        rows.append(row)
    report(rows)


if __name__ == "__main__":
    main()
