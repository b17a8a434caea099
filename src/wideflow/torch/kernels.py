r"""Tangent kernels of a module, array by array, from products of layer Gram matrices; Jacobians
only where nothing better is known.

As samples do not meet, one backward pass of $\sum_i f_k(x_i)$ gives
$\delta_i = \partial f_k(x_i)/\partial h_i$ at every layer for all samples. With $x_{ip}$ what
output position $p$ of a linear or convolutional layer sees of sample $i$, the weights' part of the
kernel is $\sum_{p,q}\langle x_{ip}, x_{jq}\rangle\langle\delta_{ip}, \delta_{jq}\rangle$; biases
and the scales and shifts of normalisations have short gradients, $\sum_p \delta_{ip}$ and
$\sum_p \delta_{ip}\hat x_{ip}$. All other parameters (attention's packed projections, tied weights,
parametrised layers) take gradient rows by `torch.func`.

Which parameters the formulas hold for is not guessed: at the first sample every array's gradient is
computed by `torch.func.grad` as well, and an array whose squared length disagrees takes gradient
rows.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import grad, vmap

from .._core.memory import budget
from .network import Inputs, Network, State, to_numpy

COPIES = 3  # of a layer's inputs, or of gradient rows: themselves, unfolded, and a temporary
# tensors of a layer's size that a pass holds: its inputs, its outputs, these shifted, the shift,
# its gradient, and what lies between layers
PASS_ARRAYS = 8
NOMINAL = 16  # samples per tile assumed in the choice of the cheapest way, before tiles are known
# times the rounding of the arithmetic (chosen): far below any gradient that a formula misses
AGREEMENT = 1e3
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


@dataclass(frozen=True)
class Outer:
    """Gradients of a weight matrix as sums over positions of outer products."""

    inputs: Tensor  # (sample, position, fan-in)
    delta: Tensor  # (sample, position, channel)

    def by_rows(self, n: int, m: int) -> bool:
        """Whether n x m products take fewer multiplications from whole gradients than from pairs of
        positions.
        """
        _, positions, fan_in = self.inputs.shape
        channels = self.delta.shape[2]
        pairs = n * m * positions**2 * (fan_in + channels + 1)
        return fan_in * channels * ((n + m) * positions + n * m) <= pairs

    def products(self, other: "Outer") -> Tensor:
        """Whichever of three ways takes the fewest multiplications.

        Without positions a gradient is one outer product, and the inner product of two of them is
        the product of their factors' inner products. With positions either every gradient is summed
        up first, or the inner products of all pairs of positions are, without any gradient.
        """
        if self.inputs.shape[1] == 1:
            return (self.inputs[:, 0] @ other.inputs[:, 0].T) * (
                self.delta[:, 0] @ other.delta[:, 0].T
            )
        if self.by_rows(len(self.inputs), len(other.inputs)):
            left = self.rows()
            return left @ (left if other is self else other.rows()).T
        overlaps = torch.einsum("ipf,jqf->ijpq", self.inputs, other.inputs)
        return torch.einsum("ijpq,ipc,jqc->ij", overlaps, self.delta, other.delta)

    def rows(self) -> Tensor:
        return torch.einsum("ipf,ipc->ifc", self.inputs, self.delta).flatten(1)

    def squared_length(self) -> Tensor:
        """Of the first sample's gradient."""
        return torch.sum((self.inputs[0].T @ self.delta[0]) ** 2)


@dataclass(frozen=True)
class Rows:
    """Gradients themselves, (sample, number)."""

    values: Tensor

    def products(self, other: "Rows") -> Tensor:
        return self.values @ other.values.T

    def squared_length(self) -> Tensor:
        return torch.sum(self.values[0] ** 2)


Side = dict[str, Outer | Rows]
"""One tile of samples: the gradients of every array that has a formula."""


class Kernels:
    """Reads tangent kernels of one network at any of its states.

    Args:
        state: where it is tried which arrays have a formula that holds.
        output: the output on which that is tried.
        memory: budget of what is held at a time.
    """

    def __init__(self, network: Network, state: State, output: int, memory: int | str | None):
        formulas = _formulas(network)
        first = Tile(network, state, formulas, slice(0, 1))
        self.network, self.memory = network, memory
        self.trusted = _trusted(network, state, first, output)
        self.formulas = {name: f for name, f in formulas.items() if set(f.arrays) & self.trusted}
        self.rest = tuple(name for name in network.names if name not in self.trusted)
        self.numbers, self.activations = first.numbers(), first.activations()

    def parts(self, state: State, outputs: Sequence[int]) -> list[dict[str, np.ndarray]]:
        """Every trained array's part of the tangent Gram matrix, one dictionary for each of
        `outputs`.
        """
        shape = (self.network.samples,) * 2
        kernels = [{name: np.zeros(shape) for name in self.network.names} for _ in outputs]
        if self.trusted:
            self._by_formulas(state, outputs, kernels)
        if self.rest:
            self._by_rows(state, outputs, kernels)
        return kernels

    def _by_formulas(self, state: State, outputs: Sequence[int], kernels: list) -> None:
        rows = _tile_rows(self.network, self.numbers, self.memory)
        take = lambda samples: Tile(self.network, state, self.formulas, samples)
        for i, j, left, right in _tiles(self.network, rows, take):
            for kernel, output in zip(kernels, outputs, strict=True):
                ours = left.sides(output)
                theirs = ours if right is left else right.sides(output)
                for layer in ours:  # one at a time: what it sees is laid out for every position
                    side = ours[layer]()
                    other = side if right is left else theirs[layer]()
                    for name in self.trusted & set(side):
                        _put(kernel[name], i, j, side[name].products(other[name]))
            # before the next tile is computed: two are held, not three
            del left, right, ours, theirs, side, other

    def _by_rows(self, state: State, outputs: Sequence[int], kernels: list) -> None:
        numbers = COPIES * sum(state[name].numel() for name in self.rest) + self.activations
        rows = _tile_rows(self.network, numbers, self.memory)
        for kernel, output in zip(kernels, outputs, strict=True):
            take = lambda s, k=output: _gradient_rows(self.network, state, self.rest, k, s)
            for i, j, left, right in _tiles(self.network, rows, take):
                for name in self.rest:
                    _put(kernel[name], i, j, left[name].products(right[name]))
                del left, right


def _tile_rows(network: Network, numbers: int, memory) -> int:
    """Samples a tile, of which two are held at a time; `numbers` is what one sample holds."""
    bytes_a_row = network.dtype.itemsize * max(1, numbers)
    # a third part is left free: peaks of convolutional networks were above what two tiles hold
    return max(1, min(network.samples, int(budget(memory) // (3 * bytes_a_row))))


def _tiles(network: Network, rows: int, take: Callable) -> Iterator[tuple[slice, slice, Any, Any]]:
    """Pairs of tiles on and above the diagonal; a tile is computed again when another meets it."""
    slices = [slice(i, min(i + rows, network.samples)) for i in range(0, network.samples, rows)]
    for k, i in enumerate(slices):
        left = None  # frees the last tile before the next one is computed
        left = take(i)
        for j in slices[k:]:
            yield i, j, left, left if j is i else take(j)


def _put(kernel: np.ndarray, i: slice, j: slice, block: Tensor) -> None:
    values = to_numpy(block)
    if i == j:  # rounding leaves a product of a tile with itself slightly asymmetric
        values = (values + values.T) / 2
    kernel[i, j] = values
    kernel[j, i] = values.T


def _gradient_rows(
    network: Network, state: State, names: Sequence[str], output: int, samples: slice
) -> dict[str, Rows]:
    """Gradients of one output in the arrays `names` at some samples."""
    moving = {name: state[name] for name in names}
    rest = {name: value for name, value in state.items() if name not in moving}

    def scalar(moving: State, one: Inputs) -> Tensor:
        outputs = network.on({**rest, **moving}, tuple(part[None] for part in one))
        return outputs.reshape(-1)[output]

    block = tuple(part[samples] for part in network.inputs)
    if len(block[0]) == 1:  # `vmap` would only cost
        rows = grad(scalar)(moving, tuple(part[0] for part in block))
        return {name: Rows(row.reshape(1, -1)) for name, row in rows.items()}
    rows = vmap(grad(scalar), in_dims=(None, 0))(moving, block)
    return {name: Rows(row.flatten(1)) for name, row in rows.items()}


def _trusted(network: Network, state: State, first: "Tile", output: int) -> set[str]:
    """The arrays whose formula gives the length of their gradient at the first sample."""
    gradients = _gradient_rows(network, state, network.names, output, slice(0, 1))
    trusted = set()
    for side in first.sides(output).values():
        for name, formula in side().items():
            exact = float(gradients[name].squared_length())
            if abs(float(formula.squared_length()) - exact) <= AGREEMENT * network.epsilon * exact:
                trusted.add(name)
    return trusted


@dataclass(frozen=True)
class Formula:
    """How the gradients of a layer's arrays come from what it sees and the gradient of what it
    gives.

    Attributes:
        part: the layer.
        arrays: full names of its trained arrays, by their name in the layer.
        gradients: `(part, inputs, delta, arrays) -> Side`.
    """

    part: nn.Module
    arrays: dict[str, str]
    gradients: Callable[[nn.Module, Tensor, Tensor, dict[str, str]], Side]


def _formulas(network: Network) -> dict[str, Formula]:
    """Of every layer of a kind that has one; exact types alone, as a subclass may compute something
    else.
    """
    formulas = {}
    for name, part in network.module.named_modules():
        own = {
            key: f"{name}.{key}" if name else key for key, _ in part.named_parameters(recurse=False)
        }
        arrays = {full: key for key, full in own.items() if full in network.names}
        rule = _rule(part)
        if rule is not None and arrays:
            formulas[name] = Formula(part, arrays, rule)
    return formulas


def _rule(part: nn.Module) -> Callable | None:
    if type(part) is nn.Linear:
        return _linear
    if type(part) in CONVOLUTIONS and _plain(part):
        return _convolution
    if type(part) in (nn.LayerNorm, nn.GroupNorm, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d):
        return _normalisation
    return None


def _plain(part) -> bool:
    padded = part.padding_mode == "zeros" and not isinstance(part.padding, str)
    return padded and part.groups == 1 and set(part.dilation) == {1}


def _linear(part: nn.Linear, inputs: Tensor, delta: Tensor, arrays: dict[str, str]) -> Side:
    n = len(inputs)
    delta = delta.reshape(n, -1, delta.shape[-1])
    return _weight_and_bias(inputs.reshape(n, -1, inputs.shape[-1]), delta, arrays)


def _convolution(part, inputs: Tensor, delta: Tensor, arrays: dict[str, str]) -> Side:
    n, axes = len(inputs), len(part.kernel_size)
    if "weight" in arrays.values():
        ends = [end for size in reversed(part.padding) for end in (size, size)]
        inputs = F.pad(inputs, ends)
        for axis, (size, stride) in enumerate(zip(part.kernel_size, part.stride)):
            inputs = inputs.unfold(2 + axis, size, stride)
        # (sample, channel, *position, *window) -> (sample, position, channel x window)
        order = (0, *range(2, 2 + axes), 1, *range(2 + axes, 2 + 2 * axes))
        inputs = inputs.permute(order).reshape(n, math.prod(delta.shape[2:]), -1)
    return _weight_and_bias(inputs, delta.flatten(2).transpose(1, 2), arrays)


def _weight_and_bias(inputs: Tensor, delta: Tensor, arrays: dict[str, str]) -> Side:
    forms = {"weight": lambda: Outer(inputs, delta), "bias": lambda: Rows(delta.sum(1))}
    return {full: forms[key]() for full, key in arrays.items()}


def _normalisation(part, inputs: Tensor, delta: Tensor, arrays: dict[str, str]) -> Side:
    if isinstance(part, nn.LayerNorm):
        normal = F.layer_norm(inputs, part.normalized_shape, eps=part.eps)
        shape = (len(inputs), -1, math.prod(part.normalized_shape))
        normal, delta = normal.reshape(shape), delta.reshape(shape)
    else:
        if isinstance(part, nn.GroupNorm):
            normal = F.group_norm(inputs, part.num_groups, eps=part.eps)
        else:
            normal = F.batch_norm(inputs, part.running_mean, part.running_var, eps=part.eps)
        shape = (len(inputs), inputs.shape[1], -1)
        normal, delta = (t.reshape(shape).transpose(1, 2) for t in (normal, delta))
    forms = {"weight": lambda: Rows((normal * delta).sum(1)), "bias": lambda: Rows(delta.sum(1))}
    return {full: forms[key]() for full, key in arrays.items()}


class Tile:
    """Some samples, taken through the network once; `side` goes back through it for one output."""

    def __init__(
        self, network: Network, state: State, formulas: dict[str, Formula], samples: slice
    ):
        self.formulas, self.inputs, self.shifts, calls = formulas, {}, {}, {}

        def hook(name: str):
            def shifted(part, arguments, output):
                """A shift of zeros added to what the layer gives: its gradient is delta."""
                calls[name] = calls.get(name, 0) + 1
                shift = torch.zeros_like(output, requires_grad=True)
                self.inputs[name], self.shifts[name] = arguments[0].detach(), shift
                return output + shift

            return shifted

        handles = [f.part.register_forward_hook(hook(name)) for name, f in formulas.items()]
        fixed = {name: value.detach() for name, value in state.items()}
        try:
            with torch.enable_grad():
                block = tuple(part[samples] for part in network.inputs)
                outputs = network.on(fixed, block)
        finally:
            for handle in handles:
                handle.remove()
        self.outputs = outputs.reshape(len(outputs), -1)
        self.last: tuple[int, dict[str, Callable[[], Side]]] | None = None
        # the hook keeps one call of a layer; one called again has the gradient of all its calls
        self.once = [name for name, count in calls.items() if count == 1]

    def sides(self, output: int) -> dict[str, Callable[[], Side]]:
        """Layer by layer a function that gives its gradients, after one backward pass for all of
        them; the last answer is kept.
        """
        if self.last is not None and self.last[0] == output:
            return self.last[1]
        shifts = [self.shifts[name] for name in self.once]
        if not shifts:
            return {}
        total = self.outputs[:, output].sum()
        deltas = torch.autograd.grad(total, shifts, retain_graph=True, materialize_grads=True)
        sides = {
            name: functools.partial(self._side, name, delta)
            for name, delta in zip(self.once, deltas, strict=True)
        }
        self.last = output, sides
        return sides

    @torch.no_grad()
    def _side(self, name: str, delta: Tensor) -> Side:
        formula = self.formulas[name]
        return formula.gradients(formula.part, self.inputs[name], delta, formula.arrays)

    def activations(self) -> int:
        """Numbers that a pass holds of one sample."""
        return PASS_ARRAYS * sum(shift[0].numel() for shift in self.shifts.values())

    def numbers(self) -> int:
        """Numbers that one sample holds: those of the pass, and what the largest layer adds while
        its products are taken.
        """
        largest = 0
        for side in self.sides(0).values():
            for form in side().values():
                if isinstance(form, Outer) and form.inputs.shape[1] > 1:
                    rows = form.inputs.shape[2] * form.delta.shape[2]
                    rows = rows if form.by_rows(NOMINAL, NOMINAL) else 0
                    largest = max(largest, form.inputs.numel() + rows)
        return self.activations() + COPIES * largest
