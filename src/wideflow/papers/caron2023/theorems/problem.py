"""What the theorems of caron2023 ask of a network and its data, gathered once."""

import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from ...._core.errors import check_kind, check_probability
from ...._core.precision import double
from ...._core.scalings import NTK, Weights, Zipf
from ....data.assumptions import check_data_assumptions
from ....data.dataset import Dataset
from ....limits.kernels import Spectrum, mean_ntk, spectrum
from ....models.embeddings import Identity
from ....models.shallow import Shallow, has_own_scales
from ....observables.kernels import KernelDistance, KernelMinEigenvalue, tangent_gram
from ....observables.movement import WeightMovement
from ....observables.risks import Loss
from ....theorems.base import Outcome, Verdict
from ....theorems.gaussian_start import start_fault
from ....theorems.recorded_run import excused, other_record, residual_error, rounding, run_fault
from ..limits.first_step import output_bound

RECORD = (
    Loss(),
    KernelMinEigenvalue(),
    KernelDistance("spectral", relative=False),
    WeightMovement(),
)
"""What `train` must record for the theorems about trajectories."""

REACHABLE = 1e9
"""Nodes: a width hypothesis beyond this can be met on no computer, so the theorem is vacuous
there.
"""


@dataclass(frozen=True)
class Problem:
    r"""$n$, $d$, $m$, $\gamma$, $\kappa_n$, $C$, the node weights with their split, and what fails
    of the assumptions.

    `fault` says what fails of Assumptions 2.1 and 2.2 and of the node weights; `law` what speaks
    against the random start of Assumption 2.3, which deterministic statements do not ask for.

    Attributes:
        samples, features, width: $n$, $d$, $m$.
        gamma: $\gamma$, the symmetric share of the node weights.
        kappa: $\kappa_n$.
        resolved: whether $\kappa_n$ is above rounding.
        bound: $C$, the bound of the targets.
        norm: the largest norm of an input.
        weights: $\lambda_j$, shape (width,).
        symmetric: their symmetric part $\gamma/m$, likewise.
        lipschitz, curvature: $\sup|\sigma'|$ and $\sup|\sigma''|$.
        kinked: whether $\sigma$ has kinks.
    """

    samples: int
    features: int
    width: int
    gamma: float
    kappa: float
    resolved: bool
    bound: float
    norm: float
    weights: np.ndarray
    symmetric: np.ndarray
    lipschitz: float
    curvature: float
    kinked: bool
    fault: str
    law: str = ""

    @property
    def asymmetric(self) -> np.ndarray:
        return np.maximum(self.weights - self.symmetric, 0.0)  # rounding can go below 0

    def numbers(self) -> dict[str, float]:
        return {
            "n": float(self.samples),
            "d": float(self.features),
            "m": float(self.width),
            "gamma": self.gamma,
            "kappa": self.kappa,
            "C": self.bound,
        }


def share_of_symmetric(model: Shallow) -> float:
    r"""$\gamma$ of the node scaling."""
    scaling = model.scaling
    if isinstance(scaling, NTK):
        return 1.0
    if isinstance(scaling, Zipf | Weights):
        return float(scaling.gamma)
    return math.nan


@double
def gather(start, data, *, mean: Spectrum | None = None) -> Problem:
    r"""Reads the constants of the theorems off the network at time zero and its dataset, and checks
    every assumption.

    The start's law, $w_j\sim\mathcal N(0, I)$ with fair signs $a_j$, is tested on the drawn numbers
    (`theorems.gaussian_start`).

    Args:
        start: the network.
        data: its dataset.
        mean: `spectrum(mean_ntk(data.inputs, start.activation))` where it is known already.
    """
    if not isinstance(start, Shallow):
        raise ValueError(f"`start` must be a `Shallow` network, got {type(start).__name__}.")
    check_kind("data", data, Dataset, "a `Dataset`")
    act, inputs = start.activation, jnp.asarray(data.inputs, dtype=float)
    start.embed(inputs)  # refuses inputs of another dimension
    samples, features = inputs.shape
    gamma = share_of_symmetric(start)
    assumptions = check_data_assumptions(inputs, data.targets)
    mean = spectrum(mean_ntk(inputs, act)) if mean is None else mean
    faults = []
    if not isinstance(start.embedding, Identity):
        faults.append("the network has an embedding; the theorems are about the plain one")
    if math.isnan(gamma):
        faults.append(f"{type(start.scaling).__name__} is no node scaling of total weight 1")
    elif not has_own_scales(start):
        total = float(np.sum(np.asarray(start.scales, dtype=np.float64) ** 2))
        faults.append(
            f"the node weights sum to {total:.4g} and are not those of {start.scaling} at width "
            f"{start.width}: the network was pruned or "
            "changed, and the theorems are about the whole one"
        )
    if start.output.ndim != 1 or not np.all(np.abs(np.asarray(start.output)) == 1):
        faults.append("the output weights must be one row of signs")
    if not assumptions.bounded or (not assumptions.no_parallels and not mean.resolved):
        faults.append(assumptions.message)
    if not mean.resolved:
        faults.append(f"kappa_n = {mean.smallest:.3g} is below its rounding {mean.resolution:.1g}")
    if act.polynomial:
        faults.append(f"{act.name!r} is a polynomial")
    elif not act.analytic and act.name != "relu":
        faults.append(f"{act.name!r} is neither ReLU nor analytic (Assumption 2.2)")
    elif not act.lipschitz <= 1.0 + 1e-12:
        faults.append(f"|sigma'| reaches {act.lipschitz:.4g} > 1 for {act.name!r}")
    # a network in single precision has rounded scales, and gamma/m would leave a rest of rounding
    own = not math.isnan(gamma) and has_own_scales(start)
    scales = start.scaling.node_scales(start.width) if own else start.scales
    weights = np.asarray(scales, dtype=np.float64) ** 2
    symmetric = np.full(start.width, (0.0 if math.isnan(gamma) else gamma) / start.width)
    return Problem(
        samples,
        features,
        start.width,
        gamma,
        mean.smallest,
        mean.resolved,
        assumptions.target_bound,
        assumptions.largest_norm,
        weights,
        symmetric,
        float(act.lipschitz),
        float(act.curvature),
        bool(act.kinks),
        "; ".join(dict.fromkeys(faults)),
        start_fault(start),
    )


def unmet(
    problem: Problem,
    *,
    kinked: bool | None = None,
    positive_gamma: bool = True,
    random: bool = True,
) -> Verdict | None:
    """NOT_APPLICABLE with the reason when an assumption fails, else None; `kinked`: it is for ReLU
    (True), for smooth activations (False) or for both; `random`: it is about a random start.
    """
    reasons = [problem.fault] if problem.fault else []
    if positive_gamma and not problem.gamma > 0:
        reasons.append("gamma is 0: no symmetric part keeps the Gram matrix positive")
    if kinked is True and not problem.kinked:
        reasons.append("the statement is for ReLU; use the smooth version")
    if kinked is False and problem.kinked:
        reasons.append("the statement is for smooth activations; use the ReLU version")
    elif kinked is False and not problem.curvature >= 0:
        reasons.append("the bound on |sigma''| is unknown")
    if random and problem.law:
        reasons.append(f"{problem.law} (Assumption 2.3)")
    if not reasons:
        return None
    return Verdict(Outcome.NOT_APPLICABLE, math.nan, "; ".join(reasons), problem.numbers())


def hypotheses(
    start, data, mean: Spectrum | None, delta: float, *, kinked: bool | None = None, **asked: bool
) -> tuple[Problem, Verdict | None]:
    """The constants of a statement that fails with probability `delta`, and what speaks against
    it as `unmet` has it.
    """
    check_probability("failure_probability", delta)
    problem = gather(start, data, mean=mean)
    return problem, unmet(problem, kinked=kinked, **asked)


NAMES = {
    "loss": "Loss",
    "kernel_gap": "KernelMinEigenvalue",
    "kernel_drift": "KernelDistance",
    "weight_movement": "WeightMovement",
}

ROUNDING = 1e-24
"""Losses up to here are rounding of outputs and targets of order one."""


@dataclass(frozen=True)
class Trajectory:
    """A run recorded with `RECORD`.

    Attributes:
        times, losses, gaps, drifts: of the records, shape (record,).
        movement: the farthest that each node went, shape (width,).
        place: the rounding of a node's weights, shape (width,).
        error: of the norm of the residual, by the solver's tolerance and rounding.
        fault: why the run judges nothing; empty where it can.
    """

    times: np.ndarray
    losses: np.ndarray
    gaps: np.ndarray
    drifts: np.ndarray
    movement: np.ndarray
    place: np.ndarray
    error: float
    fault: str

    def decay_ratio(self, bound: np.ndarray) -> float:
        """The largest of loss over `bound`, (record,). At time zero it is an equality, small losses
        are rounding, and an excess within the run's error counts as none.
        """
        judged = (self.losses > ROUNDING) & (self.times > 0)
        losses, bound = self.losses[judged], np.maximum(bound[judged], 1e-300)
        ratios = np.where(excused(losses, bound, self.error), 1.0, losses / bound)
        return float(np.max(ratios, initial=0.0))

    def movement_ratio(self, reach: np.ndarray) -> float:
        """The largest of movement over `reach`, (width,), beyond rounding; a node of weight 0
        neither moves nor may.
        """
        moved, beyond = self.movement, self.movement - self.place > reach
        ratios = np.where(moved > 0, moved, 0.0) / np.where(moved > 0, np.maximum(reach, 1e-300), 1)
        return float(np.max(np.where(beyond, ratios, np.minimum(ratios, 1.0))))


def trajectory(table, start, data) -> Trajectory:
    """Reads the run of `start` on `data` off its table."""
    missing = [observable for name, observable in NAMES.items() if name not in table]
    if missing:
        raise ValueError(
            f"`table` must hold the records of {', '.join(missing)}; train with "
            "`record=wf.theorems.caron2023.RECORD`."
        )
    if not str(table.attrs.get("loss", "half sum")).startswith("half sum"):
        raise ValueError(
            f"`table` must come from the half sum of squares, got {table.attrs['loss']!r}."
        )
    if table["loss"].ndim != 1:
        raise ValueError(
            f"`table` must hold one run, got dimensions {table['loss'].dims}. Select one: "
            "`table.isel(seed=0)`."
        )
    losses, gaps, drifts, movements = (table[name].values.astype(float) for name in NAMES)
    values = np.linalg.eigvalsh(np.asarray(tangent_gram(start, data.inputs)))
    size = (len(values) + math.sqrt(start.width)) * values[-1]  # of the sums behind an eigenvalue
    fault = run_fault(table, NAMES) or other_record(
        table, "kernel_gap", values[0], size, "on all samples"
    )
    error = residual_error(start, data, table)
    times = table["time"].values.astype(float)
    sizes = np.linalg.norm(np.asarray(start.weights, dtype=np.float64), axis=0)
    movement = movements.max(axis=0)
    place = 10 * rounding(table) * (sizes + movement)
    return Trajectory(times, losses, gaps, drifts, movement, place, error, fault)


def four_ratios(
    path: Trajectory, *, gap: float, rate: float, reach: np.ndarray, drift: float
) -> dict[str, float]:
    """Largest ratio of actual to bound for the conclusions (a)-(d): the gap stays above `gap`, the
    loss falls at `rate`, node j within `reach[j]`, the Gram matrix within `drift`.
    """
    least = float(path.gaps.min())
    return {
        "a": gap / least if least > 0 else math.inf,
        "b": path.decay_ratio(path.losses[0] * np.exp(-rate * path.times)),
        "c": path.movement_ratio(reach),
        "d": float(path.drifts.max()) / drift,
    }


def smooth_output_bound(start: Shallow) -> float:
    r"""$C_1$ of equation 13."""
    return output_bound(start.activation, start.weights.shape[0])


def conclude(ratios: dict[str, float], numbers: dict[str, float], message: str) -> Verdict:
    """HOLDS when no ratio of actual to bound exceeds 1 (to 1e-9), with margin 1 minus the largest;
    NaN shows nothing either way.
    """
    numbers = {**numbers, **{f"ratio_{name}": value for name, value in ratios.items()}}
    text = ", ".join(f"{name}: {value:.3g}" for name, value in ratios.items())
    worst = max(ratios.values(), key=lambda r: math.inf if r != r else r)
    if worst != worst:
        return Verdict(
            Outcome.NOT_APPLICABLE,
            math.nan,
            f"{message}; not all ratios are numbers: {text}",
            numbers,
        )
    outcome = Outcome.HOLDS if worst <= 1.0 + 1e-9 else Outcome.VIOLATED
    return Verdict(outcome, 1.0 - worst, f"{message}; actual/bound {text}", numbers)
