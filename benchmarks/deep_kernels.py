"""Deep limit kernels: both kernels of a depth-5 ReLU network at several sizes, and of a
convolutional one with pooling.

Run:  python deep_kernels.py               all cases
      python deep_kernels.py 500 2000      some sizes of the dense network, or 'conv'
"""
# ruff: noqa: B023 (the closures are called at once, inside their loop)

import sys

import jax
from timing import DEEP_KERNEL_CASES, best, deep_kernel_inputs, report

import wideflow as wf
from wideflow import architecture as a


def chain(case):
    if case == "conv":
        block = [a.Conv(64, (3, 3), weight_std=1.4, bias_std=0.1), a.Activate("relu")]
        return a.Chain(*block, *block, a.GlobalAveragePool(), a.Dense(1))
    return a.mlp(depth=5, width=512, weight_std=1.4, bias_std=0.1)


def main():
    rows = []
    with jax.enable_x64(True):
        for case in sys.argv[1:] or DEEP_KERNEL_CASES:
            k, x = wf.limits.kernels(chain(case)), jax.numpy.asarray(deep_kernel_inputs(case))
            seconds = best(lambda: jax.block_until_ready(k.both(x)), 3)
            rows.append({"program": "wideflow", "case": case, "seconds": seconds})
            print(rows[-1], flush=True)
    report(rows)


main()
