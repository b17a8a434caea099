"""The tangent Gram matrix with torch.func: per-sample Jacobians by vmap of grad, then one
product.
"""

import math
import pathlib
import resource
import sys

import torch
from torch.func import grad, vmap

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from timing import best, network, report

torch.set_num_threads(2)
samples = int(sys.argv[1])
inputs, _, weights, signs = network(samples, 50, 2000)
x, w = torch.tensor(inputs), torch.tensor(weights)
mix = torch.tensor(signs / math.sqrt(2000))


def call():
    rows = vmap(grad(lambda w, one: torch.relu(one @ w / math.sqrt(50)) @ mix), (None, 0))(
        w, x
    ).reshape(samples, -1)
    return rows @ rows.T


before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
value = call()
memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
active = (x @ w > 0).double()
exact = (x @ x.T / 50) * (active @ active.T) / 2000
error = float((value - exact).abs().max() / exact.abs().max())
report(
    [
        {
            "program": "torch.func",
            "samples": samples,
            "seconds": best(call, 2),
            "memory": memory,
            "error": error,
        }
    ]
)
