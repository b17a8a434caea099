"""A `torch.nn.Module` as a function of its parameters, and what must be true of it before that
makes sense.

Outputs of one input may not depend on the others, on chance, or on anything but parameters and
buffers: so batch statistics and active dropout are refused. Everything is computed in the module's
own precision, on the module's own device.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, jvp
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

Inputs = tuple[Tensor, ...]
State = dict[str, Tensor]

HALF = (torch.float16, torch.bfloat16)
DROPOUT_FIELDS = ("dropout",)  # of `nn.MultiheadAttention` and `nn.RNN`, which drop on their own


def device_and_dtype(module: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Of the trained parameters, which must agree on the device; the finest precision among
    them.
    """
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    for name, parameter in module.named_parameters():
        if nn.parameter.is_lazy(parameter):
            raise ValueError(
                f"`module` has lazy parameters without a shape, such as {name!r}; call it once "
                "on a batch first."
            )
    if not trained:
        raise ValueError(
            "`module` must have at least one parameter with `requires_grad=True`, got none: "
            "there is nothing to differentiate."
        )
    devices = {str(p.device) for p in trained.values()}
    if len(devices) > 1:
        raise ValueError(
            f"`module` must lie on one device, got parameters on {', '.join(sorted(devices))}."
        )
    first = next(iter(trained.values()))
    dtype = first.dtype
    for name, parameter in trained.items():
        _check_precision("module", name, parameter)
        dtype = torch.promote_types(dtype, parameter.dtype)
    return first.device, dtype


def _check_precision(argument: str, name: str, tensor: Tensor) -> None:
    if tensor.dtype in HALF:
        raise ValueError(
            f"`{argument}` must be in float32 or float64, got "
            f"{str(tensor.dtype).removeprefix('torch.')} in {name!r}; "
            "half precision leaves kernels too few digits: convert a copy with `.float()`."
        )


def check_function(module: nn.Module) -> None:
    """Refuses what makes a module more than a function of parameters and one input."""
    for name, part in module.named_modules():
        label = f"{name!r} ({type(part).__name__})" if name else type(part).__name__
        if isinstance(part, _NormBase) and (part.training or part.running_mean is None):
            if isinstance(part, nn.modules.instancenorm._InstanceNorm):
                continue  # its statistics are those of one input
            remedy = (
                "Call `module.eval()` first."
                if part.training and part.track_running_stats
                else "Use layer or group normalisation, or `track_running_stats=True`."
            )
            raise ValueError(
                f"`module` uses batch statistics in {label}, so that outputs of one input depend "
                f"on the others. {remedy}"
            )
        if part.training and _drops(part):
            raise ValueError(
                f"`module` has active dropout in {label}, so that outputs depend on chance. Call "
                "`module.eval()` first."
            )


def _drops(part: nn.Module) -> bool:
    if isinstance(part, _DropoutNd):
        return part.p > 0
    fields = (getattr(part, field, None) for field in DROPOUT_FIELDS)
    return any(isinstance(value, float) and value > 0 for value in fields)


def checked_inputs(inputs, device: torch.device, dtype: torch.dtype) -> Inputs:
    """The module's arguments, one row per sample each; NumPy arrays are moved to the module,
    tensors must lie there.
    """
    parts = tuple(inputs) if isinstance(inputs, tuple) else (inputs,)
    tensors = tuple(checked_tensor("inputs", part, device, dtype) for part in parts)
    if not tensors or any(t.ndim == 0 or t.shape[0] == 0 for t in tensors):
        raise ValueError(
            "`inputs` must hold arrays with one row per sample, got none or an empty one."
        )
    counts = {t.shape[0] for t in tensors}
    if len(counts) > 1:
        raise ValueError(
            f"`inputs` must have one row per sample in every array, got {sorted(counts)}."
        )
    return tensors


def checked_tensor(name: str, value, device: torch.device, dtype: torch.dtype) -> Tensor:
    if isinstance(value, Tensor):
        if value.device != device:
            raise ValueError(
                f"`{name}` must lie on the module's device {device}, got {value.device}. Move "
                f"them with `.to({str(device)!r})`."
            )
        _check_precision(name, name, value)
        tensor = value.detach()
    else:
        try:
            array = np.asarray(value)
            tensor = torch.as_tensor(array).to(device)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"`{name}` must be tensors or arrays of numbers, got {value!r}."
            ) from error
    if tensor.is_complex():
        raise ValueError(f"`{name}` must be real, got {tensor.dtype}.")
    if not tensor.is_floating_point():
        return tensor  # indices into an embedding
    if tensor.device.type != "meta" and not bool(torch.isfinite(tensor).all()):
        raise ValueError(f"`{name}` must be finite, but they hold NaN or infinity.")
    return tensor.to(dtype)


@contextlib.contextmanager
def exact_arithmetic(device: torch.device) -> Iterator[None]:
    """Plain formulas in the tensors' own precision.

    Off are: autocast and TF32, which drop digits; the fused attention kernels, which have no
    forward derivative, and the fused encoder layer, which by-passes the submodules.
    """
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
            if device.type == "cuda":
                stack.enter_context(_without_tf32())
            if torch.amp.is_autocast_available(device.type):
                stack.enter_context(torch.autocast(device.type, enabled=False))
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


@contextlib.contextmanager
def _without_tf32() -> Iterator[None]:
    """Through the newer of PyTorch's two interfaces where it exists: mixing them is an error."""
    matmul, convolution = torch.backends.cuda.matmul, getattr(torch.backends.cudnn, "conv", None)
    if hasattr(matmul, "fp32_precision") and convolution is not None:
        places, name, exact = (matmul, convolution), "fp32_precision", "ieee"
    else:
        places, name, exact = (matmul, torch.backends.cudnn), "allow_tf32", False
    before = [getattr(place, name) for place in places]
    for place in places:
        setattr(place, name, exact)
    try:
        yield
    finally:
        for place, value in zip(places, before, strict=True):
            setattr(place, name, value)


class Network:
    """The function (parameters, buffers) -> outputs on fixed inputs.

    Attributes:
        names: the trained parameters, in the module's order.
        fixed: what else the module holds when it is built, parameters that are not trained and
            buffers.
    """

    def __init__(self, module: nn.Module, inputs):
        self.module = module
        self.device, self.dtype = device_and_dtype(module)
        self.inputs = checked_inputs(inputs, self.device, self.dtype)
        self.samples = self.inputs[0].shape[0]
        self.names = tuple(name for name, p in module.named_parameters() if p.requires_grad)
        self.epsilon = torch.finfo(self.dtype).eps

    def state(self, source: nn.Module | Mapping | None = None, name: str = "module") -> State:
        """All parameters and buffers of `source` (a state dict or a module; default the module
        itself), copied.
        """
        own = {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}
        values = own if source is None else _entries(source, name)
        state = {}
        for key, mine in own.items():
            if key not in values:
                persistent = key in self.module.state_dict()
                if persistent:
                    raise ValueError(
                        f"`{name}` must have the entries of the module, but {key!r} is missing."
                    )
                state[key] = mine.detach().clone()
                continue
            state[key] = self._taken(name, key, mine, values[key])
        extra = sorted(
            set(values) - set(own) - set(self.module.state_dict())
        )  # tied ones have two names
        if extra:
            raise ValueError(
                f"`{name}` must have the entries of the module, but {extra[0]!r} is not one."
            )
        return state

    def _taken(self, name: str, key: str, mine: Tensor, value) -> Tensor:
        tensor = torch.as_tensor(value).detach()
        if nn.parameter.is_lazy(value):
            raise ValueError(
                f"`{name}` has a lazy parameter without a shape, {key!r}; call the module once "
                "on a batch first."
            )
        if tensor.shape != mine.shape:
            raise ValueError(
                f"`{name}` must have the shapes of the module, got {tuple(tensor.shape)} for "
                f"{tuple(mine.shape)} in {key!r}."
            )
        _check_precision(name, key, tensor)
        if tensor.device != self.device:
            raise ValueError(
                f"`{name}` must lie on the module's device {self.device}, got {tensor.device} in "
                f"{key!r}."
            )
        return tensor.clone()

    def in_precision(self, *states: State) -> tuple[State, ...]:
        """All states, and the inputs with them, in the finest precision among them."""
        for state in states:
            for name in self.names:
                self.dtype = torch.promote_types(self.dtype, state[name].dtype)
        convert = lambda t: t.to(self.dtype) if t.is_floating_point() else t
        self.inputs = tuple(map(convert, self.inputs))
        self.epsilon = torch.finfo(self.dtype).eps
        return tuple({key: convert(value) for key, value in state.items()} for state in states)

    def on(self, state: State, inputs: Inputs) -> Tensor:
        """Outputs on a batch, with their derivatives where `state` asks for them."""
        outputs = functional_call(self.module, state, inputs)
        if not isinstance(outputs, Tensor):
            raise ValueError(
                f"`module` must give one tensor, got {type(outputs).__name__}. Wrap it in a "
                "module that returns the tensor to watch."
            )
        if outputs.ndim == 0 or outputs.shape[0] != inputs[0].shape[0]:
            raise ValueError(
                f"`module` must give one row per sample, got shape {tuple(outputs.shape)} for "
                f"{inputs[0].shape[0]} inputs."
            )
        return outputs

    def outputs(self, state: State) -> np.ndarray:
        with torch.no_grad():
            return to_numpy(self.on(state, self.inputs))

    def along(self, state: State, direction: State) -> np.ndarray:
        """The derivative of all outputs along a direction in the trained parameters."""
        rest = {name: value for name, value in state.items() if name not in direction}
        call = lambda moving: self.on({**rest, **moving}, self.inputs)
        moving = {name: state[name] for name in direction}
        with torch.no_grad(), warnings.catch_warnings():
            # PyTorch's rules for forward mode, loaded at the first use, are themselves written with
            # it
            warnings.filterwarnings(
                "ignore", ".*torch.jit.script.* is deprecated", DeprecationWarning
            )
            return to_numpy(jvp(call, (moving,), (direction,))[1])

    def change(self, before: State, after: State) -> State:
        return {name: after[name] - before[name] for name in self.names}

    def squares(self, before: State, after: State) -> dict[str, tuple[float, float]]:
        """Sum of squares of every trained array before, and of its change."""
        square = lambda t: float(torch.sum(t.double() ** 2))
        return {
            name: (square(before[name]), square(after[name] - before[name])) for name in self.names
        }


def _entries(source, name: str) -> Mapping:
    if isinstance(source, nn.Module):
        return {**dict(source.named_parameters()), **dict(source.named_buffers())}
    if isinstance(source, Mapping):
        return source
    raise ValueError(f"`{name}` must be a state dict or a module, got {source!r}.")


def weight_layers(module: nn.Module) -> dict[str, nn.Module]:
    """The submodules that hold a matrix (or more axes) of their own, by name."""
    return {
        name or type(part).__name__: part
        for name, part in module.named_modules()
        if any(p.ndim >= 2 for p in part.parameters(recurse=False))
    }


@dataclass(frozen=True)
class Pass:
    """One forward pass: what every weight layer saw and gave, in the order of the calls, and the
    outputs.
    """

    layer_inputs: dict[str, Tensor]
    layer_outputs: dict[str, Tensor]
    outputs: Tensor


def forward_pass(network: "Network", state: State) -> Pass:
    """A layer that is called several times counts by its last call."""
    layer_inputs: dict[str, Tensor] = {}
    layer_outputs: dict[str, Tensor] = {}

    def hook(name: str):
        def read(part, arguments, output):
            output = output[0] if isinstance(output, tuple) else output
            if arguments and isinstance(arguments[0], Tensor) and isinstance(output, Tensor):
                layer_inputs[name], layer_outputs[name] = (
                    arguments[0].detach().clone(),
                    output.detach().clone(),
                )

        return read

    handles = [
        part.register_forward_hook(hook(name))
        for name, part in weight_layers(network.module).items()
    ]
    try:
        with torch.no_grad():
            outputs = network.on(state, network.inputs)
    finally:
        for handle in handles:
            handle.remove()
    return Pass(layer_inputs, layer_outputs, outputs)


@contextlib.contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """The module in evaluation mode; afterwards every part is in the mode in which it was."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def to_numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().to("cpu", torch.float64).numpy()


def submodule_outputs(module: nn.Module, name: str) -> Callable:
    """`read(state, inputs)`: what the submodule `name` gives in a forward pass."""
    try:
        part = module.get_submodule(name)
    except AttributeError as error:
        names = [n for n, _ in module.named_modules() if n]
        raise ValueError(
            f"`features` must name a submodule, got {name!r}; there are {', '.join(names)}."
        ) from error

    def read(state: State, inputs: Inputs) -> Tensor:
        outputs = []
        handle = part.register_forward_hook(lambda _, __, output: outputs.append(output))
        try:
            functional_call(module, state, inputs)
        finally:
            handle.remove()
        if not outputs:
            raise ValueError(f"`features` names {name!r}, which a forward pass does not call.")
        return outputs[-1]

    return read
