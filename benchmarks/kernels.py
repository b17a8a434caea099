"""3. Limit kernels at several numbers of samples; both the tangent kernel and the one of the
outputs, as the peer gives them.
"""
# ruff: noqa: B023 (the closures are called at once, inside their loop)

import jax
import jax.numpy as jnp
from timing import KERNEL_SIZES, best, network, report

import wideflow as wf


def main():
    rows = []
    with jax.enable_x64(True):
        call = jax.jit(lambda x: (wf.limits.mean_ntk(x, "relu"), wf.limits.hidden_gram(x, "relu")))
        for samples in KERNEL_SIZES:
            x = jnp.asarray(network(samples, 50, 10)[0])
            seconds = best(lambda: jax.block_until_ready(call(x)), 3)
            rows.append({"program": "wideflow", "samples": samples, "seconds": seconds})
            print(rows[-1], flush=True)
    report(rows)


main()
