r"""Architectures as descriptions: what the layers are, without a single array.

`models.Deep` reads a description as a finite network, `limits.kernels` as infinite-width kernels.
The two readings share nothing but this file, so that their agreement is evidence.

A layer's numbers mean, with $n$ its fan-in,
$$h_i = \frac{\sigma_w}{\sqrt n} \sum_j W_{ij} x_j + \sigma_b\, b_i, \qquad W_{ij}, b_i \sim N(0,
  1)$$
in the NTK parametrisation; other parametrisations move the factors between forward pass, start and
learning rate, not the function's law at the start. Inputs are one sample without a batch axis:
`(feature,)`, or `(*position, channel)` for images and sequences (channels last).
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from .activations import Activation, ActivationLike, activation as as_activation
from .errors import (
    check_choice,
    check_count,
    check_flag,
    check_kind,
    check_nonnegative,
    check_positive,
)

__all__ = [
    "AbstractLayer",
    "Activate",
    "AveragePool",
    "Chain",
    "Conv",
    "Dense",
    "Flatten",
    "GlobalAveragePool",
    "LayerNorm",
    "Residual",
    "SelfAttention",
    "SumPool",
    "mlp",
    "with_width",
]

PADDINGS = ("SAME", "VALID", "CIRCULAR")
ATTENTION = ("softmax", "identity", "relu", "abs")
ATTENTION_SCALINGS = ("linear", "sqrt")


class AbstractLayer:
    """One layer of an architecture; `output_shape` says what it makes of one sample's shape."""

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        raise NotImplementedError


def _check_std(name: str, value: float | None, *, zero: bool) -> None:
    if value is None:
        return
    (check_nonnegative if zero else check_positive)(name, value)


def _check_window(name: str, value: tuple[int, ...]) -> tuple[int, ...]:
    if not isinstance(value, tuple | list) or not value:
        raise ValueError(
            f"`{name}` must be one number per spatial axis, such as (3, 3), got {value!r}."
        )
    for size in value:
        check_count(name, size)
    return tuple(int(size) for size in value)


@dataclass(frozen=True)
class Dense(AbstractLayer):
    r"""$h = \sigma_w n^{-1/2} W x + \sigma_b b$ over the last axis.

    Args:
        width: units that come out.
        weight_std: $\sigma_w$.
        bias_std: $\sigma_b$; None for a layer without bias.
        trained: whether the layer's weights and bias are trained; False freezes both.
        node_scaling: a scaling whose `node_scales(width)` times $\sqrt{\text{width}}$ multiply what
            each unit hands to the next layer (caron2023's node weights in any hidden layer); None
            for equal weights.
    """

    width: int
    weight_std: float = 1.0
    bias_std: float | None = None
    trained: bool = True
    node_scaling: object | None = None

    def __post_init__(self):
        check_count("width", self.width)
        _check_std("weight_std", self.weight_std, zero=False)
        _check_std("bias_std", self.bias_std, zero=True)
        check_flag("trained", self.trained)
        if self.node_scaling is not None and not callable(
            getattr(self.node_scaling, "node_scales", None)
        ):
            raise ValueError(
                "`node_scaling` must be one of `wf.scalings`, such as `Zipf(0.5, 0.7)`, got "
                f"{self.node_scaling!r}."
            )

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if not shape:
            raise ValueError("`Dense` needs at least one axis of features, got a single number.")
        return (*shape[:-1], self.width)


@dataclass(frozen=True)
class Conv(AbstractLayer):
    r"""Convolution over all axes but the last, with fan-in (window size) x (channels in).

    Args:
        channels: channels that come out.
        window: size of the filter, one number a spatial axis.
        strides: step of the filter, one number a spatial axis; 1 everywhere if None.
        padding: 'SAME' (zeros), 'VALID' or 'CIRCULAR'.
        weight_std, bias_std, trained: as in `Dense`.
    """

    channels: int
    window: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    padding: str = "SAME"
    weight_std: float = 1.0
    bias_std: float | None = None
    trained: bool = True

    def __post_init__(self):
        check_count("channels", self.channels)
        object.__setattr__(self, "window", _check_window("window", self.window))
        _complete_strides(self)
        check_choice("padding", self.padding, PADDINGS)
        _check_std("weight_std", self.weight_std, zero=False)
        _check_std("bias_std", self.bias_std, zero=True)
        check_flag("trained", self.trained)

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*_slid(self, shape), self.channels)


@dataclass(frozen=True)
class AveragePool(AbstractLayer):
    """Means over windows; with 'SAME' padding the mean is over the window's pixels inside the
    image.

    Args:
        window: pixels along each position axis.
        strides: steps from window to window along each axis; the window itself if None.
        padding: 'VALID', 'SAME' or 'CIRCULAR'.
    """

    window: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    padding: str = "VALID"

    def __post_init__(self):
        object.__setattr__(self, "window", _check_window("window", self.window))
        _complete_strides(self, self.window)
        check_choice("padding", self.padding, PADDINGS)

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*_slid(self, shape), shape[-1])


@dataclass(frozen=True)
class SumPool(AbstractLayer):
    """Sums over windows.

    Args:
        window: pixels along each position axis.
        strides: steps from window to window along each axis; the window itself if None.
        padding: 'VALID', 'SAME' or 'CIRCULAR'.
    """

    window: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    padding: str = "VALID"

    def __post_init__(self):
        object.__setattr__(self, "window", _check_window("window", self.window))
        _complete_strides(self, self.window)
        check_choice("padding", self.padding, PADDINGS)

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*_slid(self, shape), shape[-1])


@dataclass(frozen=True)
class GlobalAveragePool(AbstractLayer):
    """The mean over all positions: `(*position, channel)` to `(channel,)`."""

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        _check_spatial(self, shape)
        return (shape[-1],)


@dataclass(frozen=True)
class Flatten(AbstractLayer):
    """All axes into one."""

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (math.prod(shape),)


@dataclass(frozen=True)
class LayerNorm(AbstractLayer):
    r"""$(x - \bar x)/\sqrt{\mathrm{var}(x) + \epsilon}$ over the last axis, without trained scale
    and shift.

    Args:
        epsilon: $\epsilon$, which keeps the root away from 0.
    """

    epsilon: float = 1e-12

    def __post_init__(self):
        _check_std("epsilon", self.epsilon, zero=True)

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape


@dataclass(frozen=True)
class SelfAttention(AbstractLayer):
    r"""Every position reads all positions, with weights from products of what they hold (hron2020).

    Each head $h$ has queries, keys and values $Q_h, K_h, V_h$, dense layers of the input without
    bias; with $m$ the key width
    $$f(x) = \sigma_w\,N^{-1/2}\,W\,\big[\zeta(G_h)\,V_h\big]_h + \sigma_b\, b, \qquad
      G_h = K_hK_h^\top/m \ \text{('linear')} \quad\text{or}\quad G_h = Q_hK_h^\top/\sqrt m
      \ \text{('sqrt')},$$
    $N$ the heads times the value width. Under 'linear' queries are keys, as independent ones would
    give $G = 0$ at infinite width; it has a limit for every $\zeta$, 'sqrt' only for the identity.

    Args:
        width: channels that come out.
        heads: number of heads; the limit takes heads and key width to infinity.
        key_width, value_width: channels of keys and values of one head.
        scaling: 'linear' or 'sqrt'.
        mechanism: $\zeta$, over the positions that are read: 'softmax', 'identity', 'relu' or
            'abs'.
        query_key_std: the product of the deviations $\sigma$ of queries and keys.
        value_std: $\sigma$ of the values.
        weight_std, bias_std: $\sigma_w$ and $\sigma_b$ of the layer that comes after the heads;
            None for no bias.
        trained: whether all of it is trained; False freezes it.
    """

    width: int
    heads: int = 8
    key_width: int = 64
    value_width: int = 64
    scaling: str = "linear"
    mechanism: str = "softmax"
    query_key_std: float = 1.0
    value_std: float = 1.0
    weight_std: float = 1.0
    bias_std: float | None = None
    trained: bool = True

    def __post_init__(self):
        for name in ("width", "heads", "key_width", "value_width"):
            check_count(name, getattr(self, name))
        check_choice("scaling", self.scaling, ATTENTION_SCALINGS)
        check_choice("mechanism", self.mechanism, ATTENTION)
        for name in ("query_key_std", "value_std", "weight_std"):
            _check_std(name, getattr(self, name), zero=False)
        _check_std("bias_std", self.bias_std, zero=True)
        check_flag("trained", self.trained)

    @property
    def parts(self) -> tuple[Dense, ...]:
        """Its dense layers in order: queries (under 'sqrt'), keys, values, and the one after the
        heads.
        """
        one = math.sqrt(self.query_key_std)
        keys = Dense(self.heads * self.key_width, one, trained=self.trained)
        values = Dense(self.heads * self.value_width, self.value_std, trained=self.trained)
        last = Dense(self.width, self.weight_std, self.bias_std, self.trained)
        return (keys,) * (2 if self.scaling == "sqrt" else 1) + (values, last)

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        _check_spatial(self, shape)
        return (*shape[:-1], self.width)


@dataclass(frozen=True)
class Activate(AbstractLayer):
    """An elementwise activation: a name, an `Activation` or a function.

    Args:
        activation: a name, an `Activation` or an elementwise JAX function; kept as an `Activation`.
    """

    activation: Activation

    def __init__(self, activation: ActivationLike):
        object.__setattr__(self, "activation", as_activation(activation))

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape


@dataclass(frozen=True)
class Chain(AbstractLayer):
    """Layers one after the other; nested chains are laid flat."""

    layers: tuple[AbstractLayer, ...]

    def __init__(self, *layers: AbstractLayer):
        if len(layers) == 1 and isinstance(layers[0], Sequence):
            layers = tuple(layers[0])
        flat = []
        for layer in layers:
            if not isinstance(layer, AbstractLayer):
                raise ValueError(
                    "`layers` must be layers such as `Dense(512)` or `Activate('relu')`, got "
                    f"{layer!r}."
                )
            flat += layer.layers if isinstance(layer, Chain) else [layer]
        if not flat:
            raise ValueError("`layers` must name at least one layer, got none.")
        object.__setattr__(self, "layers", tuple(flat))

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        for layer in self.layers:
            shape = layer.output_shape(shape)
        return shape

    def shapes(self, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The shape before the first layer and after each one."""
        check_kind("shape", shape, (tuple, list), "the shape of one sample, such as (3,)")
        for size in shape:
            check_count("shape", size)
        shapes = [tuple(shape)]
        for layer in self.layers:
            shapes.append(layer.output_shape(shapes[-1]))
        return shapes


@dataclass(frozen=True)
class Residual(AbstractLayer):
    r"""$x \mapsto \text{shortcut}(x) + \text{body}(x)$; the shortcut is the identity if None.

    Args:
        body: the layers of the branch.
        shortcut: the layers beside it, with an output of the same shape; None for the identity.
    """

    body: Chain
    shortcut: Chain | None

    def __init__(self, body: AbstractLayer, shortcut: AbstractLayer | None = None):
        object.__setattr__(self, "body", Chain(body))
        object.__setattr__(self, "shortcut", None if shortcut is None else Chain(shortcut))

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        body = self.body.output_shape(shape)
        around = shape if self.shortcut is None else self.shortcut.output_shape(shape)
        if body != around:
            raise ValueError(
                f"`body` of a `Residual` gives shape {body}, its shortcut {around}; they must "
                "agree. "
                "Give a `shortcut` such as `Conv(...)` or `Dense(...)` that changes the shape."
            )
        return body


def mlp(
    depth: int = 1,
    width: int = 512,
    activation: ActivationLike = "relu",
    outputs: int = 1,
    *,
    weight_std: float = 1.0,
    bias_std: float | None = None,
) -> Chain:
    r"""A multilayer perceptron: `depth` hidden layers of `width` units, each with `activation`, and
    a dense output.

    Args:
        outputs: units of the last layer.
        weight_std: $\sigma_w$ of every dense layer (see `Dense`).
        bias_std: $\sigma_b$ likewise; None for layers without bias.

    >>> mlp(depth=2, width=8, activation="tanh").output_shape((5,))
    (1,)
    """
    check_count("depth", depth)
    hidden = []
    for _ in range(depth):
        hidden += [Dense(width, weight_std, bias_std), Activate(activation)]
    return Chain(*hidden, Dense(outputs, weight_std, bias_std))


def alternating(chain: Chain) -> tuple[list[Dense], list[Activate]] | None:
    """The dense layers of a perceptron and the activations between them; None for any other
    chain.
    """
    dense = [layer for layer in chain.layers[::2] if isinstance(layer, Dense)]
    between = [layer for layer in chain.layers[1::2] if isinstance(layer, Activate)]
    complete = len(dense) == len(between) + 1 and len(dense) + len(between) == len(chain.layers)
    return (dense, between) if complete else None


def with_width(architecture: AbstractLayer, width: int) -> AbstractLayer:
    """The same architecture with every hidden layer `width` wide; what comes out keeps its size.

    Args:
        architecture: any layer; its last one with weights at the top level keeps its width.
        width: units (or channels) of all others; of attention the heads times the key width, both
            its root.
    """
    check_count("width", width)
    chain = Chain(architecture)
    last = max(
        (
            k
            for k, layer in enumerate(chain.layers)
            if isinstance(layer, Dense | Conv | SelfAttention)
        ),
        default=None,
    )
    return Chain(*(_resized(layer, width, k == last) for k, layer in enumerate(chain.layers)))


def _resized(layer: AbstractLayer, width: int, keep: bool) -> AbstractLayer:
    if isinstance(layer, Dense) and not keep:
        return dataclasses.replace(layer, width=width)
    if isinstance(layer, Conv) and not keep:
        return dataclasses.replace(layer, channels=width)
    if isinstance(layer, SelfAttention):
        root = max(1, round(math.sqrt(width)))
        inner = dataclasses.replace(layer, heads=root, key_width=root, value_width=root)
        return inner if keep else dataclasses.replace(inner, width=width)
    if isinstance(layer, Residual):
        shortcut = layer.shortcut and Chain(
            *(_resized(x, width, False) for x in layer.shortcut.layers)
        )
        return Residual(Chain(*(_resized(x, width, False) for x in layer.body.layers)), shortcut)
    return layer


def _complete_strides(layer, default: tuple[int, ...] | None = None) -> None:
    strides = layer.strides if layer.strides is not None else default or (1,) * len(layer.window)
    strides = _check_window("strides", strides)
    if len(strides) != len(layer.window):
        raise ValueError(
            f"`strides` must have one number for each of `window`'s {len(layer.window)} axes, "
            f"got {strides}."
        )
    object.__setattr__(layer, "strides", strides)


def _check_spatial(layer, shape: tuple[int, ...], axes: int | None = None) -> None:
    spatial = len(shape) - 1
    if spatial < 1 or (axes is not None and spatial != axes):
        requirement = f"{axes} spatial axes" if axes is not None else "spatial axes"
        raise ValueError(
            f"`{type(layer).__name__}` needs inputs of {requirement} and a channel axis at the "
            "end, got one sample of "
            f"shape {shape}. Reshape the inputs, or put `Flatten()` after the last spatial layer."
        )


def _slid(layer, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The spatial shape after a window has slid over `shape`."""
    _check_spatial(layer, shape, len(layer.window))
    out = []
    for size, window, stride in zip(shape[:-1], layer.window, layer.strides):
        if layer.padding == "VALID":
            if size < window:
                raise ValueError(
                    f"`window` {layer.window} does not fit into positions {shape[:-1]} without "
                    "padding. "
                    "Use padding='SAME' or a smaller window."
                )
            out.append((size - window) // stride + 1)
        else:
            out.append(-(-size // stride))
    return tuple(out)
