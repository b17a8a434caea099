"""What the theorems of chen2022 ask of a network and its data, gathered once."""

import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from ...._core.activations import Activation
from ...._core.errors import check_interval, check_kind
from ...._core.precision import double
from ...._core.scalings import MeanField
from ....data.dataset import Dataset
from ....models.maps import common_magnitude
from ....models.shallow import Shallow, has_own_scales
from ....theorems.base import Outcome, Verdict
from ....theorems.gaussian_start import start_fault
from ....theorems.recorded_run import least_slack, other_record, residual_error, rounding, run_fault
from ..observables.activity import (
    DisplacedFraction,
    Interval,
    LeastActiveFraction,
    LossSlope,
    PreactivationSpeed,
    SumLoss,
    WeightedResidual,
    middle_third,
    share_inside,
)
from .constants import slope_floor

REACHABLE = 1e9
"""Neurons or features: a hypothesis beyond this can be met on no computer."""


def record(interval: Interval | None = None) -> tuple:
    """What `train` must record for the theorems about trajectories.

    Args:
        interval: $I$; the activation's own if None.
    """
    return (
        SumLoss(),
        LeastActiveFraction(interval),
        DisplacedFraction(interval),
        LossSlope(),
        WeightedResidual(),
        PreactivationSpeed(),
    )


@dataclass(frozen=True)
class Problem:
    r"""$n$, $m$, $D$, $\hat c$, the spectrum and the diagonal of $G$, $I$, $K_s$,
    $\lVert y \rVert$, $L^0$, $\eta^0$, $\tilde\eta^0$, and what fails of the assumptions.

    `faults` concern every statement; `law` says what speaks against fair signs (Assumption 1) and
    standard normal weights (Assumption 3), which the statements about random starts ask for and the
    deterministic ones do not.

    Attributes:
        samples, width, features: $n$, $m$, $D$.
        magnitude: $\hat c$; NaN where the output weights differ in size.
        activation: $\sigma$.
        interval: $I$.
        floor: $K_s = \inf_I|\sigma'|$.
        smallest, largest: the extreme eigenvalues of $G$.
        resolution: below it an eigenvalue is rounding.
        diagonal: $G_{aa}$, shape (sample,).
        target_norm: $\lVert y\rVert$.
        initial_loss: $L^0$.
        eta, eta_tilde: $\eta^0$ and $\tilde\eta^0$.
    """

    samples: int
    width: int
    features: int
    magnitude: float
    activation: Activation
    interval: Interval
    floor: float
    smallest: float
    largest: float
    resolution: float
    diagonal: np.ndarray
    target_norm: float
    initial_loss: float
    eta: float
    eta_tilde: float
    faults: tuple[str, ...]
    law: str = ""

    @property
    def least(self) -> float:
        return float(self.diagonal.min())

    @property
    def most(self) -> float:
        return float(self.diagonal.max())

    def numbers(self) -> dict[str, float]:
        low, high = self.interval
        return {
            "n": float(self.samples),
            "m": float(self.width),
            "D": float(self.features),
            "chat": self.magnitude,
            "lambda_min": self.smallest,
            "lambda_max": self.largest,
            "G_min": self.least,
            "G_max": self.most,
            "interval_low": float(low),
            "interval_high": float(high),
            "slope_floor": self.floor,
            "y_norm": self.target_norm,
            "initial_loss": self.initial_loss,
            "eta": self.eta,
            "eta_tilde": self.eta_tilde,
        }

    def unmet(self) -> Verdict | None:
        """NOT_APPLICABLE with the reasons where an assumption fails, else None."""
        if not self.faults:
            return None
        return Verdict(Outcome.NOT_APPLICABLE, math.nan, "; ".join(self.faults), self.numbers())

    @property
    def random_faults(self) -> list[str]:
        """What stands against a statement about random starts."""
        return [*self.faults, *([f"{self.law} (Assumptions 1 and 3)"] if self.law else [])]


@double
def gather(start: Shallow, data, interval: Interval | None = None) -> Problem:
    """Reads the constants off the network at time zero and its dataset; $G$ is that of its
    embedding.

    Args:
        start: a `Shallow` network at time zero.
        data: the training set.
        interval: $I$; the activation's own if None.
    """
    if not isinstance(start, Shallow):
        raise ValueError(f"`start` must be a `Shallow` network, got {type(start).__name__}.")
    check_kind("data", data, Dataset, "a `Dataset`")
    act = start.activation
    interval = check_interval(interval or act.interval)
    features = np.asarray(start.embedding.embed(jnp.asarray(data.inputs)), dtype=np.float64)
    gram = features @ features.T / features.shape[1]
    values = np.linalg.eigvalsh(gram)
    resolution = len(gram) * np.finfo(float).eps * float(values[-1])
    faults = []
    if not (isinstance(start.scaling, MeanField) and start.scaling.hidden == 0.5):
        faults.append(
            f"the scaling is {start.scaling}, not MeanField(); `wf.maps` writes NTK() and "
            "MeanField(hidden=1.0) in it"
        )
    elif not has_own_scales(start):
        faults.append(f"the node scales are not 1/{start.width}: the network was pruned or changed")
    try:
        magnitude = common_magnitude(start)
    except ValueError:
        magnitude = math.nan
        faults.append("the output weights are not all plus or minus one magnitude (Assumption 1)")
    floor = slope_floor(act, interval)
    if not floor > 0:
        faults.append(
            f"|sigma'| is not bounded away from 0 on {interval} for {act.name!r} (Assumption 2)"
        )
    if not math.isfinite(act.lipschitz):
        faults.append(f"{act.name!r} is not Lipschitz, or its constant is unknown (Assumption 2)")
    if not values[0] > resolution:
        faults.append(
            f"G is singular: lambda_min = {values[0]:.2g} is below rounding ({resolution:.1g})"
        )
    h = features @ np.asarray(start.weights, dtype=np.float64) * start.hidden_scale
    mixed = np.asarray(start.scales * start.output, dtype=np.float64)
    outputs = np.asarray(act(jnp.asarray(h))) @ mixed.T
    targets = np.asarray(data.targets, dtype=np.float64)
    if outputs.shape != targets.shape:
        raise ValueError(
            f"`data` must have targets of shape {outputs.shape} for this network, got "
            f"{targets.shape}."
        )
    h = jnp.asarray(h)
    return Problem(
        len(gram),
        start.width,
        features.shape[1],
        magnitude,
        act,
        interval,
        floor,
        float(values[0]),
        float(values[-1]),
        resolution,
        np.diag(gram),
        float(np.linalg.norm(targets)),
        0.5 * float(np.sum((outputs - targets) ** 2)),
        float(jnp.min(share_inside(h, interval))),
        float(jnp.min(share_inside(h, middle_third(interval)))),
        tuple(faults),
        start_fault(start),
    )


@dataclass(frozen=True)
class Trajectory:
    """A run recorded with `record()`.

    Attributes:
        times: of the half sum of squares, shape (record,).
        losses: its values.
        flow: whether it is a gradient flow.
        recorded: the other records, by name.
        rounding: of a number in the run's precision, relative to itself.
        error: of the norm of the residual, by the solver's tolerance and rounding.
        fault: why the run judges nothing; empty where it can.
    """

    times: np.ndarray
    losses: np.ndarray
    flow: bool
    recorded: dict[str, np.ndarray]
    rounding: float
    error: float
    fault: str

    def below(self, rate: float | int) -> float:
        """How far the loss stays below $L^0 e^{-rt}$ (to 1e-6 of it) everywhere; negative
        where it does not, by more than the run's error explains.
        """
        bound = self.losses[0] * np.exp(-rate * self.times) * (1 + 1e-6) + 1e-14 * self.losses[0]
        return least_slack(self.losses, bound, self.error)


def trajectory(
    table, start: Shallow, data, problem: Problem, names: tuple[str, ...] = ()
) -> Trajectory:
    """Reads a run of `start` on `data`; under the mean loss time is divided by $n$."""
    missing = [name for name in ("sum_loss", *names) if name not in table]
    if missing:
        raise ValueError(
            f"`table` must hold {', '.join(missing)}; train with "
            "`record=wf.theorems.chen2022.record(interval)`."
        )
    if table["sum_loss"].ndim != 1:
        raise ValueError(
            f"`table` must hold one run, got dimensions {table['sum_loss'].dims}. Select one: "
            "`table.isel(seed=0)`."
        )
    loss = str(table.attrs.get("loss", "half sum"))
    if not loss.startswith(("half sum", "half mean")):
        raise ValueError(
            f"`table` must come from the half sum or half mean of squares, got {loss!r}."
        )
    times = np.asarray(table["time"].values, dtype=float) / (
        problem.samples if loss.startswith("half mean") else 1
    )
    flow = "Flow" in str(table.attrs.get("dynamics", "Flow"))
    recorded = {name: np.asarray(table[name].values, dtype=float) for name in names}
    losses = np.asarray(table["sum_loss"].values, dtype=float)
    fault = run_fault(table, ("sum_loss", *names))
    if not fault and "eta" in names:
        fault = other_record(table, "eta", problem.eta, 1.0, f"on the interval {problem.interval}")
    error = residual_error(start, data, table)
    return Trajectory(times, losses, flow, recorded, rounding(table), error, fault)


def check_probability(failure_probability: float | int) -> None:
    if not 0 < failure_probability < 1:
        raise ValueError(
            f"`failure_probability` must lie strictly between 0 and 1, got {failure_probability}."
        )
