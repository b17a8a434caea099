"""Modules of PyTorch as architectures: what a forward pass does is read off by `torch.fx` and
written in the layers of `wideflow.architecture`.

A graph of layers one after the other, with sums that close residual branches, becomes a `Chain`
with `Residual` blocks. Everything that has no counterpart is collected, and one sentence names all
of it.
"""

import operator
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeGuard

import numpy as np
import torch
from torch import fx, nn

from .. import architecture as layers
from .._core.errors import check_flag
from .._core.parametrisations import STANDARD
from ..models.deep import Deep
from .counterparts import (
    CONVOLUTIONS,
    FUNCTIONS,
    NoCounterpartError,
    Weighted,
    Weights,
    activation_of,
    arguments,
    average_pool,
    convolution,
    dense,
    flatten,
    global_pool,
    is_dropout,
    reshape,
)
from .network import device_and_dtype

PLAIN = STANDARD.with_rate_exponent(0)  # the weights act as they are, at one rate, as in PyTorch


@dataclass(frozen=True)
class Branches:
    """Two ways from one point to a sum."""

    body: "Items"
    shortcut: "Items"


Items = list[Weights | Branches | layers.AbstractLayer]


def from_torch(
    module: nn.Module, shape: Sequence[int] | int | None = None, *, weights: bool = False
) -> layers.Chain | Deep:
    r"""The architecture of a module, for kernels, field theory and training in wideflow; with
    `weights`, the network itself.

    Carried over are linear layers, convolutions, average pooling, flattening, layer norm,
    elementwise activations, and residual sums. Each layer's `weight_std` and `bias_std` are read
    off its weights: $\sigma_w^2 = \text{fan-in} \cdot \overline{W^2}$,
    $\sigma_b^2 = \overline{b^2}$. Channels come last in wideflow: an input of shape (1, 28, 28) in
    PyTorch has shape (28, 28, 1) here.

    Args:
        module: in evaluation mode, if it has dropout.
        shape: of one input as the module takes it, such as (1, 28, 28); needed for convolutions
            with a stride, and for `weights` of modules that do not begin with a linear layer.
        weights: give a `Deep` network with the module's weights, in the standard parametrisation at
            one rate: what the module computes, and how PyTorch would train it.

    Raises:
        ValueError: naming every layer that has no counterpart, and why.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    >>> from_torch(net).output_shape((3,))
    (1,)
    """
    if not isinstance(module, nn.Module):
        raise ValueError(f"`module` must be a torch.nn.Module, got {module!r}.")
    check_flag("weights", weights)
    device_and_dtype(module)
    if not any(True for _ in module.children()):
        module = nn.Sequential(module)  # a single layer is traced as one, not into its inside
    shape = None if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
    items = _Reader(module, shape).items()
    chain = layers.Chain(*map(_layer, items))
    if not weights:
        return chain
    features = _features(items, shape)
    chain.output_shape(features)
    channels_first = _convolves(next(_weighted(items)).module)
    if channels_first:
        _check_order(items)
    arrays, biases = _arrays(items, features, channels_first)
    return Deep(chain, features[0] if len(features) == 1 else features, arrays, biases, PLAIN)


def _layer(item) -> layers.AbstractLayer:
    if isinstance(item, Weights):
        return item.layer
    if isinstance(item, Branches):
        shortcut = layers.Chain(*map(_layer, item.shortcut)) if item.shortcut else None
        return layers.Residual(layers.Chain(*map(_layer, item.body)), shortcut)
    return item


def _features(items: Items, shape) -> tuple[int, ...]:
    """The shape of one input with channels last."""
    first = next(_weighted(items))
    if shape is not None:
        return (*shape[1:], shape[0]) if _convolves(first.module) else shape
    if isinstance(first.module, nn.Linear) and not isinstance(items[0], Branches):
        return (first.module.in_features,)
    raise ValueError(
        "`shape` must be given for a module that does not begin with a linear layer, such as (1, "
        "28, 28), got None."
    )


def _weighted(items: Items) -> Iterator[Weights]:
    """All layers with weights, in the order of a forward pass."""
    for item in items:
        if isinstance(item, Branches):
            yield from _weighted(item.body)
            yield from _weighted(item.shortcut)
        elif isinstance(item, Weights):
            yield item


def _convolves(part: nn.Module) -> TypeGuard[nn.Conv1d | nn.Conv2d | nn.Conv3d]:
    return type(part) in CONVOLUTIONS


def _check_order(items: Items) -> None:
    """Flattened positions are in another order here, which the next linear layer's rows make good:
    so it must be the next with weights.
    """
    flat, wide = False, True
    for item in items:
        if flat and isinstance(item, Branches):
            raise ValueError(
                "`module` cannot be converted with its weights: a residual sum follows the "
                "flattening; put a linear layer between them."
            )
        if isinstance(item, Weights):
            flat, wide = False, _convolves(item.module)
        elif isinstance(item, layers.Flatten):
            flat, wide = wide, False
        elif isinstance(item, layers.GlobalAveragePool):
            wide = False
    if flat or wide:
        raise ValueError(
            "`module` cannot be converted with its weights: its outputs have positions, whose "
            "order differs; end it with a linear layer."
        )


def _arrays(items: Items, shape: tuple[int, ...], channels_first: bool) -> tuple[list, list]:
    """Weights and biases in the order of a forward pass, a block's body before its shortcut;
    `shape` is what comes in.
    """
    weights, biases, flattened = [], [], None
    for item in items:
        if isinstance(item, Weights):
            weights.append(_weight(item.module, flattened))
            biases.append(None if item.module.bias is None else _numbers(item.module.bias))
            flattened = None
        elif isinstance(item, Branches):
            for branch in (item.body, item.shortcut):
                more = _arrays(branch, shape, channels_first)
                weights, biases = weights + more[0], biases + more[1]
        elif isinstance(item, layers.Flatten) and len(shape) > 1 and channels_first:
            flattened = shape
        shape = _layer(item).output_shape(shape)
    return weights, biases


def _weight(module: Weighted, flattened: tuple[int, ...] | None) -> np.ndarray:
    """(channel in, channel out) after the window; rows in the order in which channels-last inputs
    are laid flat.
    """
    weight = _numbers(module.weight)
    if not isinstance(module, nn.Linear):
        return np.moveaxis(weight, (0, 1), (-1, -2))
    if flattened is not None:
        *positions, channels = flattened
        weight = weight.reshape(len(weight), channels, *positions)
        weight = np.moveaxis(weight, 1, -1).reshape(len(weight), -1)
    return weight.T


def _numbers(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()


class _Reader:
    """Walks a traced graph backward from its output to its input."""

    def __init__(self, module: nn.Module, shape: tuple[int, ...] | None):
        self.module = module
        try:
            self.graph = fx.Tracer().trace(module)
        except Exception as error:  # whatever a module's Python does with a symbol
            raise ValueError(
                f"`module` cannot be traced by torch.fx, so that its layers cannot be read: {error}"
            ) from error
        self.parts = dict(module.named_modules())
        self.sizes = _sizes(module, self.graph, shape)
        kinds = [type(self.parts[n.target]) for n in self.graph.nodes if n.op == "call_module"]
        weighted = [kind for kind in kinds if kind in (nn.Linear, *CONVOLUTIONS)]
        # convolutions have channels first; a module that begins with a linear layer has them last,
        # as wideflow
        self.channels_first = bool(weighted) and weighted[0] in CONVOLUTIONS
        self.problems: list[str] = []
        self.before: dict[fx.Node, fx.Node] = {}
        self.warned: list[str] = []

    def items(self) -> Items:
        inputs = [node for node in self.graph.nodes if node.op == "placeholder"]
        outputs = [node for node in self.graph.nodes if node.op == "output"]
        if len(inputs) != 1 or not isinstance(outputs[0].args[0], fx.Node):
            raise ValueError(
                f"`module` must take one tensor and return one, got {len(inputs)} inputs and "
                f"{outputs[0].args[0]!r}."
            )
        self._name_all_problems()
        items = self._between(inputs[0], outputs[0].args[0])
        if not list(_weighted(items)):
            raise ValueError(
                "`module` must have at least one linear or convolutional layer, got none."
            )
        if self.channels_first:
            _check_positions(items, True)
        if self.warned:
            warnings.warn(
                "layer norm is converted without its trained scale and shift, which are 1 and 0 "
                "here: "
                f"{', '.join(self.warned)}",
                stacklevel=4,
            )
        return items

    def _name_all_problems(self) -> None:
        """Every node on its own, in the order of the forward pass; sums come last, as they need the
        others.
        """
        for node in self.graph.nodes:
            if node.op in ("placeholder", "output") or _is_sum(node) or not _carries(node):
                continue
            try:
                self._item(node)
            except NoCounterpartError as reason:
                self.problems.append(f"{_name(node, self.parts)}: {reason}")
        self.warned.clear()
        if self.problems:
            raise ValueError(_sentence(self.problems))

    def _between(self, start: fx.Node, end: fx.Node) -> Items:
        """The layers after `start` up to `end`."""
        items: Items = []
        while end is not start:
            if _is_sum(end):
                fork = self._fork(end)
                ways = [self._between(fork, way) for way in self._ways(end)]
                body, shortcut = sorted(ways, key=len, reverse=True)
                if not body:
                    self._refuse(end, "a sum of a tensor with itself")
                items.append(Branches(body, shortcut))
                end = fork
            else:
                item = self._item(end)
                items += [] if item is None else [item]
                end = self._back(end)
        return items[::-1]

    def _back(self, node: fx.Node) -> fx.Node:
        """The point before a node on the main line: its input, or the fork that a sum closes."""
        if node not in self.before:
            self.before[node] = self._fork(node) if _is_sum(node) else _source(node)
        return self.before[node]

    def _ways(self, node: fx.Node) -> list[fx.Node]:
        """The two tensors of a sum."""
        ways = [way for way in node.args if isinstance(way, fx.Node)]
        if len(ways) != len(node.args) or len(ways) != 2:
            self._refuse(node, "a sum with something that is not a tensor of the graph")
        return ways

    def _fork(self, node: fx.Node) -> fx.Node:
        lines = [self._line(way) for way in self._ways(node)]
        for point in lines[0]:
            if point in lines[1]:
                return point
        self._refuse(node, "the two branches of its sum do not start at the same point")

    def _line(self, node: fx.Node) -> list[fx.Node]:
        line = [node]
        while line[-1].op != "placeholder":
            line.append(self._back(line[-1]))
        return line

    def _refuse(self, node: fx.Node, reason: str) -> NoReturn:
        raise ValueError(_sentence([f"{_name(node, self.parts)}: {reason}"]))

    def _item(self, node: fx.Node):
        """The counterpart of one node; None for what does nothing."""
        if node.op == "call_module":
            return self._of_module(node, self.parts[str(node.target)])
        if node.op == "get_attr":
            raise NoCounterpartError("a parameter that is used outside a layer")
        return self._of_function(node)

    def _of_module(self, node: fx.Node, part: nn.Module):
        if type(part) is nn.Linear:
            return Weights(dense(part), part)
        if _convolves(part):
            return Weights(convolution(part, self._size(node)), part)
        if isinstance(part, nn.Identity) or (
            is_dropout(part) and not (part.training and part.p > 0)
        ):
            return None
        if is_dropout(part):
            raise NoCounterpartError("active dropout; call `module.eval()` first")
        if type(part) is nn.LayerNorm:
            return self._layer_norm(node, part)
        if type(part) is nn.Flatten:
            return flatten(part.start_dim, part.end_dim)
        if isinstance(part, nn.AvgPool1d | nn.AvgPool2d | nn.AvgPool3d):
            return average_pool(
                part.kernel_size, part.stride, part.padding, part.ceil_mode, part, self._size(node)
            )
        if isinstance(part, nn.modules.pooling._AdaptiveAvgPoolNd):
            return global_pool(part.output_size)
        return layers.Activate(activation_of(part))

    def _layer_norm(self, node: fx.Node, part: nn.LayerNorm) -> layers.LayerNorm:
        if len(part.normalized_shape) != 1:
            raise NoCounterpartError("normalises more than the last axis")
        if part.elementwise_affine:
            ones = bool((part.weight == 1).all()) and (
                part.bias is None or not bool(part.bias.any())
            )
            if not ones:
                raise NoCounterpartError("its trained scale and shift have moved from 1 and 0")
            self.warned.append(_name(node, self.parts))
        return layers.LayerNorm(part.eps)

    def _of_function(self, node: fx.Node):
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
        rest, options = node.args[1:], node.kwargs
        if name == "flatten":
            return flatten(*arguments(rest, options, ("start_dim", 0), ("end_dim", -1)))
        if name in ("reshape", "view"):
            return reshape(rest)
        if name == "mean":
            return self._mean(node)
        if name.startswith("adaptive_avg_pool"):
            return global_pool(*arguments(rest, options, ("output_size", None)))
        if name == "dropout":
            _, training, *_ = arguments(
                rest, options, ("p", 0.5), ("training", True), ("inplace", False)
            )
            if training:
                raise NoCounterpartError(
                    "active dropout; pass `training=self.training` and call `module.eval()` first"
                )
            return None
        if name in FUNCTIONS and not [a for a in rest if isinstance(a, fx.Node)]:
            return layers.Activate(
                FUNCTIONS[name](
                    *rest, **{k: v for k, v in options.items() if k not in ("inplace", "input")}
                )
            )
        raise NoCounterpartError("no counterpart in `wideflow.architecture`")

    def _mean(self, node: fx.Node):
        axes, keepdim = arguments(node.args[1:], node.kwargs, ("dim", None), ("keepdim", False))
        size = self._size(node)
        if size is None:
            raise NoCounterpartError("a mean over axes needs `shape` to be read")
        axes = {a % (len(size) + 1) for a in ((axes,) if isinstance(axes, int) else axes or ())}
        positions = set(range(2, len(size) + 1) if self.channels_first else range(1, len(size)))
        if axes != positions or not positions or keepdim:
            raise NoCounterpartError("a mean over other axes than all positions")
        return layers.GlobalAveragePool()

    def _size(self, node: fx.Node) -> tuple[int, ...] | None:
        """The shape of one sample that comes into a node, where shapes are known."""
        return self.sizes.get(_source(node))


def _check_positions(items: Items, spatial: bool) -> bool:
    """Refuses layers over the last axis where that is a position; gives whether positions are left
    at the end.
    """
    for item in items:
        if isinstance(item, Branches):
            spatial = _check_positions(item.body, spatial)
            _check_positions(item.shortcut, spatial)
        elif isinstance(item, layers.Flatten | layers.GlobalAveragePool):
            spatial = False
        elif spatial and isinstance(_layer(item), layers.Dense | layers.LayerNorm):
            kind = "linear layer" if isinstance(item, Weights) else "layer norm"
            raise ValueError(
                f"`module` cannot be converted: a {kind} works on the last axis, which is a "
                "position after convolutions; flatten or pool before it."
            )
    return spatial


def _sizes(module: nn.Module, graph: fx.Graph, shape) -> dict[fx.Node, tuple[int, ...]]:
    """The shape of one sample after every node, from a pass of zeros."""
    if shape is None:
        return {}
    device, dtype = device_and_dtype(module)

    class Shapes(fx.Interpreter):
        sizes: dict = {}

        def run_node(self, node):
            value = super().run_node(node)
            if isinstance(value, torch.Tensor) and value.ndim:
                self.sizes[node] = tuple(value.shape[1:])
            return value

    reader = Shapes(fx.GraphModule(module, graph))
    reader.sizes = {}
    try:
        with torch.no_grad():
            reader.run(torch.zeros(2, *shape, device=device, dtype=dtype))
    except Exception as error:
        raise ValueError(
            "`shape` must be that of one input, but the module fails on a batch of shape "
            f"{(2, *shape)}: {error}"
        ) from error
    return reader.sizes


def _is_sum(node: fx.Node) -> bool:
    name = node.target if isinstance(node.target, str) else None
    functions = (operator.add, operator.iadd, torch.add)
    return (node.op == "call_function" and node.target in functions) or (
        node.op == "call_method" and name in ("add", "add_")
    )


def _carries(node: fx.Node) -> bool:
    """Whether a node is part of the tensors' way and not a number such as `x.size(0)` or
    `x.shape[0]`.
    """
    if node.op == "call_method" and node.target in ("size", "dim"):
        return False
    return not (node.op == "call_function" and node.target in (getattr, operator.getitem))


def _source(node: fx.Node) -> fx.Node:
    """The tensor that comes in; the first argument, by all functions that are carried over."""
    tensor = node.args[0] if node.args else node.kwargs.get("input")
    if not isinstance(tensor, fx.Node):
        raise ValueError(
            _sentence([f"{node.name}: its first argument is not a tensor of the graph"])
        )
    return tensor


def _name(node: fx.Node, parts: dict[str, nn.Module]) -> str:
    if node.op == "call_module":
        return f"{node.target!r} ({type(parts[str(node.target)]).__name__})"
    target = (
        node.target if isinstance(node.target, str) else getattr(node.target, "__name__", node.name)
    )
    return f"{node.name!r} ({target})"


def _sentence(problems: list[str]) -> str:
    return f"`module` cannot be converted: {'; '.join(problems)}."
