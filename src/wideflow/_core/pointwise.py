"""Values of an elementwise function of JAX at many points, by few programs.

Outside `jit` every operation of a function is a program of its own for each shape of its argument.
Quadrature rules have a shape of their own for nearly every call, so the points are filled up to the
next power of two and the function is compiled as a whole: one program a function and power.
"""

import functools
from collections.abc import Callable

import jax
import numpy as np

# points; more than that are not filled up, for they cost as much as compiling
FEWEST, MOST = 64, 1 << 18


def pointwise(function: Callable, points: np.ndarray) -> np.ndarray:
    """`function(points)`, in the host's memory."""
    size = points.size
    if not 0 < size <= MOST:
        return np.asarray(_compiled(function)(points))
    # filled up with one of the points: the function is defined there, so that nothing overflows or
    # warns
    filled = np.full(power_of_two(size, FEWEST), points.flat[0])
    filled[:size] = points.ravel()
    return np.asarray(_compiled(function)(filled))[:size].reshape(points.shape)


def power_of_two(size: int, least: int = 1) -> int:
    """The least power of two from `size`, at least 1, and `least`, one itself, on."""
    return max(least, 1 << (size - 1).bit_length())


@functools.lru_cache(maxsize=256)
def _compiled(function: Callable) -> Callable:
    return jax.jit(lambda points: function(points))
