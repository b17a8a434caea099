r"""Sliding windows over positions, or over pairs of positions, along the leading axes of an array.

A convolution reads positions $si + a$ and $sj + a$ with one offset $a$ for both members of a pair,
since both see the same filter; pooling reads $si + a$ and $sj + b$ with an offset each.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array


def slide(x, axes: tuple[int, ...], window: int, stride: int, padding: str) -> Array:
    r"""$y_{i j \dots} = \sum_a x_{si+a, sj+a, \dots}$ over the given axes, which share the offset
    $a$.

    Args:
        x: any array; the axes `axes` have one common size.
        window, stride, padding: as in `Conv`; 'SAME' pads with zeros, 'CIRCULAR' with the other
            end.
    """
    size = x.shape[axes[0]]
    before, after, out = padding_of(size, window, stride, padding)
    if before or after:
        pads = [(before, after) if k in axes else (0, 0) for k in range(x.ndim)]
        x = jnp.pad(x, pads, mode="wrap" if padding == "CIRCULAR" else "constant")
    total = jnp.zeros((), x.dtype)
    for offset in range(window):
        part = x
        for axis in axes:
            # a slice and a sum for each offset: nothing larger than x is ever made
            last = offset + (out - 1) * stride + 1
            part = jax.lax.slice_in_dim(part, offset, last, stride, axis)
        total = total + part
    return total


def padding_of(size: int, window: int, stride: int, padding: str) -> tuple[int, int, int]:
    """How many positions are padded before and after, and how many come out."""
    if padding == "VALID":
        return 0, 0, (size - window) // stride + 1
    out = -(-size // stride)
    total = max((out - 1) * stride + window - size, 0)
    return total // 2, total - total // 2, out


def position_axes(k: int, pairs: bool) -> tuple[int, ...]:
    """The axes that belong to the k-th spatial axis: (H, H', W, W', ...) in pairs, (H, W, ...)
    else.
    """
    return (2 * k, 2 * k + 1) if pairs else (k,)


def convolve(x, layer, pairs: bool):
    r"""The mean over the filter of what it reads at both members of each pair of positions."""
    for k, (window, stride) in enumerate(zip(layer.window, layer.strides)):
        x = slide(x, position_axes(k, pairs), window, stride, layer.padding) / window
    return x


def pool(x, layer, pairs: bool, mean: bool):
    """Sums or means over windows, for each member of a pair on its own."""
    for k, (window, stride) in enumerate(zip(layer.window, layer.strides)):
        for axis in position_axes(k, pairs):
            size = x.shape[axis]
            x = slide(x, (axis,), window, stride, layer.padding)
            if mean:  # over the pixels inside the image: 'SAME' pads with nothing
                inside = jnp.ones(size, x.dtype)
                counts = slide(inside, (0,), window, stride, layer.padding)
                x = x / counts.reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    return x
