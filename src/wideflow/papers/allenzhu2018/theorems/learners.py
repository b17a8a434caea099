"""What a run of one of the paper's learners reached, and why it may not be what the main theorems
speak of.
"""

import math
from dataclasses import dataclass
from typing import Any

from ....data.dataset import Dataset
from ....dynamics.bounded_losses import loss_class
from ....dynamics.sgd import SGD
from ....theorems.recorded_run import run_fault
from ....training.run import Run
from ..best_iterate import BestIterate
from ..models.biased_two_layer import BiasedTwoLayer
from ..smoothed_sgd import SmoothedSGD
from .hypotheses import inputs_fault, layer_fault, readout_fault


@dataclass(frozen=True)
class Learnt:
    """A test loss and the sizes with which it was reached.

    Attributes:
        fault: why the theorem does not speak of it; empty where it does.
        open: why a larger loss would not refute the theorem; empty where it would.
    """

    loss: float
    width: int
    samples: int
    iterations: int
    outputs: int = 1
    rate: float | None = None
    fault: str = ""
    open: str = ""


def two_layers_learnt(run: Run) -> Learnt:
    """What a run of Algorithm 1 reached: the best iterate's test loss, or the last one's."""
    _check_one(run)
    best = isinstance(run.dynamics, BestIterate)
    inner = run.dynamics.dynamics if best else run.dynamics
    uniform = isinstance(inner, SGD) and (inner.batches.replace or inner.replayed is not None)
    fault = ""
    if not isinstance(run.start, BiasedTwoLayer):
        fault = f"the theorem is about `BiasedTwoLayer`, and the run trained {_name(run.start)}"
    elif not (uniform and inner.batch == 1):
        fault = "the theorem is about `SGD(rate, batch=1, replace=True)`, one uniform sample a step"
    fault = fault or _fault(run) or layer_fault(run.start.weights, run.start.bias, "start")
    if fault:
        return _nothing(run, fault)
    model: Any = BestIterate.best(run) if best else run.model
    return Learnt(
        _test_loss(run, model),
        model.width,
        len(run.data),
        int(run.table["step"][-1]),
        1 if model.output.ndim == 1 else len(model.output),
        float(inner.rate),
        open=""
        if best and run.dynamics.every == 1
        else "it is about the best of all iterates; train with `BestIterate(..., every=1)`",
    )


def three_layers_learnt(run: Run, variant: int) -> Learnt:
    """What a run of Algorithm 2 reached once lines 14-16 have chosen among noise draws."""
    _check_one(run)
    dynamics, start, fault = run.dynamics, run.start, ""
    if not isinstance(dynamics, SmoothedSGD) or dynamics.variant != variant:
        fault = f"the theorem is about `SmoothedSGD(variant={variant})`"
    fault = fault or _fault(run)
    for weights, bias, layer in (
        ("first", "first_bias", "first"),
        ("second", "second_bias", "second"),
    ):
        if not fault:
            whole = getattr(start, weights) + getattr(start, f"{weights}_increment")
            fault = layer_fault(whole, getattr(start, bias), f"{layer} layer")
    if fault:
        return _nothing(run, fault)
    final = dynamics.finish(run.model, run.data, run.loss).model
    return Learnt(
        _test_loss(run, final),
        start.widths[1],
        len(run.data),
        int(run.table["step"][-1]),
        open="its parameters hold powers that the theorem leaves open",
    )


def _check_one(run: Run) -> None:
    if run.several:
        raise ValueError(
            f"`loss` is a run of {len(run.model)} networks; judge one of them: `run.member(0)`."
        )


def _fault(run: Run) -> str:
    """Hypotheses that both algorithms share."""
    if not isinstance(run.data, Dataset):
        return f"the theorems learn from samples, and the run descended {_name(run.data)}"
    if not isinstance(run.test, Dataset):
        return "the theorem is about the test loss; train with `test=`"
    reasons = loss_class(run.loss, run.data.targets).reasons
    if reasons:
        return f"the loss is not of the paper's class: {'; '.join(reasons)}"
    return (
        run_fault(run.table, ("loss",))
        or inputs_fault(run.data.inputs)
        or inputs_fault(run.test.inputs)
        or readout_fault(run.start.output)
    )


def _nothing(run: Run, fault: str) -> Learnt:
    samples = len(run.data) if isinstance(run.data, Dataset) else 1
    return Learnt(math.nan, 1, samples, 1, fault=fault)


def _test_loss(run: Run, model) -> float:
    return float(run.loss(model.outputs(run.test.inputs), run.test.targets))


def _name(thing) -> str:
    return f"a `{type(thing).__name__}`"
