"""One network over several CPU devices: strong scaling (the same network) and weak scaling (as many
times the neurons).

    python benchmarks/devices.py [--counts 1 2 4 8] [--widths 10000 100000] [--out
    results/devices.json]

One process a case, held on as many cores as it has devices; best of three.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

SAMPLES, FEATURES, STEPS = 100, 50, 40


def step_seconds(devices: int, width: int) -> float:
    """In a process of its own, called through `measured`."""
    import jax

    import wideflow as wf

    data = wf.data.sphere_sines(jax.random.key(0), SAMPLES, FEATURES)
    net = wf.Shallow.init(jax.random.key(1), features=FEATURES, width=width)
    times = []
    for _ in range(4):  # the first compiles
        began = time.perf_counter()
        wf.train(
            net,
            data,
            wf.GradientDescent(0.1),
            steps=STEPS,
            every=STEPS,
            devices=devices,
            engine="weights",
        )
        once = time.perf_counter()
        wf.train(
            net,
            data,
            wf.GradientDescent(0.1),
            steps=3 * STEPS,
            every=3 * STEPS,
            devices=devices,
            engine="weights",
        )
        times.append((time.perf_counter() - once - (once - began)) / (2 * STEPS))
    return min(times[1:])


def measured(devices: int, width: int) -> float:
    cores = sorted(os.sched_getaffinity(0))
    if devices > len(cores):
        raise SystemExit(f"`--counts` {devices}: only {len(cores)} cores are free; ask for fewer.")
    flags = f"--xla_force_host_platform_device_count={devices}"
    done = subprocess.run(
        [sys.executable, __file__, str(devices), str(width)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        preexec_fn=lambda: os.sched_setaffinity(0, cores[:devices]),
    )
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--widths", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--out", type=pathlib.Path, help="a JSON file, written after every case")
    options, rows = parser.parse_args(), []
    print(
        f"{SAMPLES} samples, {FEATURES} features, float64, one core a device; milliseconds a step"
    )
    for width in options.widths:
        one = measured(1, width)
        for count in options.counts:
            strong = one if count == 1 else measured(count, width)
            weak = one if count == 1 else measured(count, count * width)
            rows.append(dict(devices=count, width=width, one=one, strong=strong, weak=weak))
            print(
                f"width {width:7}, {count:2} devices: the same network {1e3 * strong:8.2f} "
                f"(speed-up {one / strong:.2f}),"
                f" {count} times the neurons {1e3 * weak:8.2f} (efficiency {one / weak:.2f})",
                flush=True,
            )
            if options.out:
                options.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1].isdigit():
        print(json.dumps(step_seconds(int(sys.argv[1]), int(sys.argv[2]))))
    else:
        main()
