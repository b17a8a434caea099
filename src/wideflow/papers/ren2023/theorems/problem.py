"""What the statements about a trained learner take from a run, and why a run is none of those they
speak of.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...._core.precision import double
from ....theorems.base import Verdict
from ....theorems.of_runs import AbstractRunTheorem, check_single, replaced_part
from ....theorems.recorded_run import run_fault
from ....training.run import Run
from ..clipped_flow import ClippedFlow
from ..depth_separator import DepthSeparator
from ..laws.base import AbstractRadialLaw
from ..laws.thresholds import Thresholds
from ..population import Radial
from .judge import not_applicable


@dataclass(frozen=True)
class Problem:
    """A run that the statements speak of, its networks in double precision.

    Attributes:
        run: the training.
        law: of the radius.
        clip: the bounds of its projections.
        start, end: the learner at the start and at the end.
    """

    run: Run
    law: AbstractRadialLaw
    clip: Thresholds
    start: DepthSeparator
    end: DepthSeparator


class AbstractSeparatorTheorem(AbstractRunTheorem):
    """A statement about the learner trained by the projected flow: `Theorem()(run)`.

    On the numbers that `evaluate` takes it judges these alone: where they come from is then the
    caller's word.
    """

    of_flow: ClassVar[bool] = False

    @abstractmethod
    def read(self, problem: Problem) -> dict[str, Any] | str:
        """What of the run `evaluate` takes, by name; or the hypothesis that the run does not
        meet.
        """

    @double
    def __call__(self, *parts: Any, **options: Any) -> Verdict:
        """The verdict on a `Run`, or on the numbers that `evaluate` takes."""
        if not (parts and isinstance(parts[0], Run)):
            return self.evaluate(*parts, **options)
        fault = run_is_another(parts[0])
        if fault:
            return not_applicable(fault)
        read = self.read(gather(parts[0]))
        if isinstance(read, str):
            return not_applicable(read)
        fault = replaced_part(parts[0])
        return not_applicable(fault) if fault else self.evaluate(**read, **options)


def run_is_another(run: Run) -> str:
    """Why the paper's statements do not speak of `run`; empty where they do."""
    check_single(run)
    if not isinstance(run.start, DepthSeparator):
        return f"it is about a `DepthSeparator`, and the run trained a `{type(run.start).__name__}`"
    if not isinstance(run.data, Radial):
        return f"it is about a `Radial` population, got a `{type(run.data).__name__}`"
    if not isinstance(run.dynamics, ClippedFlow):
        return f"it is about the projected flow, and the run is {type(run.dynamics).__name__}"
    return run_fault(run.table, ("loss",))


def gather(run: Run) -> Problem:
    """What the statements take from a run that they speak of."""
    law = run.data.law
    return Problem(
        run, law, run.dynamics.thresholds(law.d), _in_double(run.start), _in_double(run.model)
    )


def _in_double(model: DepthSeparator) -> DepthSeparator:
    arrays = (model.first, model.second_weight, model.second_bias)
    return DepthSeparator(*(np.asarray(a, np.float64) for a in arrays))
