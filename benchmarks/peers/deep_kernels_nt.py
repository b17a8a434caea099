"""Deep limit kernels with neural-tangents: the same cases as `deep_kernels.py`, compiled as a
whole.
"""
# ruff: noqa: B023 (the closures are called at once, inside their loop)

import pathlib
import sys

import jax

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from timing import DEEP_KERNEL_CASES, best, deep_kernel_inputs, report

jax.config.update("jax_enable_x64", True)
from neural_tangents import stax  # noqa: E402 (after the 64-bit flag)


def network(case):
    if case == "conv":
        block = [stax.Conv(64, (3, 3), padding="SAME", W_std=1.4, b_std=0.1), stax.Relu()]
        return stax.serial(*block, *block, stax.GlobalAvgPool(), stax.Dense(1))
    return stax.serial(*[stax.Dense(512, 1.4, 0.1), stax.Relu()] * 5, stax.Dense(1, 1.4, 0.1))


rows = []
for case in sys.argv[1:] or DEEP_KERNEL_CASES:
    kernel, x = network(case)[2], jax.numpy.asarray(deep_kernel_inputs(case))
    call = jax.jit(lambda x: (lambda k: (k.nngp, k.ntk))(kernel(x, None, ("nngp", "ntk"))))
    seconds = best(lambda: jax.block_until_ready(call(x)), 3)
    rows.append({"program": "neural-tangents", "case": case, "seconds": seconds})
    print(rows[-1], flush=True)
report(rows)
