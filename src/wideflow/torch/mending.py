r"""Which powers of the width a module's arrays want, from how its layers start and how their own
updates grow.

In the maximal-update parametrisation every layer with a growing fan-in or fan-out gives coordinates
of size $n^0$ at the start (the output: $n^{-1/2}$), and its own update at the features of the
start, $h(x_0; w_t) - h(x_0; w_0)$ with only its array $w$ moved, has coordinates of size $n^0$
(yang2022, Table 3). So two exponents are measured for each array:

* the size at the start without the shift, $\lVert h(x) - h(0)\rVert \sim n^{\gamma}$. It should be
  $\gamma^* = 0$, and $-1/2$ for an output layer, whose fan-out does not grow: multiply the array's
  start by $n^{s}$, $s = \gamma^* - \gamma$. Where a layer before it starts wrongly, what this one
  sees is wrong through no fault of its own, and the size over that of $x$ counts in place of the
  size.
* the own update, $n^{o}$. It grows in proportion to the rate; the gradient that makes it carries
  the starts of the layers behind it, and the features before it. With $d = 1$ for updates in
  proportion to the gradient (SGD) and $d = 0$ for those whose size does not depend on it (Adam),
  multiply the rate by $n^{c}$,
  $$c = -o - d \sum_{\text{behind}} s - (1 + d) \sum_{\text{before}} s,$$
  where vectors (biases, scales) see no features, and have no second sum. The sums are exact for
  chains.

A plain module under SGD gets $s = 0, 0, -1/2$ and $c = 1, 0, -1$ for input, hidden and output
layers, under Adam $c = 0, -1, -1$: Table 3 of yang2022.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from ..coordinates import UNCLEAR, ArrayScaling, slope_of, to_halves
from .watch import rms

MATRICES = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
SCALE = 4.0  # of the loss, to see how an optimiser answers: a power of two is free of rounding


@dataclass(frozen=True)
class Unit:
    """One array in one network.

    Attributes:
        own: root mean square of its layer's own update when this array alone moves.
        size: root mean square of what its layer gives with the arrays of the start, without the
            shift; NaN for vectors.
        seen: root mean square of what it sees.
        fan_in, fan_out: sizes of a matrix; the length of a vector is its fan-out.
    """

    own: float
    size: float
    input_size: float
    fan_in: int
    fan_out: int


Calls = dict[str, tuple]
"""Arguments and options of every layer's call, by its name."""


def recorded_calls(module: nn.Module, inputs) -> Calls:
    """What every layer with parameters is called with in a forward pass, in the order of the
    calls.
    """
    calls: Calls = {}

    def hook(name: str):
        def read(part, arguments, options, output):
            calls[name] = (arguments, options)

        return read

    parts = {name: part for name, part in module.named_modules() if _is_unit(part)}
    handles = [p.register_forward_hook(hook(n), with_kwargs=True) for n, p in parts.items()]
    try:
        with torch.no_grad():
            module(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return calls


@torch.no_grad()
def measure_units(module: nn.Module, before: dict[str, Tensor], calls: Calls) -> dict[str, Unit]:
    """Every array of the called layers between its state before and now, at the features of the
    start.
    """
    units = {}
    for name, (arguments, options) in calls.items():
        units |= _units(name, module.get_submodule(name), before, arguments, options)
    return units


def _is_unit(part: nn.Module) -> bool:
    """A layer that has parameters and no layers inside; attention counts as one."""
    has = next(part.parameters(), None) is not None
    return has and (not any(part.children()) or isinstance(part, nn.MultiheadAttention))


def _units(name: str, part: nn.Module, before, arguments, options) -> dict[str, Unit]:
    full = lambda key: f"{name}.{key}" if name else key
    state = {key: before[full(key)] for key, _ in part.named_parameters()}
    call = lambda state: _first(functional_call(part, state, arguments, options))
    base, units = call(state), {}
    for key, now in part.named_parameters():
        if not now.requires_grad:
            continue
        own = rms(call({**state, key: now.detach()}) - base)
        fan_in, fan_out = _fans(part, now)
        size = input_size = math.nan
        if now.ndim >= 2:
            size, input_size = _sizes(part, state, key, base, arguments)
        units[full(key)] = Unit(own, size, input_size, fan_in, fan_out)
    return units


def _first(output) -> Tensor:
    return output[0] if isinstance(output, tuple) else output


def _fans(part: nn.Module, array: Tensor) -> tuple[int, int]:
    if array.ndim < 2:
        return 1, array.numel()
    if isinstance(part, nn.Embedding):
        return array.shape[0], array.shape[1]
    return array[0].numel(), array.shape[0]


def _sizes(part: nn.Module, state, key: str, base: Tensor, arguments) -> tuple[float, float]:
    """What a layer gives and what it sees; of others than linear ones by the size of their
    entries.
    """
    if isinstance(part, nn.Embedding):
        return rms(base), 1.0
    inputs = arguments[0]
    if isinstance(part, MATRICES):
        return rms(base - functional_call(part, state, (torch.zeros_like(inputs),))), rms(inputs)
    return rms(state[key]) * math.sqrt(_fans(part, state[key])[0]) * rms(inputs), rms(inputs)


def optimiser_degree(displacement: Callable[[float], float]) -> float:
    """1 where updates are proportional to the gradient, 0 where their size does not depend on it;
    NaN for neither.
    """
    plain, scaled = displacement(1.0), displacement(SCALE)
    if not min(plain, scaled) > 0:
        return math.nan
    degree = math.log(scaled / plain) / math.log(SCALE)
    nearest = float(round(degree))
    return nearest if nearest in (0.0, 1.0) and abs(degree - nearest) < 0.1 else math.nan


def scalings(
    widths: Sequence[int], rows: list[list[dict[str, Unit]]], degree: float
) -> dict[str, ArrayScaling]:
    """Of every array; `rows` is (width, seed)."""
    names = list(rows[0][0])
    roles = {name: _role([row[0][name] for row in rows]) for name in names}
    mean = lambda name, field: [
        math.sqrt(np.mean([getattr(units[name], field) ** 2 for units in row])) for row in rows
    ]
    starts: dict[str, float] = {}
    for name in names:
        starts[name] = 0.0
        if roles[name] in ("input", "hidden", "output"):
            size = slope_of(widths, mean(name, "size"))
            if any(abs(start) > UNCLEAR for start in starts.values()):
                size -= slope_of(widths, mean(name, "seen"))
            target = -0.5 if roles[name] == "output" else 0.0
            # a readout of zeros has no size, and is left as it is
            starts[name] = target - size if math.isfinite(size) else 0.0
    # in the sums the exponents that will be applied, so that scatter does not add up over many
    # layers
    applied = [
        starts[name] if math.isnan(to_halves(starts[name])) else to_halves(starts[name])
        for name in names
    ]
    answer = {}
    for k, name in enumerate(names):
        own = slope_of(widths, mean(name, "own"))
        if roles[name] == "fixed":
            answer[name] = ArrayScaling("fixed", 0.0, 0.0, own)
            continue
        before, behind = sum(applied[:k]), sum(applied[k + 1 :])
        from_inputs = 0.0 if roles[name] == "vector" else (1 + degree) * before
        rate = -own - degree * behind - from_inputs
        answer[name] = ArrayScaling(roles[name], starts[name], rate, own)
    return answer


def _role(units: list[Unit]) -> str:
    """By what grows with the width."""
    wide_in, wide_out = (
        len({getattr(u, side) for u in units}) > 1 for side in ("fan_in", "fan_out")
    )
    if not (wide_in or wide_out):
        return "fixed"
    if all(u.fan_in == 1 and math.isnan(u.size) for u in units):
        return "vector"
    if wide_in:
        return "hidden" if wide_out else "output"
    return "input"
