"""What single layers of PyTorch are in the words of `wideflow.architecture`, or why they are
nothing there.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import torch
from torch import nn

from .. import architecture as layers
from .._core.activations import (
    Activation,
    ActivationLike,
    leaky_relu,
    scaled_erf,
    sigmoid,
    softplus,
)

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
Weighted = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d


class NoCounterpartError(Exception):
    """Why a node cannot be carried over."""


@dataclass(frozen=True)
class Weights:
    """A layer with weights, and the module that has them."""

    layer: layers.Dense | layers.Conv
    module: Weighted


def arguments(given, options, *defaults: tuple[str, object]) -> list:
    """Positional and named arguments in one order."""
    values = [options.get(name, default) for name, default in defaults]
    values[: len(given)] = given
    return values


def is_dropout(part: nn.Module) -> TypeGuard[nn.modules.dropout._DropoutNd]:
    return isinstance(part, nn.modules.dropout._DropoutNd)


def _moments(part: Weighted) -> tuple[float, float | None]:
    """The deviations that the weights have, in the description's units."""
    fan_in = part.weight[0].numel()
    std = math.sqrt(fan_in * float(torch.mean(part.weight.detach().double() ** 2)))
    if not 0 < std < math.inf:
        raise NoCounterpartError(
            f"its weights have the mean square {std:g}, which must be positive and finite"
        )
    bias = None if part.bias is None else float(torch.mean(part.bias.detach().double() ** 2)) ** 0.5
    return std, bias


def _trained(part: nn.Module) -> bool:
    flags = {p.requires_grad for p in part.parameters()}
    if len(flags) > 1:
        raise NoCounterpartError(
            "trains its weights or its bias alone; a layer here trains both or none"
        )
    return flags.pop()


def dense(part: nn.Linear) -> layers.Dense:
    return layers.Dense(part.out_features, *_moments(part), trained=_trained(part))


def convolution(part, size: tuple[int, ...] | None) -> layers.Conv:
    if part.groups != 1 or set(part.dilation) != {1}:
        raise NoCounterpartError(
            f"groups={part.groups} and dilation={part.dilation}, which must be 1"
        )
    ends = part.padding
    if isinstance(ends, str):
        ends = (0,) * len(part.kernel_size) if ends == "valid" else None
    circular = part.padding_mode == "circular"
    if part.padding_mode not in ("zeros", "circular"):
        raise NoCounterpartError(
            f"padding_mode={part.padding_mode!r}, which must be 'zeros' or 'circular'"
        )
    padding = _padding(part.kernel_size, part.stride, ends, size, circular)
    std, bias = _moments(part)
    return layers.Conv(
        part.out_channels, part.kernel_size, part.stride, padding, std, bias, _trained(part)
    )


def _padding(window, strides, ends, size: tuple[int, ...] | None, circular: bool = False) -> str:
    """'VALID', 'SAME' or 'CIRCULAR' where it pads exactly as PyTorch does; `ends` None is PyTorch's
    own 'same'.
    """
    if ends is not None and not any(ends):
        return "VALID"
    same = "CIRCULAR" if circular else "SAME"
    if ends is None:  # an even window gets its odd zero at the end, in both libraries
        return same
    if all(2 * e == w - 1 for e, w in zip(ends, window)) and set(strides) == {1}:
        return same
    if size is None:
        raise NoCounterpartError(
            f"padding {tuple(ends)} with strides {tuple(strides)} needs `shape` to be read"
        )
    for end, width, stride, length in zip(ends, window, strides, size[1:]):
        total = max((-(-length // stride) - 1) * stride + width - length, 0)
        # the windows must start at the same place, and as many fit: zeros beyond the last one are
        # never read
        if end != total // 2 or (length + 2 * end - width) // stride + 1 != -(-length // stride):
            raise NoCounterpartError(
                f"padding {tuple(ends)} with strides {tuple(strides)} on positions "
                f"{tuple(size[1:])} is neither 'SAME' nor 'VALID', "
                f"which starts {total // 2} before the edge"
            )
    return same


def _tuple(value, count: int) -> tuple[int, ...]:
    return (value,) * count if isinstance(value, int) else tuple(value)


def average_pool(window, strides, ends, ceil_mode: bool, part, size) -> layers.AveragePool:
    axes = int(type(part).__name__[len("AvgPool")])
    window, ends = _tuple(window, axes), _tuple(ends, axes)
    strides = window if strides is None else _tuple(strides, axes)
    if ceil_mode or getattr(part, "divisor_override", None):
        raise NoCounterpartError("ceil_mode or divisor_override, which have no counterpart")
    padding = _padding(window, strides, ends, size)
    if padding == "SAME" and part.count_include_pad:
        raise NoCounterpartError("averages over padded zeros; set count_include_pad=False")
    return layers.AveragePool(window, strides, padding)


def global_pool(size) -> layers.GlobalAveragePool:
    sizes = (size,) if isinstance(size, int) else tuple(size)
    if set(sizes) != {1}:
        raise NoCounterpartError(f"output size {size}, which must be 1")
    return layers.GlobalAveragePool()


def flatten(start: int, end: int) -> layers.Flatten:
    if start != 1 or end != -1:
        raise NoCounterpartError(f"flattens axes {start} to {end}, which must be all but the first")
    return layers.Flatten()


def reshape(target: Sequence) -> layers.Flatten:
    sizes = target[0] if len(target) == 1 and isinstance(target[0], tuple | list) else target
    if len(sizes) != 2 or sizes[1] != -1:
        raise NoCounterpartError("reshapes to other axes than (sample, -1)")
    return layers.Flatten()


def _gelu(approximate: str = "none"):
    if approximate != "none":
        raise NoCounterpartError(f"approximate={approximate!r}, which must be 'none'")
    return "gelu"


def _softplus(beta=1.0, threshold=20.0) -> Activation:
    if beta != 1:
        raise NoCounterpartError(f"beta={beta}, which must be 1")
    return softplus()


FUNCTIONS: dict[str, Callable] = {
    "relu": lambda: "relu",
    "relu_": lambda: "relu",
    "tanh": lambda: "tanh",
    "sigmoid": sigmoid,
    "gelu": _gelu,
    "silu": lambda: "silu",
    "leaky_relu": lambda negative_slope=0.01: leaky_relu(negative_slope),
    "softplus": _softplus,
    "erf": scaled_erf,
    "abs": lambda: "abs",
    "sin": lambda: "sin",
    "cos": lambda: "cos",
    "exp": lambda: "exp",
    "square": lambda: "square",
}
MODULES: dict[type, Callable[[Any], ActivationLike]] = {  # each of a part of its own type
    nn.ReLU: lambda part: "relu",
    nn.Tanh: lambda part: "tanh",
    nn.Sigmoid: lambda part: sigmoid(),
    nn.GELU: lambda part: _gelu(part.approximate),
    nn.SiLU: lambda part: "silu",
    nn.LeakyReLU: lambda part: leaky_relu(part.negative_slope),
    nn.Softplus: lambda part: _softplus(part.beta),
}
REASONS: dict[type, str] = {
    nn.modules.batchnorm._BatchNorm: "batch normalisation is no function of one input; use layer "
    "norm",
    nn.modules.pooling._MaxPoolNd: "maxima have no infinite-width kernel; use average pooling",
    nn.MultiheadAttention: "attention has no counterpart in `wideflow.architecture`",
    nn.Embedding: "takes whole numbers; give the embedded features as inputs",
    nn.GroupNorm: "normalises over groups of channels and positions; use layer norm over the "
    "last axis",
}


def activation_of(part: nn.Module) -> ActivationLike:
    if type(part) in MODULES:
        return MODULES[type(part)](part)
    for kind, reason in REASONS.items():
        if isinstance(part, kind):
            raise NoCounterpartError(reason)
    raise NoCounterpartError("no counterpart in `wideflow.architecture`")
