"""A recorder for a training loop of one's own in PyTorch: the table, figure and verdict that
`train` and `probe` give.
"""

import time as clock
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
import xarray as xr
from torch import Tensor, nn

from .. import observables
from .._core.counted import counted
from .._core.errors import check_between, check_callable, check_count, check_number
from ..figures import FigureSpec, Line, Panel
from ..observables.layers import alignment
from ..observables.regime import LAZY, RICH, Regime
from ..probe import mean_parts, relative_change, relative_movement
from .kernels import Kernels
from .network import Network, Pass, State, check_function, exact_arithmetic, forward_pass, to_numpy

LABELS = {
    "loss": "loss on the watched inputs",
    "kernel_cosine": "cosine of Θ(t) and Θ(0)",
    **{
        observable.name: observable.label
        for observable in (
            observables.KernelDistance(),
            observables.KernelAlignment(),
            observables.KernelTrace(),
            observables.EffectiveRank(),
            observables.LinearisationGap(),
            observables.ParameterMovement(),
            observables.ArrayMovement(),
            observables.FeatureKernelDrift(),
            observables.FeatureAlignment(),
            observables.LayerFeatureMovement(),
        )
    },
}
AXES = {
    "array_movement_relative": "array",
    "feature_kernel_drift": "layer",
    "feature_alignment": "layer",
    "layer_feature_movement": "layer",
}


class Watch:
    r"""Compares a module with its initial state, whenever `record(step)` is called in the training
    loop.

    Recorded are the names that `train` records with the observables of `wideflow.observables`:
    `kernel_change`, `kernel_alignment` (with the targets), `kernel_trace`, `effective_rank`,
    `linearisation_gap`, `parameter_movement`, `array_movement_relative` (one number per parameter),
    and layer by layer `layer_feature_movement` (of what it gives), `feature_kernel_drift` and
    `feature_alignment` (of what comes out of it and reaches the next layer with weights); besides,
    `kernel_cosine` between $\Theta_t$ and $\Theta_0$, and the loss on the watched inputs.

    A record costs one forward and one backward pass of the watched inputs for each watched output,
    two forward passes and one forward-mode product; held are a copy of the parameters and what
    `memory` allows. The seconds spent are in the table and in `cost`.

    Args:
        module: before training; on any device, in float32 or float64. Records are refused in
            training mode if that makes outputs depend on the batch or on chance: call
            `module.eval()` before and `module.train()` after them.
        inputs: (sample, ...), or a tuple of a module's arguments; some tens of samples.
        targets: of the outputs' shape, or classes as integers.
        output: the output whose kernel is recorded, as in `train`; None for the mean over all
            outputs, which costs that many times more.
        loss: `loss(outputs, targets)`; default cross-entropy for classes, else half the mean
            square error.
        memory: budget of a record, bytes or '512M'; default `WIDEFLOW_MEMORY` or 2 GiB.
        share: the share of the wall-clock time since the start that records may take, such as 0.1;
            records beyond it are skipped and listed in `skipped`.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    >>> watch = Watch(net, torch.eye(2), torch.ones(2, 1))
    >>> watch.record(0)["kernel_change"], watch.verdict
    (0.0, 'untrained')
    """

    def __init__(
        self,
        module: nn.Module,
        inputs,
        targets=None,
        *,
        output: int | None = 0,
        loss: Callable | None = None,
        memory: int | str | None = None,
        share: float | None = None,
    ):
        if not isinstance(module, nn.Module):
            raise ValueError(f"`module` must be a torch.nn.Module, got {module!r}.")
        if loss is not None:
            check_callable("loss", loss, "a function of (outputs, targets)")
        if share is not None:
            check_between("share", share, 0, 1, open=True, remedy="None records always.")
        self._began = clock.perf_counter()
        check_function(module)
        self.network, self.share = Network(module, inputs), share
        self.start = self.network.state()
        with exact_arithmetic(self.network.device):
            try:
                self._first = forward_pass(self.network, self.start)
            except RuntimeError as error:
                shapes = ", ".join(str(tuple(part.shape)) for part in self.network.inputs)
                raise ValueError(
                    f"`inputs` of shape {shapes} do not pass through the module: {error}"
                ) from error
            self.outputs = _outputs(output, self._first.outputs)
            self.targets = _targets(targets, self._first.outputs)
            self.loss = loss or _default_loss
            self._kernels = Kernels(self.network, self.start, self.outputs[0], memory)
            self._kernel = self._gram(self.start)
        self.layers = tuple(self._first.layer_outputs)[:-1]
        self.rows: list[dict[str, np.ndarray]] = []
        self.steps: list[tuple[int, float]] = []
        self.skipped: list[int] = []
        self.seconds = self._last = clock.perf_counter() - self._began

    def record(self, step: int, time: float | None = None) -> dict[str, float]:
        """Records the module as it is now; gives `scalars()`, or nothing where `share` does not
        allow it.

        Args:
            step: its number, larger than that of the record before.
            time: the table's coordinate `time`; default the step.
        """
        check_count("step", step, least=0)
        time = step if time is None else time
        check_number("time", time)
        if self.steps and step <= self.steps[-1][0]:
            raise ValueError(
                f"`step` must be larger than the last one, {self.steps[-1][0]}, got {step}."
            )
        began = clock.perf_counter()
        if self.rows and not self._affordable(began):
            self.skipped.append(int(step))
            return {}
        check_function(self.network.module)
        with exact_arithmetic(self.network.device):
            row = self._measured(self.network.state())
        self.rows.append({name: np.asarray(value, float) for name, value in row.items()})
        self.steps.append((int(step), float(time)))
        self._last = clock.perf_counter() - began
        self.seconds += self._last
        return self.scalars()

    def _affordable(self, now: float) -> bool:
        """Whether a record like the last one stays within the share of the time that records may
        take.
        """
        # what the records have taken, with another one like the last, against all time so far
        return self.share is None or self.seconds + self._last <= self.share * (now - self._began)

    def _gram(self, state: State) -> np.ndarray:
        parts = mean_parts(self._kernels.parts(state, self.outputs))
        return np.sum(list(parts.values()), axis=0)

    def _measured(self, state: State) -> dict:
        now, kernel, start = forward_pass(self.network, state), self._gram(state), self._kernel
        squares = self.network.squares(self.start, state)
        size = np.linalg.norm(kernel)
        row = {
            "kernel_change": relative_change(start, kernel),
            "kernel_cosine": share_of(np.sum(start * kernel), np.linalg.norm(start) * size),
            "kernel_trace": np.trace(kernel),
            "effective_rank": share_of(np.trace(kernel), size) ** 2,
            "linearisation_gap": self._linearisation_gap(state, now.outputs),
            "parameter_movement": relative_movement(squares.values()),
            "array_movement_relative": [relative_movement([pair]) for pair in squares.values()],
        }
        if self.layers:
            row |= self._layer_values(now)
        if self.targets is not None:
            loss_targets, y = self.targets
            y = y[:, [self.outputs[0]]] if len(self.outputs) == 1 else y
            row["loss"] = float(self.loss(now.outputs, loss_targets))
            row["kernel_alignment"] = share_of(np.sum(y * (kernel @ y)), size * np.sum(y**2))
        return row

    def _linearisation_gap(self, state: State, outputs: Tensor) -> float:
        change = to_numpy(outputs) - to_numpy(self._first.outputs)
        size = float(np.linalg.norm(change))
        if size == 0:
            return 0.0
        tangent = self.network.along(self.start, self.network.change(self.start, state))
        return float(np.linalg.norm(change - tangent)) / size

    def _layer_values(self, now: Pass) -> dict[str, list]:
        movement = [
            rms(now.layer_outputs[name] - self._first.layer_outputs[name]) for name in self.layers
        ]
        kernels = [feature_kernels(p) for p in (self._first, now)]
        values = {
            "layer_feature_movement": movement,
            "feature_kernel_drift": [relative_change(a, b) for a, b in zip(*kernels)],
        }
        if self.targets is not None:
            y = self.targets[1]
            values["feature_alignment"] = [
                float(alignment(kernel, y @ y.T)) for kernel in kernels[1]
            ]
        return values

    @property
    def regime(self) -> Regime:
        """Kernel change and linearisation gap of the last record."""
        if not self.rows:
            raise ValueError("`watch` has no record yet; call `watch.record(step)` in the loop.")
        last = self.rows[-1]
        return Regime(float(last["kernel_change"]), float(last["linearisation_gap"]))

    @property
    def verdict(self) -> str:
        """'lazy', 'between' or 'rich', as of the last record; 'untrained' where nothing has
        moved.
        """
        movement = self.regime and float(self.rows[-1]["parameter_movement"])
        return self.regime.verdict if movement else "untrained"

    @property
    def index(self) -> float:
        """The laziness index, 1 for lazy."""
        return self.regime.index

    @property
    def cost(self) -> float:
        """The share of the wall-clock time since the start that records took."""
        return self.seconds / (clock.perf_counter() - self._began)

    def scalars(self) -> dict[str, float]:
        """The last record as plain numbers by name, `layer_feature_movement/conv1` for those of a
        layer: what TensorBoard and W&B take.
        """
        if not self.rows:
            return {}
        values = {}
        for name, value in self.rows[-1].items():
            if value.ndim == 0:
                values[name] = float(value)
            else:
                labels = self._coordinates()[AXES[name]]
                values |= {
                    f"{name}/{label}": float(v) for label, v in zip(labels, value, strict=True)
                }
        return values

    def _coordinates(self) -> dict[str, list[str]]:
        return {"layer": list(self.layers), "array": list(self.network.names)}

    @property
    def table(self) -> xr.Dataset:
        """Everything recorded; dimension `step`, coordinates `time`, `layer` and `array`,
        attributes with conventions.
        """
        if not self.rows:
            raise ValueError("`watch` has no record yet; call `watch.record(step)` in the loop.")
        variables = {
            name: (
                ("step", *([AXES[name]] if name in AXES else [])),
                np.stack([row[name] for row in self.rows]),
                {"label": LABELS[name]},
            )
            for name in self.rows[0]
        }
        steps, times = zip(*self.steps)
        coordinates = {"step": list(steps), "time": ("step", list(times)), **self._coordinates()}
        if not self.layers:
            del coordinates["layer"]
        return xr.Dataset(variables, coordinates, self._attributes())

    def _attributes(self) -> dict:
        mine = self.loss is _default_loss
        return {
            "loss": "cross-entropy of classes, else half the mean of squares"
            if mine
            else repr(self.loss),
            "model": type(self.network.module).__name__,
            "parameters": sum(t.numel() for n, t in self.start.items() if n in self.network.names),
            "neuron_factor": "1",
            "precision": str(self.network.dtype).removeprefix("torch."),
            "samples": self.network.samples,
            "outputs": ", ".join(map(str, self.outputs)),
            "engine": "torch",
            "seconds": self.seconds,
            "cost": self.cost,
            "skipped": len(self.skipped),
        }

    def figure(self) -> FigureSpec:
        """Loss, the way from lazy to rich, and movement and feature kernels layer by layer."""
        table = self.table
        steps = table.step.values
        line = lambda name, label, **more: Line(steps, positive(table[name].values), label, **more)
        panels = []
        if "loss" in table:
            panels.append(
                Panel("Loss", "step", "loss", [line("loss", "watched inputs")], yscale="log")
            )
        borders = [
            Line(steps[[0, -1]], [level] * 2, text, dash="dotted")
            for level, text in ((LAZY, "lazy below"), (RICH, "rich above"))
        ]
        marks = [
            line("kernel_change", "kernel change"),
            line("linearisation_gap", "linearisation gap"),
        ]
        panels.append(
            Panel("From lazy to rich", "step", "relative change", marks + borders, yscale="log")
        )
        titles = {
            "layer_feature_movement": "Movement of every layer",
            "feature_kernel_drift": "Feature kernels",
        }
        for name, title in titles.items():
            if name in table:
                values = table[name].values
                lines = [
                    Line(steps, positive(values[:, k]), label)
                    for k, label in enumerate(self.layers)
                ]
                panels.append(Panel(title, "step", LABELS[name], lines, yscale="log"))
        caption = (
            f"Verdict: {self.verdict}, laziness index {self.index:.2f}; records took "
            f"{self.seconds:.2g} s, {self.cost:.1%} of the time."
        )
        return FigureSpec(f"Watched: {table.attrs['model']}", panels, columns=2, caption=caption)

    def __str__(self) -> str:
        lines = [
            f"{self.verdict}: laziness index {self.index:.3f} at step {self.steps[-1][0]}, "
            f"{counted(self.network.samples, 'input')}",
            f"{counted(len(self.rows), 'record')} took {self.seconds:.3g} s, {self.cost:.1%} of "
            f"the time; {len(self.skipped)} skipped",
        ]
        lines += [f"  {name}: {value:.4g}" for name, value in self.scalars().items()]
        return "\n".join(lines)


def share_of(part: float | np.floating, whole: float | np.floating) -> float:
    """Their ratio; 0 of a whole that is 0, as of a kernel that has vanished."""
    return float(part / whole) if whole > 0 else 0.0


def positive(values: np.ndarray) -> np.ndarray:
    """NaN where a logarithmic axis has no place."""
    return np.where(values > 0, values, np.nan)


def rms(tensor: Tensor) -> float:
    return float(torch.sqrt(torch.mean(tensor.double() ** 2)))


def feature_kernels(forward: Pass) -> list[np.ndarray]:
    r"""$\Phi_{ij} = \langle x_i, x_j\rangle/n$ of what every weight layer but the first sees."""
    kernels = []
    for layer_inputs in list(forward.layer_inputs.values())[1:]:
        flat = to_numpy(layer_inputs.flatten(1))
        kernels.append(flat @ flat.T / flat.shape[1])
    return kernels


def _outputs(output: int | None, outputs: Tensor) -> tuple[int, ...]:
    count = outputs[0].numel()
    if output is None:
        return tuple(range(count))
    check_count("output", output, least=0, most=count - 1, remedy="None takes the mean over all.")
    return (int(output),)


def _targets(targets, outputs: Tensor) -> tuple[Tensor, np.ndarray] | None:
    """As the loss takes them, and as a (sample, output) array of numbers."""
    if targets is None:
        return None
    values = torch.as_tensor(targets)
    if values.device != outputs.device and isinstance(targets, Tensor):
        raise ValueError(
            f"`targets` must lie on the module's device {outputs.device}, got {values.device}. "
            f"Move them with `.to({str(outputs.device)!r})`."
        )
    values = values.detach().to(outputs.device)
    if values.is_floating_point():
        if values.shape != outputs.shape or not bool(torch.isfinite(values).all()):
            raise ValueError(
                f"`targets` must be finite, of the outputs' shape {tuple(outputs.shape)}, or "
                f"classes as whole numbers, got shape {tuple(values.shape)}."
            )
        return values.to(outputs.dtype), to_numpy(values).reshape(len(values), -1)
    classes = outputs.shape[1] if outputs.ndim == 2 else 0
    if values.shape != outputs.shape[:1] or not bool(((values >= 0) & (values < classes)).all()):
        raise ValueError(
            f"`targets` must be one class per sample in 0..{classes - 1}, or numbers of the "
            f"outputs' shape, got shape {tuple(values.shape)}."
        )
    return values.long(), to_numpy(F.one_hot(values.long(), classes))


def _default_loss(outputs: Tensor, targets: Tensor) -> float:
    if targets.is_floating_point():
        return 0.5 * float(torch.sum((outputs - targets).double() ** 2)) / len(targets)
    return float(F.cross_entropy(outputs, targets))
