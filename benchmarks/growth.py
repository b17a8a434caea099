"""6. Growth: time and peak memory of a descent step against the width, and of the tangent Gram
matrix against the samples.
"""

import json
import resource
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from timing import best, network, report

import wideflow as wf

WIDTHS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
SAMPLES = (100, 300, 1_000, 3_000, 10_000)


def step(width: int):
    """Twenty samples of eight features, float32."""
    inputs, targets, weights, signs = network(20, 8, width)
    net = wf.Shallow(weights.T.astype(np.float32), signs.astype(np.float32))
    data = wf.Dataset(inputs.astype(np.float32), targets.astype(np.float32))
    objective, dynamics = data.objective(wf.losses.HalfSumSquares(), net), wf.GradientDescent(0.01)
    steps = max(3, 3_000_000 // width)

    @jax.jit
    def run(weights):
        def body(_, w):
            return dynamics.step(_with(net, w), None, objective)[0].weights

        return jax.lax.fori_loop(0, steps, body, weights)

    return best(lambda: jax.block_until_ready(run(net.weights)), 3) / steps


def gram(samples: int):
    inputs, _, weights, signs = network(samples, 8, 1000)
    net, x = wf.Shallow(weights.T, signs), jnp.asarray(inputs)
    return best(lambda: jax.block_until_ready(wf.observables.tangent_gram(net, x)), 2)


def _with(net, weights):
    return eqx.tree_at(lambda m: m.weights, net, weights)


def main(what: str, size: int):
    with jax.enable_x64(True):
        seconds = step(size) if what == "width" else gram(size)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    report([{"program": f"against the {what}", "size": size, "seconds": seconds, "memory": memory}])


if __name__ == "__main__":
    if len(sys.argv) == 3:
        main(sys.argv[1], int(sys.argv[2]))
    else:  # one process a size, so that the peak memory is that size's own
        rows = []
        for what, sizes in (("width", WIDTHS), ("samples", SAMPLES)):
            for size in sizes:
                done = subprocess.run(
                    [sys.executable, __file__, what, str(size)], capture_output=True, text=True
                )
                found = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
                print(what, size, found[-1] if found else done.stderr[-200:], flush=True)
                if found:
                    rows += json.loads(found[-1][7:])
        report(rows)
