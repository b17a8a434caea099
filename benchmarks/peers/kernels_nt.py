"""Limit kernels with neural-tangents: the NTK of one hidden layer whose read-out is frozen,
ReLU.
"""
# ruff: noqa: B023 (the closures are called at once, inside their loop)

import pathlib
import sys

import jax

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from timing import KERNEL_SIZES, best, network, report

jax.config.update("jax_enable_x64", True)
from neural_tangents import stax  # noqa: E402 (after the 64-bit flag)

_, _, kernel = stax.serial(stax.Dense(512), stax.Relu(), stax.Dense(1))
rows = []
for samples in KERNEL_SIZES:
    inputs = network(samples, 50, 10)[0]
    call = jax.jit(lambda x: kernel(x, None, ("ntk", "nngp")))
    rows.append(
        {
            "program": "neural-tangents",
            "samples": samples,
            "seconds": best(lambda: jax.block_until_ready(call(inputs).ntk), 3),
        }
    )
    print(rows[-1], flush=True)
report(rows)
