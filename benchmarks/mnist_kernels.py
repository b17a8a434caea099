"""All of MNIST by kernel regression on one accelerator: both kernels, time, memory and test error.

Run:  python benchmarks/mnist_kernels.py
          60,000 images, depth 3, float64 (one GPU with 40 GB or more)
      python benchmarks/mnist_kernels.py --samples 2000 --rows 500
          a small one, on any machine
      python benchmarks/mnist_kernels.py --samples 20000 --memory 2GiB --kernels ntk
          two cores, a minute, 2.5 GiB

WIDEFLOW_DATA names the folder with MNIST's four files. The last line is JSON, the one before it is
for `run.py`. Only `wideflow` from this checkout and what `import wideflow` needs are used.
"""

import argparse
import json
import math
import pathlib
import resource
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from timing import report

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "src"))
import wideflow as wf


def prepared(part, count):
    """Rows of unit mean square, targets 0.9 for the class and -0.1 for the others (as in
    lee2018).
    """
    data = wf.data.mnist(part, count=count)
    images = np.asarray(data.inputs) - 0.1307  # the mean pixel of the training images
    images *= math.sqrt(images.shape[1]) / np.linalg.norm(images, axis=1, keepdims=True)
    return images, np.asarray(data.targets) - 0.1


def peak() -> float:
    """GiB that the device held at most; of the whole process where the device is the processor."""
    stats = jax.local_devices()[0].memory_stats() or {}
    if "peak_bytes_in_use" in stats:
        return stats["peak_bytes_in_use"] / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # Linux counts in KiB


def progress_since(began):
    """Prints how far it is, at most every five seconds."""
    last = [began]

    def progress(done, total):
        if time.perf_counter() - last[0] > 5:
            last[0] = time.perf_counter()
            print(f"{last[0] - began:7.1f} s  {done} of {total}", flush=True)

    return progress


def measure(k, kernel, train, test, options):
    (x, y), (z, labels) = train, test
    began = time.perf_counter()
    size = float(jnp.mean(getattr(k, f"{kernel}_diagonal")(x)))
    answer = wf.limits.regress(
        k,
        x,
        y,
        kernel=kernel,
        ridge=options.ridge * size,
        rows=options.rows,
        memory=options.memory,
        progress=progress_since(began),
    )
    jax.block_until_ready(answer.coefficients)
    solved = time.perf_counter() - began
    outputs = wf.limits.apply_kernel(k, z, x, answer.coefficients, kernel=kernel)
    wrong = np.mean(np.argmax(np.asarray(outputs), 1) != np.argmax(labels, 1))
    return {
        "kernel": kernel,
        "samples": len(x),
        "precision": k.precision,
        "method": answer.method,
        "steps": answer.steps,
        "residual": answer.residual,
        "seconds_solve": solved,
        "seconds_predict": time.perf_counter() - began - solved,
        "test_error": float(wrong),
        "peak_gib": peak(),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--tests", type=int, default=10_000)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--rows", type=int, help="samples of a block; by the budget if not given")
    parser.add_argument("--memory", default="100GiB")
    parser.add_argument("--precision", default="float64", choices=("float32", "float64"))
    parser.add_argument("--ridge", type=float, default=1e-5, help="share of the mean diagonal")
    parser.add_argument("--kernels", nargs="+", default=("nngp", "ntk"), choices=("nngp", "ntk"))
    options = parser.parse_args()
    train, test = prepared("train", options.samples), prepared("test", options.tests)
    chain = wf.architecture.mlp(options.depth, weight_std=math.sqrt(2), bias_std=0.1)
    k = wf.limits.kernels(chain, precision=options.precision, memory="4GiB")
    rows = []
    for kernel in options.kernels:
        rows.append(measure(k, kernel, train, test, options))
        print(rows[-1], flush=True)
    report([{"program": "wideflow", **row} for row in rows])
    print(json.dumps({"device": str(jax.local_devices()[0]), "rows": rows}))


if __name__ == "__main__":
    main()
