"""One network over several devices, and over two processes on loopback, against one device."""

import json
import math
import os
import re
import socket
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

# By one device in this process, and by several in processes of their own.
RUNS = """
import jax, numpy as np
import wideflow as wf

def tables(devices):
    data = wf.data.sphere_sines(jax.random.key(0), samples=12, features=6)
    O = wf.observables
    record = [O.KernelMinEigenvalue(), O.KernelDistance("spectral", relative=False), O.WeightMovement(), O.FeatureMovement(), O.Risk()]
    tables = {}
    for name, dynamics, far in (
        ("descent", wf.GradientDescent(0.5), {"steps": 30}),
        ("sgd", wf.SGD(0.2, batch=4), {"steps": 30}),
        ("flow", wf.GradientFlow(method="tsit5"), {"time": 3.0}),
    ):
        net = wf.Shallow.init(jax.random.key(1), features=6, width=32, scaling=wf.scalings.Zipf(0.5, 0.7), activation="tanh")
        run = wf.train(net, data, dynamics, record=record, every=10 if name != "flow" else 1.0, devices=devices, engine="weights", **far)
        tables[name] = {v: np.asarray(run.table[v]).tolist() for v in run.table}
        tables[name]["shards"] = len({s.device for s in run.model.weights.addressable_shards})
    return tables
"""

PROCESSES = """
import json, sys
import jax
port, index = sys.argv[1], int(sys.argv[2])
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=index)
exec(sys.argv[3])
print(json.dumps(tables("all")))
"""


def with_devices(count: int) -> dict[str, str]:
    """This process's environment, its cheap compilation included, with `count` devices on the
    CPU.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    return {**os.environ, "XLA_FLAGS": f"{flags} --xla_force_host_platform_device_count={count}"}


def launch(program: str, *words: str, devices: int) -> subprocess.Popen:
    command = [sys.executable, "-c", program, *words]
    return subprocess.Popen(
        command,
        env=with_devices(devices),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process):
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err[-3000:]
    return json.loads(out.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def single():
    names = {}
    exec(RUNS, names)
    return names["tables"](None)


@pytest.fixture(scope="module")
def four():
    """What a process with four devices computes, and what its devices exchange in `CASES`."""
    return answer(launch(EXCHANGE, RUNS, json.dumps(CASES), devices=4))


def compare(single, other, shards):
    for name, expected in single.items():
        assert other[name].pop("shards") == shards
        for variable, values in expected.items():
            if variable != "shards":
                assert_allclose(
                    other[name][variable],
                    values,
                    rtol=1e-12,
                    atol=1e-12,
                    err_msg=f"{name} {variable}",
                )


def test_four_devices_in_one_process(single, four):
    compare(single, four["tables"], shards=4)


def test_two_processes_on_loopback(single):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    both = [launch(PROCESSES, str(port), str(i), RUNS, devices=2) for i in range(2)]
    for process in both:
        compare(single, answer(process), shards=2)


EXCHANGE = """
import importlib, json, re, sys
import equinox as eqx, jax, numpy as np
import wideflow as wf
from wideflow._core.precision import double
from wideflow.training.devices import as_mesh
from wideflow.dynamics.losses import HalfSumSquares
from wideflow.training.ensemble import stack
steps = importlib.import_module("wideflow.training.train")._many_steps

@double
def exchanged(samples, width, outputs):
    keys = jax.random.split(jax.random.key(0), 3)
    data = wf.Dataset(jax.random.normal(keys[0], (samples, 6)), jax.random.normal(keys[1], (samples, outputs)[: 1 + (outputs > 1)]))
    output = np.ones((outputs, width))
    net = wf.Shallow(jax.random.normal(keys[2], (width, 6)), output if outputs > 1 else output[0], activation="tanh")
    m = stack(net, data, wf.GradientDescent(0.5), None, 0, HalfSumSquares(), None).placed(as_mesh("all"))
    args = (m.start, m.init(), m.objective, m.dynamics, m.constant(0.0), np.asarray(5))
    text = eqx.filter_jit(steps).lower(*args).compile().compiled.as_text()
    kinds = "all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute|collective-broadcast"
    return re.findall(rf"= (.*?) ({kinds})(?:-start)?\\(", text)

exec(sys.argv[1])
exchanges = [exchanged(*case) for case in json.loads(sys.argv[2])]
print(json.dumps({"tables": tables("all"), "exchanges": exchanges}))
"""
CASES = [(12, 32, 1), (12, 4096, 1), (20, 64, 1), (12, 32, 3)]  # samples, width, outputs


def test_a_step_exchanges_the_outputs_alone(four):
    """Of the compiled loop: one sum over the devices, of samples x outputs numbers, however many
    neurons there are.
    """
    for (samples, _, outputs), exchanges in zip(CASES, four["exchanges"], strict=True):
        assert [kind for _, kind in exchanges] == ["all-reduce"]
        shape = re.fullmatch(r"f64\[([\d,]+)\].*", exchanges[0][0])
        assert math.prod(map(int, shape[1].split(","))) == samples * outputs


def test_wrong_devices_are_refused():
    import wideflow as wf

    net, data = wf.Shallow(np.eye(3), np.ones(3)), wf.Dataset(np.eye(3), np.ones(3))
    for given, message in ((0, "between 1 and"), ("both", "'all', a count")):
        with pytest.raises(ValueError, match=message):
            wf.train(net, data, wf.GradientDescent(0.1), steps=1, devices=given)
