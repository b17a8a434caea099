"""wideflow: wide neural networks and what theory says of them."""

from . import (
    data as data,
    limits as limits,
    observables as observables,
    theorems as theorems,
)
from ._core import activations as activations, scalings as scalings
from ._core.status import Status as Status
from .data import Dataset as Dataset
from .dynamics import (
    SGD as SGD,
    BestIterate as BestIterate,
    DrawnNoise as DrawnNoise,
    GradientDescent as GradientDescent,
    GradientFlow as GradientFlow,
    Logarithmic as Logarithmic,
    ReplayedNoise as ReplayedNoise,
    Run as Run,
    SmoothedSGD as SmoothedSGD,
    losses as losses,
    train as train,
)
from .dynamics.truncated import LossBelow as LossBelow, TruncatedDescent as TruncatedDescent
from .models.homogeneous import Homogeneous as Homogeneous
from .models import BiasedThreeLayer as BiasedThreeLayer, BiasedTwoLayer as BiasedTwoLayer, Shallow as Shallow, embeddings as embeddings, maps as maps
from .theorems import Outcome as Outcome, Verdict as Verdict
from .models.pruning import (
    features as features,
    importance as importance,
    prune as prune,
    pruning_curve as pruning_curve,
)

__version__ = "0.1.0"
