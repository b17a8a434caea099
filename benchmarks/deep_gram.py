"""The tangent Gram matrix of four hidden layers of 1024 (ReLU, NTK, float64): time and peak memory;
peers in their own environments.
"""

import resource
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from timing import best, deep_network, gram_row, report

import wideflow as wf


def main(samples: int):
    with jax.enable_x64(True):
        inputs, matrices = deep_network(samples)
        net = wf.Deep.init(0, wf.mlp(4, 1024, "relu"), inputs.shape[1])
        arrays = [jnp.asarray(m) for m in matrices]
        shaped = [
            g.reshape(w.shape) for g, w in zip(arrays, jax.tree.leaves(net.weights), strict=True)
        ]
        weights = jax.tree.unflatten(jax.tree.structure(net.weights), shaped)
        net, x = eqx.tree_at(lambda n: n.weights, net, weights), jnp.asarray(inputs)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        value = np.asarray(wf.observables.tangent_gram(net, x))
        memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        seconds = best(
            lambda: jax.block_until_ready(jnp.asarray(wf.observables.tangent_gram(net, x))), 3
        )
    report([gram_row("wideflow", samples, seconds, memory, value)])


if __name__ == "__main__":
    main(int(sys.argv[1]))
