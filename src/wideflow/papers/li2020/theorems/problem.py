r"""What the statements about a training take from a run, and why a run is none of those they speak
of.

They speak of $w_i(0)\sim\mathcal N(0, I/d)$, norm-coupled neurons, Gaussian inputs with a target
of $d$ orthonormal directions, $a_k > 0$ and $\sum a_k = 1$, and (truncated) descent of
$\mathbb E(f - f^*)^2$, exact or on samples. The paper gives no constants; how long, how wide and
how many samples is what sufficed at $\kappa \le 2$, $d$ from 10 to 30.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ....data.dataset import Dataset
from ....dynamics.descent import GradientDescent
from ....dynamics.flow import GradientFlow
from ....models.homogeneous import Homogeneous
from ....observables.stages import first_time
from ....theorems.base import Verdict
from ....theorems.gaussian_start import normal_fault
from ....theorems.of_runs import AbstractRunTheorem, check_single, replaced_part
from ....theorems.recorded_run import run_fault
from ....training.run import Run
from ..population import GaussianAbsTeacher
from ..truncated_descent import TruncatedDescent
from ._common import condition, degree_two_floor, not_applicable

STABLE = math.pi / 8  # of mean-field rates: beyond it descent does not follow the order-0 mode
SAMPLES_STRETCH = 4.0  # the plateau on 11 d^2 samples is up to this many times as long


@dataclass(frozen=True)
class Problem:
    r"""A run that the statements speak of, in coordinates of the target's basis.

    Attributes:
        run: the training.
        coefficients: $a_k$.
        initial, final: weights at its start and end, shape (width, direction).
        times, losses: $\tau$ and the population loss at the records; no losses where none were
            recorded.
        loss: the population loss at the end.
        samples: $N$, 0 on the exact population.
        stretch: how many times longer stages last than for absolute values on the population.
    """

    run: Run
    coefficients: np.ndarray
    initial: np.ndarray
    final: np.ndarray
    times: np.ndarray
    losses: np.ndarray | None
    loss: float
    samples: int
    stretch: float

    @property
    def width(self) -> int:
        return self.initial.shape[0]

    @property
    def features(self) -> int:
        return self.initial.shape[1]

    def reached(self, level: float) -> float:
        """The first time at which the loss is at most `level` times the floor; NaN if never."""
        if self.losses is None:
            return math.nan
        return first_time(self.times, self.losses <= level * degree_two_floor(self.coefficients))


class AbstractLearnerTheorem(AbstractRunTheorem):
    """A statement about the training of norm-coupled neurons: `Theorem()(run)`.

    On the numbers that `evaluate` takes it judges these alone: where they come from is then the
    caller's word.
    """

    of_flow: ClassVar[bool] = False

    @abstractmethod
    def unmet(self, problem: Problem) -> str:
        """The statement's own hypothesis that the run does not meet; empty where it meets all."""

    @abstractmethod
    def read(self, problem: Problem) -> dict[str, Any]:
        """What of the run `evaluate` takes, by name."""

    def __call__(self, *parts: Any, **options: Any) -> Verdict:
        """The verdict on a `Run`, or on the numbers that `evaluate` takes."""
        if not (parts and isinstance(parts[0], Run)):
            return self.evaluate(*parts, **options)
        fault = run_is_another(parts[0])
        if fault:
            return not_applicable(fault)
        problem = gather(parts[0])
        unmet = self.unmet(problem) or replaced_part(parts[0])
        return not_applicable(unmet) if unmet else self.evaluate(**self.read(problem), **options)


def run_is_another(run: Run) -> str:
    """Why the paper's statements do not speak of `run`; empty where they do."""
    check_single(run)
    population = _population(run)
    return (
        _learner_fault(run.start)
        or _target_fault(population)
        or _data_fault(run, population)
        or _dynamics_fault(run)
        or run_fault(run.table, ("loss",))
    )


def gather(run: Run) -> Problem:
    """What the statements take from a run that they speak of."""
    population = _population(run)
    assert population is not None  # `run_is_another` has refused a run without one
    objective = population.objective()
    basis = np.asarray(objective.directions, dtype=np.float64).T
    table, exact = run.table, run.data is population
    name = "loss" if exact else "test_loss"
    slow = 2.0 if (run.start.activation.name, run.start.factor) == ("relu", 1.0) else 1.0
    return Problem(
        run=run,
        coefficients=np.asarray(objective.coefficients, dtype=np.float64),
        initial=np.asarray(run.start.weights, dtype=np.float64) @ basis,
        final=np.asarray(run.model.weights, dtype=np.float64) @ basis,
        times=np.asarray(table.time.values, dtype=np.float64),
        losses=np.asarray(table[name].values, dtype=np.float64) if name in table else None,
        loss=float(objective.value(run.model)),
        samples=0 if exact else len(run.data.targets),
        stretch=slow * (1.0 if exact else SAMPLES_STRETCH),
    )


def too_small(problem: Problem) -> str:
    """What $d$, $m$ and $N$ lack for the lottery's statements, whose sets blur in small networks.

    Their levels are those measured at $d = 16$, $m = 256$ for absolute values.
    """
    d, m = problem.features, problem.width
    if problem.run.start.activation.name != "abs":
        return "its levels are those of absolute-value neurons"
    if d < 16 or m < d**2:
        return f"it requires d >= 16 and m >= d^2 neurons, and the run has d = {d}, m = {m}"
    return too_few_samples(problem) or beyond_condition(problem)


def too_few_samples(problem: Problem) -> str:
    d, m, n = problem.features, problem.width, problem.samples
    least = max(11 * d**2, 3 * m * d)
    return f"it requires N >= {least} samples (11 d^2 and 3 m d), got {n}" if 0 < n < least else ""


def beyond_condition(problem: Problem) -> str:
    kappa = condition(problem.coefficients)
    known = kappa <= 2 * (1 + 1e-9)
    return "" if known else f"how long it takes is known for kappa <= 2 only, here {kappa:.3g}"


def not_yet(problem: Problem, level: float, after: float, what: str) -> str:
    """Whether the run ends sooner than `after` (mean-field time, before `stretch`) after the loss
    passed `level` of the floor.
    """
    reached = problem.reached(level)
    if math.isnan(reached):
        record = "" if problem.losses is not None else "; record `TestLoss()` to show it"
        return f"the run does not show the end of {what} (loss at {level:g} of the floor){record}"
    end = reached + problem.stretch * after
    if problem.times[-1] < end:
        return f"it is about times after {end:.4g}, and the run ends at {problem.times[-1]:.4g}"
    return ""


def _population(run: Run) -> GaussianAbsTeacher | None:
    """The exact population of the run: descended, or that of its samples, given as the test."""
    for part in (run.data, run.test):
        if isinstance(part, GaussianAbsTeacher):
            return part
    return None


def _learner_fault(start) -> str:
    if not isinstance(start, Homogeneous):
        return f"it is about `Homogeneous` networks, and the run trained a `{type(start).__name__}`"
    learner = start.activation.name, start.factor
    if learner not in (("abs", 1.0), ("relu", 1.0), ("relu", 2.0)):
        return f"it is about the learners abs, relu1 and relu2, got {learner[0]} times {learner[1]}"
    scaled = np.asarray(start.weights, dtype=np.float64) * math.sqrt(start.weights.shape[1])
    # relu1 is relu2 at W / sqrt 2: a start of twice the mass is the paper's as well
    faults = [normal_fault(scaled, "the starting weights, times the root of d,")]
    if learner == ("relu", 1.0):
        faults.append(normal_fault(scaled / math.sqrt(2)))
    return faults[0] if all(faults) else ""


def _target_fault(population: GaussianAbsTeacher | None) -> str:
    if population is None:
        return (
            "it is about a `GaussianAbsTeacher`: train on one, or on its samples with the teacher "
            "as `test=`"
        )
    objective = population.objective()
    a, v = (np.asarray(x, np.float64) for x in (objective.coefficients, objective.directions))
    if a.size != population.features or not np.allclose(v @ v.T, np.eye(a.size), atol=1e-8):
        return "the target must have orthonormal directions, as many as there are features"
    if not a.min() > 0 or abs(a.sum() - 1) > 1e-6:
        return f"the coefficients must be positive with sum 1, got the sum {a.sum():.4g}"
    return ""


def _data_fault(run: Run, population) -> str:
    loss = type(run.loss).__name__
    if run.data is population:
        if loss not in ("MeanSquares", "HalfSumSquares"):
            return f"its time is that of descent on E (f - f*)^2, and the run descended {loss}"
        return ""
    if not isinstance(run.data, Dataset):
        return f"it is about Gaussian samples, got a `{type(run.data).__name__}`"
    if loss != "MeanSquares":
        return f"its time is that of descent on the mean of squares, and the run descended {loss}"
    inputs, targets = (np.asarray(x, np.float64) for x in (run.data.inputs, run.data.targets))
    expected = np.asarray(population.targets(inputs))
    if targets.shape != expected.shape or not np.allclose(targets, expected, 1e-4, 1e-6):
        return "the targets are not those of the teacher given as `test=`"
    return normal_fault(inputs, "the inputs")


def _dynamics_fault(run: Run) -> str:
    dynamics = run.dynamics
    if isinstance(dynamics, GradientFlow):
        return ""
    if not isinstance(dynamics, TruncatedDescent | GradientDescent):
        return f"it is about (truncated) descent, and the run is {type(dynamics).__name__}"
    rate = float(np.asarray(dynamics.rate))
    if getattr(dynamics, "gradient_scaling", "mean_field") == "literal":
        rate /= run.start.width
    if not rate <= STABLE:
        return f"steps of mean-field rate {rate:.3g} are too large; take at most 0.3"
    return ""
