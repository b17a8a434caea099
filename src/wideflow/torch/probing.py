"""`wf.probe` for modules of PyTorch: the same numbers, rows and verdict as for functions of JAX."""

import math
from collections.abc import Callable

import numpy as np
import torch

from ..probe import Change, Probe, judge_change, mean_parts, watched_outputs
from .kernels import Kernels
from .network import Network, State, check_function, exact_arithmetic, submodule_outputs, to_numpy


def probe_module(
    module,
    before,
    after,
    inputs,
    targets=None,
    features: str | Callable | None = None,
    *,
    output: int | None = None,
    batched: bool | None = None,
    memory: int | str | None = None,
) -> Probe:
    """See `wideflow.probe`; buffers are those of each state, and parameters without `requires_grad`
    may not change.
    """
    if batched is not None and batched is not True:
        raise ValueError(
            f"`batched` must be None or True, as modules take batches, got {batched!r}."
        )
    check_function(module)
    network = Network(module, inputs)
    first, second = network.in_precision(
        network.state(before, "params_before"), network.state(after, "params_after")
    )
    _check_frozen(network, first, second)
    with exact_arithmetic(network.device):
        outputs = network.outputs(first), network.outputs(second)
        outputs_watched = watched_outputs(*outputs, output)
        kernels = Kernels(network, first, outputs_watched[0], memory)
        parts = [mean_parts(kernels.parts(state, outputs_watched)) for state in (first, second)]
        tangent = network.along(first, network.change(first, second))
        movement = _feature_movement(network, features, first, second)
    sizes = {name: first[name].numel() for name in network.names}
    change = Change(
        parts, outputs, tangent, network.squares(first, second), sizes, network.epsilon, movement
    )
    if isinstance(targets, torch.Tensor):
        targets = to_numpy(targets)
    return judge_change(change, targets, output)


def _check_frozen(network: Network, before: State, after: State) -> None:
    frozen = [name for name, p in network.module.named_parameters() if not p.requires_grad]
    for name in frozen:
        if not torch.equal(before[name], after[name]):
            raise ValueError(
                f"`params_after` differs from `params_before` in {name!r}, which has "
                "`requires_grad=False` in the module; "
                "set it to True, or leave the parameter where it was."
            )


def _feature_movement(
    network: Network, features: str | Callable | None, before: State, after: State
) -> float:
    if features is None:
        return math.nan
    read: Callable[[State, tuple], torch.Tensor]
    if isinstance(features, str):
        read = submodule_outputs(network.module, features)
    elif callable(features):
        read = lambda state, inputs: features(state, *inputs)
    else:
        raise ValueError(
            "`features` must name a submodule or be a function of (state, inputs), got "
            f"{features!r}."
        )
    with torch.no_grad():
        start, end = (to_numpy(read(state, network.inputs)) for state in (before, after))
    size = float(np.linalg.norm(start))
    return float(np.linalg.norm(end - start)) / size if size > 0 else math.inf
