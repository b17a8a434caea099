"""One network over several devices, and over two processes on loopback, against one device."""

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

PROGRAM = """
import json, sys
import jax, numpy as np
mode, port, index = sys.argv[1], sys.argv[2], int(sys.argv[3])
if mode == "processes":
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=index)
import wideflow as wf
devices = None if mode == "one" else "all"
data = wf.data.sphere_sines(jax.random.key(0), samples=12, features=6)
O = wf.observables
record = [O.KernelGap(), O.KernelDrift(), O.WeightMovement(), O.FeatureMovement(), O.Risk()]
found = {}
for name, dynamics, far in (
    ("descent", wf.GradientDescent(0.5), {"steps": 30}),
    ("sgd", wf.SGD(0.2, batch=4), {"steps": 30}),
    ("flow", wf.GradientFlow(method="tsit5"), {"time": 3.0}),
):
    net = wf.Shallow.init(jax.random.key(1), features=6, width=32, scaling=wf.scalings.Zipf(0.5, 0.7), activation="tanh")
    run = wf.train(net, data, dynamics, record=record, every=10 if name != "flow" else 1.0, devices=devices, engine="weights", **far)
    found[name] = {v: np.asarray(run.table[v]).tolist() for v in run.table}
    shards = len({s.device for s in run.model.weights.addressable_shards})
    found[name]["shards"] = shards
print(json.dumps(found))
"""


def launch(mode, port=0, index=0, host_devices=1):
    environment = dict(
        os.environ, XLA_FLAGS=f"--xla_force_host_platform_device_count={host_devices}"
    )
    command = [sys.executable, "-c", PROGRAM, mode, str(port), str(index)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def answer(process):
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err[-3000:]
    return json.loads(out.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def single():
    return answer(launch("one"))


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


def test_four_devices_in_one_process(single):
    compare(single, answer(launch("devices", host_devices=4)), shards=4)


def test_two_processes_on_loopback(single):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    both = [launch("processes", port, i, host_devices=2) for i in range(2)]
    for process in both:
        compare(single, answer(process), shards=2)


def test_wrong_devices_are_refused():
    import wideflow as wf

    net, data = wf.Shallow(np.eye(3), np.ones(3)), wf.Dataset(np.eye(3), np.ones(3))
    for given, message in ((0, "between 1 and"), ("both", "'all', a count")):
        with pytest.raises(ValueError, match=message):
            wf.train(net, data, wf.GradientDescent(0.1), steps=1, devices=given)
