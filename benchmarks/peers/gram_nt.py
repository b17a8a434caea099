"""The tangent Gram matrix with neural-tangents' empirical kernel, implementations 1 (Jacobian
contraction) and 3 (structured).
"""

import pathlib
import resource
import sys

import jax
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from timing import best, network, report

jax.config.update("jax_enable_x64", True)
import neural_tangents as nt  # noqa: E402 (after the 64-bit flag)

implementation, samples = int(sys.argv[1]), int(sys.argv[2])
inputs, _, weights, signs = network(samples, 50, 2000)
mix = (signs / np.sqrt(2000))[:, None]


def apply(w, x):
    return jax.nn.relu(x @ w / np.sqrt(50)) @ mix


kernel = jax.jit(
    nt.empirical_ntk_fn(apply, implementation=implementation, vmap_axes=0), static_argnums=()
)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
value = np.asarray(kernel(inputs, None, weights))
memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
active = (inputs @ weights > 0).astype(float)
exact = (inputs @ inputs.T / 50) * (active @ active.T) / 2000
error = float(np.max(np.abs(value - exact)) / np.max(np.abs(exact)))
seconds = best(lambda: kernel(inputs, None, weights).block_until_ready(), 3)
report(
    [
        {
            "program": f"neural-tangents {implementation}",
            "samples": samples,
            "seconds": seconds,
            "memory": memory,
            "error": error,
        }
    ]
)
