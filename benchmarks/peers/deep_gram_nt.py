"""The tangent Gram matrix of a deep network with neural-tangents' empirical kernel, implementation
3 (structured).
"""

import pathlib
import resource
import sys

import jax
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from timing import best, deep_network, gram_row, report

jax.config.update("jax_enable_x64", True)
import neural_tangents as nt  # noqa: E402 (after the 64-bit flag)

samples = int(sys.argv[1])
inputs, matrices = deep_network(samples)


def apply(matrices, x):
    for matrix in matrices[:-1]:
        x = jax.nn.relu(x @ matrix / np.sqrt(matrix.shape[0]))
    return x @ matrices[-1] / np.sqrt(matrices[-1].shape[0])


kernel = jax.jit(nt.empirical_ntk_fn(apply, implementation=3, vmap_axes=0))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
value = np.asarray(kernel(inputs, None, matrices))
memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
seconds = best(lambda: kernel(inputs, None, matrices).block_until_ready(), 3)
report([gram_row("neural-tangents 3", samples, seconds, memory, value)])
