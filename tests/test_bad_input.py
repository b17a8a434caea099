"""Wrong input as a user types it, in a process without the tests' own type checks."""

import subprocess
import sys

import pytest

PREFIX = """
import numpy as np, jax, wideflow as wf
x, y = np.eye(3), np.ones(3)
net = wf.Shallow(np.eye(3), np.ones(3))
data = wf.Dataset(x, y)
"""

CASES = {
    "wf.train('net', data, wf.GradientDescent(0.1), steps=1)": "`model` must be a wideflow model, got str",
    "wf.train(net, data, 0.1, steps=1)": "`dynamics` must be one of wideflow's",
    "wf.train(net, data, wf.GradientDescent(0.1), steps=3, record=[3])": "`record` must hold observables",
    "wf.train(net, data, wf.GradientDescent(0.1), steps=3, precision='half')": "`precision` must be 'float32' or 'float64'",
    "wf.train(net, data, wf.GradientDescent(0.1), steps=2.5)": "`steps` must be a whole number",
    "wf.GradientDescent(-1)": "`rate` must be positive",
    "wf.GradientDescent(float('nan'))": "`rate` must be positive",
    "wf.scalings.Zipf(gamma=-0.1)": "`gamma` must lie in",
    "wf.scalings.Zipf(gamma=0.5, alpha=1.2)": "`alpha` must lie in",
    "wf.Dataset(x, y[:2])": "one row per sample",
    "wf.Dataset(x * np.nan, y)": "must be finite",
    "wf.Shallow(np.eye(3), np.ones(4))": "`output` must have shape",
    "wf.Shallow.init('seven', features=3, width=4)": "`key` must be",
    "wf.Shallow.init(jax.random.key(0), features=3, width=0)": "`width` must be a whole number",
    "wf.data.uci('boston')": "`name` must be",
    "wf.limits.kernels('relu')": "`architecture` must be a layer",
    "wf.architecture.Dense(8, weight_std=-1.0)": "`weight_std` must be positive",
}


@pytest.fixture(scope="module")
def answers():
    calls = list(CASES)
    script = (
        PREFIX
        + f"""
for call in {calls!r}:
    try:
        eval(call)
        print("accepted")
    except Exception as error:
        print(type(error).__name__, str(error).replace(chr(10), " "))
"""
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return dict(zip(calls, done.stdout.strip().splitlines(), strict=True))


@pytest.mark.parametrize("call", CASES)
def test_one_sentence_names_argument_value_and_way_out(answers, call):
    assert answers[call].startswith(("ValueError", "DataNotFoundError"))
    assert CASES[call] in answers[call]
