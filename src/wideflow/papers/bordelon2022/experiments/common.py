"""The task that all experiments share: a few random points on which features must move, and what is
read off kernels.
"""

import jax
import numpy as np

from ...._core.randomness import named_key

MEMORY = "8G"  # what the theory takes at the size `paper`; smaller sizes take less


def task(key, samples: int, features: int = 5):
    """Standard normal inputs and alternating targets of size one and a half."""
    inputs = np.asarray(jax.random.normal(named_key(key, "inputs"), (samples, features)), float)
    sizes = np.where(np.arange(samples) % 4 < 2, 1.0, 0.5)
    return inputs, sizes * (-1.0) ** np.arange(samples)


def distance(left, right):
    """Frobenius distance of the last two axes, relative to `right`."""
    gap = np.linalg.norm(np.asarray(left) - np.asarray(right), axis=(-2, -1))
    return gap / np.linalg.norm(np.asarray(right), axis=(-2, -1))
