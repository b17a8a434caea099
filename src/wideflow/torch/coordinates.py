"""The coordinate check for functions width -> module, with any optimiser of PyTorch."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from .._core.errors import check_callable
from .mending import Unit, measure_units, optimiser_degree, recorded_calls, scalings
from .network import checked_tensor, device_and_dtype, weight_layers
from .watch import rms


@dataclass
class Measured:
    """What one network of one width and seed gave.

    Attributes:
        sizes: mean of |h| of every layer before each step and after the last, as microsoft/mup
            records it.
        squares: mean squares of what a layer gives at the start, and of its change.
        units: what the exponents of its arrays are read off.
    """

    sizes: dict[str, list[float]] = field(default_factory=dict)
    squares: dict[str, tuple[float, float]] = field(default_factory=dict)
    units: dict[str, Unit] = field(default_factory=dict)


def check_modules(
    constructor: Callable,
    widths: Sequence[int],
    inputs,
    targets,
    *,
    rate: float,
    steps: int,
    seeds: int,
    key,
    optimiser,
    loss,
) -> tuple[list[list[Measured]], dict, float]:
    """(width, seed) measurements, the scaling of every array, and the optimiser's rate."""
    if isinstance(key, bool) or not isinstance(key, int):
        raise ValueError(f"`key` must be a whole number for modules of PyTorch, got {key!r}.")
    if loss is not None:
        check_callable("loss", loss, "a function of (outputs, targets)")
    trainer = _Trainer(constructor, inputs, targets, optimiser, loss, rate, steps)
    rows = [[trainer.measured(width, key + seed) for seed in range(seeds)] for width in widths]
    degree = optimiser_degree(lambda scale: trainer.displacement(widths[0], key, scale))
    return rows, scalings(widths, [[m.units for m in row] for row in rows], degree), trainer.rate


class _Trainer:
    """Builds a module and takes it through some steps."""

    def __init__(self, constructor, inputs, targets, optimiser, loss, rate: float, steps: int):
        self.constructor, self.inputs, self.targets = constructor, inputs, targets
        self.optimiser, self.rate, self.steps = optimiser, rate, steps
        self.loss = loss or (lambda f, y: _mean_squares(f, y))

    def built(self, width: int, seed: int):
        """The module and its optimiser; the user's random numbers stay where they were."""
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            torch.manual_seed(seed)
            module = self.constructor(width)
        if not isinstance(module, nn.Module):
            raise ValueError(
                "`constructor` must be a function of (key, width), or of the width that gives a "
                f"torch.nn.Module, got {module!r} from it."
            )
        optimiser = self._optimiser(module)
        self.rate = float(optimiser.param_groups[0].get("lr", self.rate))
        return module, optimiser

    def _optimiser(self, module: nn.Module) -> torch.optim.Optimizer:
        if self.optimiser is None:
            return torch.optim.SGD(module.parameters(), lr=self.rate)
        if isinstance(self.optimiser, type):
            return self.optimiser(module.parameters(), lr=self.rate)
        optimiser = self.optimiser(module)
        if not isinstance(optimiser, torch.optim.Optimizer):
            raise ValueError(
                "`optimiser` must be a class of torch.optim or a function module -> optimiser, "
                f"got {optimiser!r} from it."
            )
        return optimiser

    def batch(self, module: nn.Module) -> tuple[tuple[Tensor, ...], Tensor]:
        device, dtype = device_and_dtype(module)
        parts = self.inputs if isinstance(self.inputs, tuple) else (self.inputs,)
        tensors = tuple(checked_tensor("inputs", part, device, dtype) for part in parts)
        return tensors, checked_tensor("targets", self.targets, device, dtype)

    def step(self, module, optimiser, inputs, targets, scale: float = 1.0) -> None:
        def closure():
            optimiser.zero_grad()
            value = scale * self.loss(module(*inputs), targets)
            if value.ndim != 0 or not bool(torch.isfinite(value)):
                raise ValueError(
                    f"`loss` must give one finite number, got {value}; a smaller `rate` may help."
                )
            value.backward()
            return value

        optimiser.step(closure)

    def measured(self, width: int, seed: int) -> Measured:
        module, optimiser = self.built(width, seed)
        inputs, targets = self.batch(module)
        before = {name: value.detach().clone() for name, value in module.state_dict().items()}
        calls = recorded_calls(module, inputs)
        units = measure_units(module, before, calls)
        answer, start, first, activations = Measured(), {}, {}, {}
        for step in range(self.steps + 1):
            activations = _activations(module, inputs)
            start = start or activations
            for name, values in activations.items():
                answer.sizes.setdefault(name, []).append(float(values.abs().double().mean()))
            if step == self.steps:
                break
            self.step(module, optimiser, inputs, targets)
            if step == 0:
                first = measure_units(module, before, calls)
        last = measure_units(module, before, calls)
        for name, at_start in units.items():
            # one step is in proportion to the rate; behind a readout of zeros nothing moves before
            # the second
            own = first[name].own if first[name].own > 0 else last[name].own
            answer.units[name] = dataclasses.replace(at_start, own=own)
        answer.squares = {
            name: (rms(start[name]) ** 2, rms(activations[name] - start[name]) ** 2)
            for name in start
        }
        return answer

    def displacement(self, width: int, seed: int, scale: float) -> float:
        """How far one step moves all parameters when the loss is multiplied by `scale`."""
        module, optimiser = self.built(width, seed)
        inputs, targets = self.batch(module)
        before = [p.detach().clone() for p in module.parameters()]
        self.step(module, optimiser, inputs, targets, scale)
        moved = zip(module.parameters(), before, strict=True)
        return math.sqrt(sum(float(torch.sum((a.detach() - b).double() ** 2)) for a, b in moved))


def _mean_squares(outputs: Tensor, targets: Tensor) -> Tensor:
    """Half the mean over samples of squares, as for functions of JAX."""
    if targets.is_floating_point() and outputs.numel() == targets.numel():
        return torch.sum((outputs.reshape(targets.shape) - targets) ** 2) / (2 * len(targets))
    raise ValueError(
        f"`targets` must be numbers of the outputs' shape {tuple(outputs.shape)}, got "
        f"{targets.dtype} of shape {tuple(targets.shape)}; "
        "for classes give `loss=torch.nn.functional.cross_entropy`."
    )


def _activations(module: nn.Module, inputs) -> dict[str, Tensor]:
    """What every layer with weights gives, and the outputs."""
    activations: dict[str, Tensor] = {}

    def hook(name: str):
        def read(part, arguments, output):
            output = output[0] if isinstance(output, tuple) else output
            if isinstance(output, Tensor):
                activations[name] = output.detach().clone()

        return read

    handles = [p.register_forward_hook(hook(name)) for name, p in weight_layers(module).items()]
    try:
        with torch.no_grad():
            activations["outputs"] = module(*inputs).detach().clone()
    finally:
        for handle in handles:
            handle.remove()
    return {
        **{name: h for name, h in activations.items() if name != "outputs"},
        "outputs": activations["outputs"],
    }
