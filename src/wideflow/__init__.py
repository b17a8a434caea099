"""wideflow: wide neural networks and what theory says of them."""

import os

# LAPACK's threads leave the cores to JAX as soon as they are done; else they spin for tens of milliseconds after each decomposition
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

from . import data as data, limits as limits, observables as observables, theorems as theorems
from ._core import (
    activations as activations,
    architecture as architecture,
    scalings as scalings,
)
from ._core.status import Status as Status
from .certify.build import certify as certify
from .coordinates import coordinate_check as coordinate_check
from .data import populations as populations
from .data.dataset import Dataset as Dataset
from .dynamics import losses as losses
from .dynamics.descent import GradientDescent as GradientDescent
from .dynamics.flow import GradientFlow as GradientFlow
from .dynamics.sgd import SGD as SGD
from .models import embeddings as embeddings, maps as maps
from .models.homogeneous import Homogeneous as Homogeneous
from .models.mean_field_stack import MeanFieldStack as MeanFieldStack
from .models.pruning import (
    features as features,
    importance as importance,
    prune as prune,
    pruning_curve as pruning_curve,
)
from .models.shallow import Shallow as Shallow
from .papers.allenzhu2018.best_iterate import BestIterate as BestIterate
from .papers.allenzhu2018.models.biased_three_layer import BiasedThreeLayer as BiasedThreeLayer
from .papers.allenzhu2018.models.biased_two_layer import BiasedTwoLayer as BiasedTwoLayer
from .papers.allenzhu2018.smoothed_sgd import SmoothedSGD as SmoothedSGD
from .papers.allenzhu2018.smoothing_noise import (
    DrawnNoise as DrawnNoise,
    ReplayedNoise as ReplayedNoise,
)
from .papers.li2020.truncated_descent import (
    LossBelow as LossBelow,
    TruncatedDescent as TruncatedDescent,
)
from .papers.ren2023.clipped_flow import ClippedFlow as ClippedFlow
from .papers.ren2023.depth_separator import DepthSeparator as DepthSeparator
from .probe import probe as probe
from .theorems.base import Outcome as Outcome, Verdict as Verdict
from .training.schedule import Logarithmic as Logarithmic
from .training.train import Run as Run, train as train

__version__ = "0.1.0"


def __getattr__(name: str):
    """The estimators and sweeps come on demand: neither scikit-learn nor Dask is imported before one is asked for."""
    if name == "sweep":
        from .runs.sweeps.sweep import sweep

        return sweep
    if name in ("KernelRegressor", "WideRegressor", "WideClassifier"):
        from . import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'wideflow' has no attribute {name!r}")
