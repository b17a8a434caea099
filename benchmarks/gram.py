"""2. The tangent Gram matrix: time, peak memory and error against an explicit Jacobian (and peers
in their own environments).
"""

import resource
import sys

import jax
import jax.numpy as jnp
import numpy as np
from timing import best, network, report

import wideflow as wf


def explicit(net, x):
    """The n x (mD) Jacobian by reverse mode, then one product."""
    rows = jax.vmap(
        jax.grad(
            lambda w, one: jax.nn.relu(one @ w / np.sqrt(len(one))) @ (net.scales * net.output)
        ),
        (None, 0),
    )
    flat = rows(net.weights, x).reshape(len(x), -1)
    return flat @ flat.T


def main(program: str, samples: int):
    with jax.enable_x64(True):
        inputs, _, weights, signs = network(samples, 50, 2000)
        net, x = wf.Shallow(weights.T, signs), jnp.asarray(inputs)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        call = (
            jax.jit(explicit)
            if program == "explicit Jacobian"
            else jax.jit(wf.observables.tangent_gram)
        )
        value = np.asarray(call(net, x))
        memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        seconds = best(lambda: jax.block_until_ready(call(net, x)), 3)
        active = (inputs @ weights > 0).astype(float)
        exact = (inputs @ inputs.T / 50) * (active @ active.T) / 2000
        error = float(np.max(np.abs(value - exact)) / np.max(np.abs(exact)))
    report(
        [
            {
                "program": program,
                "samples": samples,
                "seconds": seconds,
                "memory": memory,
                "error": error,
            }
        ]
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
