"""Statements judged on a case, and the run that they are compared with."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ..dynamics.flow import GradientFlow
from ..limits.linearised import linearised
from ..models.shallow import Shallow
from ..observables.block_kernels import BlockDrift, BlockGap
from ..observables.kernels import KernelDistance, KernelMinEigenvalue
from ..observables.movement import FeatureMovement, ParameterMovement, WeightMovement
from ..observables.regime import Regime
from ..observables.risks import Loss
from ..papers.caron2023 import theorems as caron2023
from ..papers.chen2022 import theorems as chen2022
from ..probe import linearisation_gap
from ..theorems.base import Outcome
from ..training.recorder import Logarithmic
from ..training.train import train
from .grams import own_gram
from .registry import ALWAYS, Case, Statement, statements
from .timing import SHARES

STIFFNESS = 2000.0  # a default run lasts at most this many fastest time scales (chosen)
RECORDS_A_DECADE = 8  # of time, in such a run (chosen)


@dataclass(frozen=True)
class Promise:
    """A statement and its verdict on this case.

    Attributes:
        required: the width it asks for (NaN where it asks for none); `available` is the network's.
        rate: the decay rate of the loss that it promises, NaN where none.
        bounds: further promised numbers, by name.
        name, theorem, about: the statement's title, the class that judges it, and what it speaks
            of.
        outcome, margin, message, numbers: those of its `Verdict`.
    """

    name: str
    theorem: str
    about: str
    outcome: Outcome
    margin: float
    message: str
    required: float
    available: float
    rate: float
    bounds: dict[str, float]
    numbers: dict[str, float]

    @property
    def shortfall(self) -> float:
        """How many times too narrow the network is: above 1, the width hypothesis fails by this
        factor.
        """
        return self.required / self.available if self.available > 0 else math.nan

    @property
    def width_helps(self) -> bool:
        """Whether a wider network comes nearer to the hypothesis."""
        return self.numbers.get("width_helps", 1.0) > 0

    def width_text(self) -> str:
        if not self.width_helps:
            return "not by width"
        if not math.isfinite(self.required):
            return "" if math.isnan(self.required) else "no width suffices"
        verdict = f"{self.shortfall:.2g} times too narrow" if self.shortfall > 1 else "met"
        return f"m >= {self.required:.3g} ({verdict})"

    def rate_text(self) -> str:
        return f"rate {self.rate:.3g}" if math.isfinite(self.rate) else ""

    told_width, told_rate = width_text, rate_text  # their names before 0.2.0

    def to_dict(self) -> dict:
        return {
            "name": self.name,
            "theorem": self.theorem,
            "about": self.about,
            "outcome": self.outcome.value,
            "margin": self.margin,
            "message": self.message,
            "required_width": self.required,
            "width": self.available,
            "shortfall": self.shortfall,
            "rate": self.rate,
            "bounds": dict(self.bounds),
            "numbers": dict(self.numbers),
        }


def judge_all(case: Case) -> tuple[tuple[Promise, ...], tuple[str, ...]]:
    """Every registered statement on `case`, and the names of those that need a run which is not
    there.
    """
    ready = [s for s in statements() if s.run != ALWAYS or case.table is not None]
    later = tuple(s.name for s in statements() if s.run == ALWAYS and case.table is None)
    return tuple(judge(statement, case) for statement in ready), later


def judge(statement: Statement, case: Case) -> Promise:
    verdict = statement.verdict(
        case
    )  # a statement that does not apply says so; an error is an error
    numbers = {name: float(value) for name, value in verdict.numbers.items()}
    return Promise(
        statement.name,
        statement.theorem.__name__,
        statement.about,
        verdict.outcome,
        float(verdict.margin),
        verdict.message,
        numbers.get(statement.required, math.nan),
        float(getattr(case.model, "width", math.nan)),
        numbers.get(statement.rate, math.nan),
        {name: numbers[name] for name in statement.bounds if name in numbers},
        numbers,
    )


@dataclass(frozen=True)
class Followed:
    """A gradient flow of the network, and what it did beside what was predicted."""

    table: xr.Dataset
    model: Any
    status: str
    regime: Regime
    predicted: float
    rate: float

    @property
    def last(self) -> dict[str, float]:
        table = self.table
        return {
            str(name): float(table[name].values[-1])
            for name in table.data_vars
            if table[name].ndim == 1
        }

    def rows(self) -> tuple[tuple[str, str, str], ...]:
        last, table = self.last, self.table
        gap = float(table["kernel_gap"].min())
        return (
            ("time", f"{float(table['time'].values[-1]):.4g}", self.status),
            (
                "loss",
                f"{last['loss']:.4g}",
                f"from {float(table['loss'].values[0]):.4g}; linearised dynamics predicted "
                f"{self.predicted:.4g}",
            ),
            (
                "decay rate of the loss",
                f"{self.rate:.4g}",
                f"the smallest gap seen certifies {2 * gap:.3g} (a posteriori)",
            ),
            (
                "kernel drift",
                f"{last['kernel_drift']:.4g}",
                f"{self.regime.kernel_change:.1%} of the kernel",
            ),
            ("regime", self.regime.verdict, f"laziness index {self.regime.index:.3f} as measured"),
            *(
                (f"time to {share:g} of the initial loss", *_reached(table, share))
                for share in SHARES
            ),
        )

    def to_dict(self) -> dict:
        table = self.table
        return {
            "status": self.status,
            "predicted_loss": self.predicted,
            "rate": self.rate,
            "index": self.regime.index,
            "verdict": self.regime.verdict,
            "kernel_change": self.regime.kernel_change,
            "linearisation_gap": self.regime.linearisation_gap,
            "time": table["time"].values.tolist(),
            **{
                str(name): table[name].values.tolist()
                for name in table.data_vars
                if table[name].ndim == 1
            },
        }


def _reached(table, share: float) -> tuple[str, str]:
    """When the recorded loss first lies at or below `share` of its start, between records by the
    logarithm of the loss.
    """
    times, losses = table["time"].values, table["loss"].values
    below = np.flatnonzero(losses <= share * losses[0])
    if not below.size:
        return "not reached", f"the loss is at {losses[-1] / losses[0]:.3g} of its start"
    last = int(below[0])
    if last == 0:
        return "0", "as measured"
    ends = np.log(np.maximum(losses[last - 1 : last + 1], 1e-300) / (share * losses[0]))
    time = times[last - 1] + (times[last] - times[last - 1]) * ends[0] / (ends[0] - ends[1])
    return f"{time:.4g}", "as measured"


def follow(model, data, timing, top: float, interval, time: float | None) -> Followed:
    """Runs the flow up to `time`; by default until the linearised loss is at 1 %, if that is not
    too stiff.
    """
    if time is None:
        reach = [
            t for share, t in zip(timing.shares, timing.times) if share >= 0.01 and math.isfinite(t)
        ]
        time = min(max(reach, default=math.inf), STIFFNESS / top)
    record = [
        Loss(),
        KernelMinEigenvalue(),
        KernelDistance("spectral", relative=False),
        ParameterMovement(),
    ]
    if data.targets.ndim == 2:
        watched = (
            (WeightMovement(), FeatureMovement(relative=True)) if isinstance(model, Shallow) else ()
        )
        record = [Loss(), BlockGap(), BlockDrift(), ParameterMovement(), *watched]
    elif isinstance(model, Shallow):
        needed = (*caron2023.RECORD, FeatureMovement(relative=True), *chen2022.record(interval))
        names = {observable.name for observable in needed}
        record = [*needed, *(o for o in record if o.name not in names)]
    kinked = getattr(getattr(model, "activation", None), "kinks", ())
    tolerance = 1e-3 if kinked else 1e-8  # finer steps would only follow the chatter at kinks
    run = train(
        model,
        data,
        GradientFlow(tolerance),
        time=time,
        record=record,
        every=Logarithmic(RECORDS_A_DECADE, time / 1e3),
    )
    return measure(model, run, data)


def measure(start, run, data) -> Followed:
    """Kernel change and linearisation gap of a finished run, its decay rate, and the loss that
    constant-kernel training predicts.
    """
    before, after = own_gram(start, data.inputs), own_gram(run.model, data.inputs)
    change = float(np.linalg.norm(after - before) / np.linalg.norm(before))
    gap = linearisation_gap(start, run.model, data.inputs)
    losses, times = run.table["loss"].values, run.table["time"].values
    above_floor = losses > 1e-22 * losses[0]
    last = int(np.max(np.flatnonzero(above_floor), initial=0))  # none: the loss is 0 throughout
    rate = float(-np.log(losses[last] / losses[0]) / times[last]) if last else math.nan
    outputs, targets = (
        np.asarray(v, float).reshape(-1) for v in (start.outputs(data.inputs), data.targets)
    )
    predicted = float(linearised(before, targets, times[-1:], start=outputs).losses[0])
    return Followed(
        run.table, run.model, run.table.attrs["status"], Regime(change, gap), predicted, rate
    )
