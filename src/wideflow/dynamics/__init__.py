"""Dynamics: how models move."""

from ..papers.allenzhu2018.best_iterate import BestIterate as BestIterate
from ..papers.allenzhu2018.smoothed_sgd import SmoothedSGD as SmoothedSGD
from ..papers.allenzhu2018.smoothing_noise import (
    DrawnNoise as DrawnNoise,
    ReplayedNoise as ReplayedNoise,
)
from ..papers.li2020.truncated_descent import (
    LossBelow as LossBelow,
    TruncatedDescent as TruncatedDescent,
)
from ..papers.ren2023.clipped_flow import ClippedFlow as ClippedFlow
from .base import (
    AbstractDynamics as AbstractDynamics,
    AbstractFlow as AbstractFlow,
    Snapshot as Snapshot,
)
from .descent import GradientDescent as GradientDescent
from .flow import GradientFlow as GradientFlow
from .langevin import Langevin as Langevin
from .optimisers import Optax as Optax
from .sgd import SGD as SGD
