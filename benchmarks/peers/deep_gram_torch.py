"""The tangent Gram matrix of a deep network with torch.func: per-sample Jacobians by vmap of grad,
then a product a layer.
"""

import math
import pathlib
import resource
import sys

import torch
from torch.func import grad, vmap

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from timing import best, deep_network, gram_row, report

torch.set_num_threads(2)
samples = int(sys.argv[1])
inputs, matrices = deep_network(samples)
x, weights = torch.tensor(inputs), [torch.tensor(m) for m in matrices]


def output(weights, one):
    for matrix in weights[:-1]:
        one = torch.relu(one @ matrix / math.sqrt(matrix.shape[0]))
    return (one @ weights[-1] / math.sqrt(weights[-1].shape[0]))[0]


def call():
    rows = vmap(grad(output), (None, 0))(weights, x)
    flat = [part.reshape(samples, -1) for part in rows]
    return sum(part @ part.T for part in flat)


before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
value = call()
memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
report([gram_row("torch.func", samples, best(call, 1), memory, value)])
