"""One network over one and two CPU devices: strong scaling (the same network) and weak scaling (twice the neurons).

    python benchmarks/devices.py

Every device computes on one thread, so that two devices need two free cores. One process a case; milliseconds a step, best of three.
"""

import json
import os
import subprocess
import sys
import time

SAMPLES, FEATURES, STEPS = 100, 50, 40
WIDTHS = (10_000, 100_000)


def step_seconds(devices: int, width: int) -> float:
    """In a process of its own, called through `measured`."""
    import jax

    import wideflow as wf

    data = wf.data.sphere_sines(jax.random.key(0), SAMPLES, FEATURES)
    net = wf.Shallow.init(jax.random.key(1), features=FEATURES, width=width)
    times = []
    for _ in range(4):  # the first compiles
        began = time.perf_counter()
        wf.train(net, data, wf.GradientDescent(0.1), steps=STEPS, every=STEPS, devices=devices, engine="weights")  # fmt: skip
        once = time.perf_counter()
        wf.train(net, data, wf.GradientDescent(0.1), steps=3 * STEPS, every=3 * STEPS, devices=devices, engine="weights")  # fmt: skip
        times.append((time.perf_counter() - once - (once - began)) / (2 * STEPS))
    return min(times[1:])


def measured(devices: int, width: int) -> float:
    flags = f"--xla_force_host_platform_device_count={devices} --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    done = subprocess.run(
        [sys.executable, __file__, str(devices), str(width)], capture_output=True, text=True, check=True,
        env=os.environ | {"XLA_FLAGS": flags, "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"},
    )  # fmt: skip
    return json.loads(done.stdout)


def main() -> None:
    print(f"{SAMPLES} samples, {FEATURES} features, float64; milliseconds a step")
    for width in WIDTHS:
        one, two, twice = measured(1, width), measured(2, width), measured(2, 2 * width)
        print(f"width {width}: one device {1e3 * one:.2f}, two devices {1e3 * two:.2f}; twice the width on two {1e3 * twice:.2f}")  # fmt: skip
        print(f"  strong scaling {one / two:.2f} of 2, weak scaling {one / twice:.2f} of 1")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(step_seconds(int(sys.argv[1]), int(sys.argv[2]))))
    else:
        main()
