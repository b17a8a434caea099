"""Gradient flow of a tanh network of three hidden layers of 512 on 200 rows, to 1 % of the loss:
evaluations and time against Tsit5.

python deep_flow.py                       takes about ten minutes on two cores
python deep_flow.py --width 64 --end 100  a small one

An evaluation is a forward and a backward pass over all rows, for both. The reference is the
exponential flow at tolerance 1e-4; Tsit5 runs over a stretch that takes `--seconds`, and what the
whole time would have cost is told in proportion. WIDEFLOW_DATA names the folder with the table
`concrete`.
"""

import argparse

import jax
from flow import LADDER, by_diffrax, by_gram, load
from timing import report

import wideflow as wf


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--end", type=float, default=1e4, help="time of the flow")
    parser.add_argument("--seconds", type=float, default=60, help="of Tsit5")
    options = parser.parse_args()
    with jax.enable_x64(True):
        data = load("concrete", options.rows)
        chain = wf.mlp(options.depth, options.width, "tanh")
        net = wf.Deep.init(0, chain, data.dimension)
        exact, *_ = by_gram(net, data, options.end, 1e-4)
        print({"program": "reference", "loss": exact}, flush=True)
        for tolerance in LADDER:
            loss, evaluations, steps, spent = by_gram(net, data, options.end, tolerance)
            error = abs(loss / exact - 1)
            if error <= 0.01:
                break
        ours = {
            "program": "wideflow gram",
            "tolerance": tolerance,
            "error": error,
            "steps": steps,
            "evaluations": evaluations,
            "seconds": spent,
        }
        print(ours, flush=True)
        _, evaluations, spent, share = by_diffrax(
            "tsit5", net, data, options.end, 1e-3, options.seconds
        )
        theirs = {
            "program": "Diffrax tsit5",
            "evaluations": evaluations / share,
            "seconds": spent / share,
            "share": share,
        }
        print(theirs, flush=True)
    for row in (ours, theirs):
        row["case"] = f"tanh, {options.depth} layers of {options.width}, {options.rows} rows"
    print(f"evaluations: {theirs['evaluations'] / ours['evaluations']:.1f} times fewer")
    report([ours, theirs])


if __name__ == "__main__":
    main()
