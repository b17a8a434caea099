"""wideflow: wide neural networks and what theory says of them."""

import os

# LAPACK's threads leave the cores to JAX as soon as they are done; else they spin for tens of milliseconds after each decomposition
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

from . import (
    data as data,
    limits as limits,
    observables as observables,
    theorems as theorems,
)
from ._core import (
    activations as activations,
    architecture as architecture,
    scalings as scalings,
)
from ._core.status import Status as Status
from .certify import certify as certify
from .coordinates import coordinate_check as coordinate_check
from .data import Dataset as Dataset, populations as populations
from .dynamics import (
    SGD as SGD,
    BestIterate as BestIterate,
    ClippedFlow as ClippedFlow,
    DrawnNoise as DrawnNoise,
    GradientDescent as GradientDescent,
    GradientFlow as GradientFlow,
    Logarithmic as Logarithmic,
    LossBelow as LossBelow,
    ReplayedNoise as ReplayedNoise,
    Run as Run,
    SmoothedSGD as SmoothedSGD,
    TruncatedDescent as TruncatedDescent,
    losses as losses,
    train as train,
)
from .models import (
    BiasedThreeLayer as BiasedThreeLayer,
    BiasedTwoLayer as BiasedTwoLayer,
    DepthSeparator as DepthSeparator,
    Homogeneous as Homogeneous,
    MeanFieldStack as MeanFieldStack,
    Shallow as Shallow,
    embeddings as embeddings,
    maps as maps,
)
from .models.pruning import (
    features as features,
    importance as importance,
    prune as prune,
    pruning_curve as pruning_curve,
)
from .probe import probe as probe
from .theorems import Outcome as Outcome, Verdict as Verdict

__version__ = "0.1.0"


def __getattr__(name: str):
    """The estimators and sweeps come on demand: neither scikit-learn nor Dask is imported before one is asked for."""
    if name == "sweep":
        from .runs.sweeps import sweep

        return sweep
    if name in ("WideRegressor", "WideClassifier"):
        from . import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'wideflow' has no attribute {name!r}")
