"""How times are taken: the best of several repeats, after a warm-up, in float64 unless said; and
how results leave a process.
"""

import itertools
import json
import time

import numpy as np


def best(call, repeats: int = 5) -> float:
    """Seconds of the fastest of `repeats` calls after one that is not counted; `call` must wait for
    its result.
    """
    call()
    spent = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        spent.append(time.perf_counter() - began)
    return min(spent)


def report(rows: list[dict]) -> None:
    """The last line of a measurement: its rows, for `run.py` to read."""
    print("RESULT " + json.dumps(rows, default=float), flush=True)


def network(samples: int, features: int, width: int, seed: int = 0):
    """Inputs on the sphere, targets, hidden weights (feature, width), output signs: the same
    numbers in every program.
    """
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((samples, features))
    inputs /= np.linalg.norm(inputs, axis=1, keepdims=True)
    targets = rng.standard_normal(samples)
    weights = rng.standard_normal((features, width))
    signs = rng.choice([-1.0, 1.0], width)
    return inputs, targets, weights, signs


DESCENT_SIZES = ((100, 50, 2000, 300), (412, 8, 2000, 100), (601, 5, 2000, 60), (20, 5, 200, 3000))
"""(samples, features, width, steps): Figure 1 of caron2023, its concrete and airfoil sets, and a
small case.
"""
GRAM_SIZES = (100, 500, 2000)
KERNEL_SIZES = (500, 2000, 5000)
DEEP_KERNEL_CASES = ("500", "2000", "5000", "conv")
"""Samples of a depth-5 ReLU network on 50 features, and a convolutional one with pooling on 200
images of 8 x 8 x 3.
"""


def deep_kernel_inputs(case: str) -> np.ndarray:
    shape = (200, 8, 8, 3) if case == "conv" else (int(case), 50)
    return np.random.default_rng(0).standard_normal(shape)


FLOW_CASES = (
    "concrete tanh",
    "energy tanh",
    "airfoil tanh",
    "concrete softplus",
    "energy softplus",
    "airfoil softplus",
    "concrete relu",
    "energy relu",
    "airfoil relu",
    "concrete tanh, 200 rows",
    "concrete tanh, gamma 0.5",
    "concrete relu, gamma 0.5",
)


def deep_network(
    samples: int, depth: int = 4, width: int = 1024, features: int = 50, seed: int = 0
):
    """Inputs, matrices (in, out) of the hidden layers and of one output, all N(0, 1) under NTK: the
    same numbers in every program.
    """
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((samples, features))
    sizes = [features, *[width] * depth, 1]
    return inputs, [rng.standard_normal(pair) for pair in itertools.pairwise(sizes)]


def gram_row(program: str, samples: int, seconds: float, memory: float, gram) -> dict:
    """One program's row; a corner of the matrix goes along, so that the programs can be
    compared.
    """
    corner = np.asarray(gram)[:4, :4].tolist()
    return {
        "program": program,
        "samples": samples,
        "seconds": seconds,
        "memory": memory,
        "corner": corner,
    }
