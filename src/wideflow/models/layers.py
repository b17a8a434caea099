r"""An architecture read as a function of a batch: every layer's forward pass, on arrays (sample,
\*position, channel).
"""

import itertools
import math
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._core.architecture import (
    AbstractLayer,
    Activate,
    AveragePool,
    Chain,
    Conv,
    Dense,
    Flatten,
    GlobalAveragePool,
    LayerNorm,
    Residual,
    SelfAttention,
    SumPool,
)

__all__ = ["forward"]

Batch = Float[Array, "sample ..."]
Weigh = Callable[[int, Dense | Conv, Batch], Batch]
"""What a weight layer does: its number in the order of `weight_layers`, its description, and what
comes in.
"""


def forward(
    architecture: AbstractLayer, x: Batch, weigh: Weigh, nodes: tuple[Array | None, ...]
) -> Batch:
    """The whole architecture on a batch; `nodes[l]` multiplies what the units of weight layer `l`
    pass on.
    """
    return _run(Chain(architecture), x, weigh, nodes, itertools.count())


def _run(chain: Chain, x, weigh: Weigh, nodes, numbers: Iterator[int]):
    waiting = None  # node scales of a dense layer, until its activation is through
    for position, layer in enumerate(chain.layers):
        if isinstance(layer, Dense | Conv):
            number = next(numbers)
            x, waiting = weigh(number, layer, x), nodes[number]
        elif isinstance(layer, SelfAttention):
            x = _attend(layer, x, weigh, numbers)
        elif isinstance(layer, Residual):
            body = _run(layer.body, x, weigh, nodes, numbers)
            around = x
            if layer.shortcut is not None:
                around = _run(layer.shortcut, x, weigh, nodes, numbers)
            x = around + body
        else:
            x = _fixed(layer, x)
        follows = chain.layers[position + 1] if position + 1 < len(chain.layers) else None
        if waiting is not None and not isinstance(follows, Activate):
            x, waiting = waiting * x, None
    return x


def _attend(layer: SelfAttention, x, weigh: Weigh, numbers: Iterator[int]):
    """Queries (or the keys in their place), keys and values of every head at every position, and
    the layer after the heads.
    """
    samples, positions = x.shape[0], x.shape[1:-1]
    *readers, last = layer.parts
    split = lambda h: h.reshape(samples, math.prod(positions), layer.heads, -1)
    read = [split(weigh(next(numbers), part, x)) for part in readers]
    # under 'linear' there are two readers and the keys are the queries: read[0] is read[-2]
    queries, keys, values = read[0], read[-2], read[-1]
    power = 1.0 if layer.scaling == "linear" else 0.5
    products = jnp.einsum("nahk,nbhk->nhab", queries, keys) / layer.key_width**power
    heads = jnp.einsum("nhab,nbhv->nahv", MECHANISMS[layer.mechanism](products), values)
    return weigh(next(numbers), last, heads.reshape(samples, *positions, -1))


MECHANISMS = {
    "softmax": lambda g: jax.nn.softmax(g, axis=-1),  # over the positions that are read
    "identity": lambda g: g,
    "relu": jax.nn.relu,
    "abs": jnp.abs,
}


def _fixed(layer: AbstractLayer, x):
    """A layer without weights."""
    if isinstance(layer, Activate):
        return layer.activation(x)
    if isinstance(layer, Flatten):
        return x.reshape(x.shape[0], -1)
    if isinstance(layer, GlobalAveragePool):
        return jnp.mean(x, axis=tuple(range(1, x.ndim - 1)))
    if isinstance(layer, LayerNorm):
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        return centred / jnp.sqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + layer.epsilon)
    if isinstance(layer, SumPool):
        return _window_sums(layer, x)
    if isinstance(layer, AveragePool):
        if layer.padding == "SAME":  # the mean over the window's pixels inside the image
            return _window_sums(layer, x) / _window_sums(layer, jnp.ones_like(x[:1, ..., :1]))
        return _window_sums(layer, x) / math.prod(layer.window)
    raise ValueError(f"`architecture` holds {type(layer).__name__}, which networks do not support.")


def _window_sums(layer: AveragePool | SumPool, x):
    x, padding = padded(layer, x)
    assert layer.strides is not None  # completed when the layer was built
    whole = (1, *layer.window, 1), (1, *layer.strides, 1)
    return jax.lax.reduce_window(x, np.zeros((), x.dtype), jax.lax.add, *whole, padding)


def padded(layer, x) -> tuple[Batch, str]:
    """Circular padding put on, so that 'VALID' windows remain; other paddings are left to JAX."""
    if layer.padding != "CIRCULAR":
        return x, layer.padding
    ends = [(0, 0)]
    for size, window, stride in zip(x.shape[1:-1], layer.window, layer.strides, strict=True):
        # as 'SAME' pads: ceil(size / stride) windows, the extra position at the end
        missing = max((-(-size // stride) - 1) * stride + window - size, 0)
        ends.append((missing // 2, missing - missing // 2))
    return jnp.pad(x, [*ends, (0, 0)], mode="wrap"), "VALID"


def convolve(layer: Conv, x, weights):
    """A convolution with weights (*window, channel in, channel out)."""
    x, padding = padded(layer, x)
    assert layer.strides is not None  # completed when the layer was built
    return jax.lax.conv_general_dilated(
        x, weights, layer.strides, padding, dimension_numbers=_numbers(len(layer.window))
    )


def patches(layer: Dense | Conv, x) -> Float[Array, "sample position fan_in"]:
    """What each output position of a weight layer sees of its input."""
    if isinstance(layer, Dense):
        return x.reshape(x.shape[0], -1, x.shape[-1])
    x, padding = padded(layer, x)
    assert layer.strides is not None  # completed when the layer was built
    # channels stand before the window here and behind it in the weights; only inner products over
    # both are taken, which do not see the order
    windows = jax.lax.conv_general_dilated_patches(
        x, layer.window, layer.strides, padding, dimension_numbers=_numbers(len(layer.window))
    )
    return windows.reshape(x.shape[0], -1, windows.shape[-1])


def _numbers(axes: int) -> jax.lax.ConvDimensionNumbers:
    """Channels last: (sample, *position, channel) and (*window, in, out)."""
    space = tuple(range(1, axes + 1))
    sides = (0, axes + 1, *space)
    return jax.lax.ConvDimensionNumbers(sides, (axes + 1, axes, *range(axes)), sides)
