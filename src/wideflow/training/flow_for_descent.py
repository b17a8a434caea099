"""Full-batch descent replaced by the flow that it approximates, at the same times."""

import dataclasses

import numpy as np

from ..dynamics.descent import GradientDescent
from ..dynamics.flow import GradientFlow
from .ensemble import Ensemble

TOLERANCE = 1e-6  # far below the error of descent itself, at which the figures are read


def as_flow(ensemble: Ensemble, steps: np.ndarray) -> tuple[Ensemble, np.ndarray]:
    """The same ensemble under `GradientFlow`, and the times of the recorded `steps` of descent."""
    dynamics = ensemble.dynamics
    if type(dynamics) is not GradientDescent:
        raise ValueError(
            "a flow can replace full-batch `GradientDescent` only, but this run's dynamics is "
            f"`{type(dynamics).__name__}`; run it without --flow."
        )
    rates = np.unique(np.asarray(dynamics.rate))
    if rates.size != 1:
        raise ValueError(
            f"a flow needs one `rate` for all that run together, got {rates.tolist()}; run it "
            "without --flow."
        )
    objective, test, _ = ensemble.shared
    flow = dataclasses.replace(
        ensemble, dynamics=GradientFlow(TOLERANCE), shared=(objective, test, True)
    )
    return flow, steps * float(rates[0])
