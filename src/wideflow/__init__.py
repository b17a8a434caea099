"""wideflow: wide neural networks, their infinite-width limits, and what theory predicts of them."""

import os as _os
import typing as _typing

# LAPACK's threads leave the cores to JAX as soon as they are done; else they spin for tens of
# milliseconds after each decomposition
_os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

# the grid's folders first: they gather the papers' names, and the papers import from them
from . import data, limits, observables, theorems

# isort: split
from . import (
    activations,
    architecture,
    certify,
    embeddings,
    figures,
    losses,
    maps,
    parametrisations,
    phase,
    populations,
    probe,
    scalings,
    torch,
)
from ._core.architecture import mlp
from ._core.status import Status
from .coordinates import coordinate_check
from .data.dataset import Dataset
from .data.objective import AbstractObjective
from .dynamics.base import AbstractDynamics, AbstractFlow, Snapshot
from .dynamics.descent import GradientDescent
from .dynamics.flow import GradientFlow
from .dynamics.langevin import Langevin
from .dynamics.online_sgd import OnlineSGD
from .dynamics.optimisers import Optax
from .dynamics.sgd import SGD
from .experiments.base import Claim, Experiment
from .models.base import AbstractModel
from .models.deep import Deep
from .models.homogeneous import Homogeneous
from .models.mean_field_stack import MeanFieldStack
from .models.pruning import features, importance, prune, pruning_curve
from .models.rescaled import rescaled
from .models.shallow import Shallow
from .models.taylor import taylor
from .models.wrapped import wrap
from .observables.base import AbstractObservable
from .papers.allenzhu2018.best_iterate import BestIterate
from .papers.allenzhu2018.models.biased_three_layer import BiasedThreeLayer
from .papers.allenzhu2018.models.biased_two_layer import BiasedTwoLayer
from .papers.allenzhu2018.smoothed_sgd import SmoothedSGD
from .papers.allenzhu2018.smoothing_noise import DrawnNoise, ReplayedNoise
from .papers.li2020.truncated_descent import LossBelow, TruncatedDescent
from .papers.ren2023.clipped_flow import ClippedFlow
from .papers.ren2023.depth_separator import DepthSeparator
from .theorems.base import AbstractTheorem, Outcome, Verdict
from .theorems.judging import judge
from .training.recorder import Logarithmic
from .training.run import Run
from .training.session import Session
from .training.train import train

__version__ = "0.2.0"

if _typing.TYPE_CHECKING:
    from .estimators import KernelRegressor, WideClassifier, WideRegressor
    from .report.static import save_figure
    from .runs.sweeps.sweep import sweep

_LATE = {  # neither scikit-learn, Dask nor Matplotlib is imported before one of these is used
    "KernelRegressor": "estimators",
    "WideClassifier": "estimators",
    "WideRegressor": "estimators",
    "save_figure": "report.static",
    "sweep": "runs.sweeps.sweep",
}


def __getattr__(name: str):
    if name in _LATE:
        import importlib

        return getattr(importlib.import_module(f".{_LATE[name]}", __name__), name)
    raise AttributeError(f"module 'wideflow' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})  # completion offers what is imported late, too


__all__ = [
    "SGD",
    "AbstractDynamics",
    "AbstractFlow",
    "AbstractModel",
    "AbstractObjective",
    "AbstractObservable",
    "AbstractTheorem",
    "BestIterate",
    "BiasedThreeLayer",
    "BiasedTwoLayer",
    "Claim",
    "ClippedFlow",
    "Dataset",
    "Deep",
    "DepthSeparator",
    "DrawnNoise",
    "Experiment",
    "GradientDescent",
    "GradientFlow",
    "Homogeneous",
    "KernelRegressor",
    "Langevin",
    "Logarithmic",
    "LossBelow",
    "MeanFieldStack",
    "OnlineSGD",
    "Optax",
    "Outcome",
    "ReplayedNoise",
    "Run",
    "Session",
    "Shallow",
    "SmoothedSGD",
    "Snapshot",
    "Status",
    "TruncatedDescent",
    "Verdict",
    "WideClassifier",
    "WideRegressor",
    "activations",
    "architecture",
    "certify",
    "coordinate_check",
    "data",
    "embeddings",
    "features",
    "figures",
    "importance",
    "judge",
    "limits",
    "losses",
    "maps",
    "mlp",
    "observables",
    "parametrisations",
    "phase",
    "populations",
    "probe",
    "prune",
    "pruning_curve",
    "rescaled",
    "save_figure",
    "scalings",
    "sweep",
    "taylor",
    "theorems",
    "torch",
    "train",
    "wrap",
]
