r"""Statements about a training: a run goes in, its hypotheses are checked, a verdict comes out.

A statement about gradient flow says nothing of SGD, of another network's table, or of descent in
steps too large for the flow. What a table belongs to is read off its attributes (`dynamics`, and
digests of its networks and data), never assumed.
"""

import inspect
import math
import re
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from .._core.counted import counted
from .._core.errors import check_kind
from .._core.precision import cast
from .._core.renamed import under_new_names
from .._core.trees import describe, unlabelled
from ..models.base import AbstractModel
from ..models.shallow import Shallow
from ..observables.kernels import tangent_gram
from ..training.identity import digest
from ..training.run import Run
from .arguments import OLD_NAMES
from .base import AbstractTheorem, Outcome, Verdict
from .recorded_run import run_fault

# rate times the largest eigenvalue of the tangent Gram matrix: up to here descent falls
# monotonically along every mode
RESOLVED = 1.0


class AbstractRunTheorem(AbstractTheorem):
    """A statement about a training: `Theorem()(run)`.

    A class gives `evaluate(start, data, ...)`, whose parameters are called `start`, `model` (the
    trained one), `data`, `inputs`, `targets`, `dynamics`, `loss`, `state` and `table` where they
    come from the run. `Theorem()(start, data, table)` judges parts that belong together; parts that
    do not are NOT_APPLICABLE.

    Attributes:
        of_flow: whether the table must be that of gradient flow on the half sum (or half mean) of
            squares, or of descent that resolves it.
    """

    of_flow: ClassVar[bool] = True

    @abstractmethod
    def evaluate(self, *parts: Any, **options: Any) -> Verdict:
        """The verdict, once the table is known to be what the statement speaks of."""

    def __call__(self, *parts: Any, **options: Any) -> Verdict:
        """The verdict on a `Run`, or on the parts of one in the order of `evaluate`."""
        signature = inspect.signature(self.evaluate)
        if "failure_probability" in signature.parameters:
            options = under_new_names(options, OLD_NAMES)
        own = bool(parts) and isinstance(parts[0], Run)
        if own:
            fault = replaced_part(parts[0])
            if fault:
                return Verdict(Outcome.NOT_APPLICABLE, math.nan, fault)
            options = _parts_of(parts[0], signature.parameters) | options
            parts = parts[1:]
        try:
            bound = signature.bind(*parts, **options)
        except TypeError as error:
            wanted = ", ".join(f"`{name}`" for name in signature.parameters)
            raise ValueError(
                f"{type(self).__name__} takes a `Run`, or {wanted}: {error}."
            ) from error
        arguments = bound.arguments
        if "start" in arguments:
            check_kind("start", arguments["start"], AbstractModel, "a wideflow model")
        table = arguments.get("table")
        if table is not None:
            check_kind("table", table, xr.Dataset, "the table of a run", "Take `run.table`.")
        if table is not None and self.of_flow:
            fault = flow_fault(arguments["start"], arguments.get("data"), table, own=own)
            if fault:
                return Verdict(Outcome.NOT_APPLICABLE, math.nan, fault)
        return self.evaluate(*bound.args, **bound.kwargs)


def check_single(run: Run) -> None:
    """Refuses a run of several networks, as a verdict is on one."""
    if run.several:
        networks = counted(len(run.model), "network")
        raise ValueError(f"`run` trained {networks} together; judge one of them: `run.member(0)`.")


def _parts_of(run: Run, wanted) -> dict[str, Any]:
    """What of the run the statement takes, by name."""
    check_single(run)
    names = ("start", "model", "data", "dynamics", "loss", "state", "table")
    parts = {name: getattr(run, name) for name in names}
    parts |= {name: getattr(run.data, name, None) for name in ("inputs", "targets")}
    return {name: part for name, part in parts.items() if name in wanted}


def replaced_part(run: Run) -> str:
    """Which part of `run` its table does not belong to (`dataclasses.replace` puts in any other);
    empty where they all fit.
    """
    attributes = run.table.attrs
    if run.several or "starts" not in attributes:
        return ""
    start = unlabelled(run.start)
    fits = {"data": digest(run.data) in attributes["data"].split(",")}
    if attributes["precision"] == "float64":  # a start in single precision is the rounded one
        given = {digest(start), digest(cast(start, "float32"))}
        fits["start"] = not given.isdisjoint(attributes["starts"].split(","))
    if run.dynamics is not None:
        fits["dynamics"] = describe(run.dynamics) == attributes["dynamics"]
    for name, own in run.original.items():
        part = getattr(run, name)
        fits[name] = part is own or digest(part) == digest(own)
    for name, fit in fits.items():
        if not fit:
            return f"`run.{name}` is not that of its table; judge the run that `train` returned"
    return ""


def flow_fault(start, data, table: xr.Dataset, *, own: bool = False) -> str:
    """Why `table` does not record the gradient flow of `start` on `data`; empty where it does.

    Args:
        own: whether they are the parts of one `Run`, which need no digests: in single precision its
            start is the rounded one.
    """
    for what, thing, key in (("network", unlabelled(start), "starts"), ("data", data, "data")):
        known = str(table.attrs.get(key, "")).split(",")
        if not own and thing is not None and digest(thing) not in known:
            return f"the table is not that of this {what}; judge the `Run` itself"
    fault = run_fault(table, ("loss",) if "loss" in table else ())
    if fault:
        return fault
    first = float(np.min(table["time"].values))
    if first > 0:
        return f"the table begins at time {first:.3g}, and the statement is about the whole run"
    dynamics = str(table.attrs.get("dynamics", ""))
    if dynamics.startswith("GradientFlow("):
        return ""
    if dynamics.startswith("GradientDescent(rate=array"):
        return "the rate of this run is of unknown size; judge `run.member(i)`"
    step = re.match(r"GradientDescent\(rate=([0-9.e+-]+)\)", dynamics)
    if step is None:
        return (
            "the statement is about gradient flow, and the run is "
            f"{dynamics.split('(')[0] or 'of unknown dynamics'}"
        )
    return _too_coarse(start, data, float(step.group(1)), str(table.attrs.get("loss", "")))


def _too_coarse(start, data, rate: float, loss: str) -> str:
    if not isinstance(start, Shallow) or data is None:
        return "the statement is about gradient flow; train with `GradientFlow()`"
    gram = np.asarray(tangent_gram(start, data.inputs))
    samples = len(gram) if "mean" in loss else 1  # the mean's gradient is that of the sum over n
    stiffness = rate * float(np.linalg.eigvalsh(gram)[-1]) / samples
    if stiffness <= RESOLVED:
        return ""
    return (
        f"the statement is about gradient flow, and descent of rate {rate:g} does not resolve "
        "it: rate times the largest eigenvalue is "
        f"{stiffness:.3g} > {RESOLVED:g}; use a smaller rate or `GradientFlow()`"
    )
