"""Networks: one architecture a file."""

from ..papers.allenzhu2018.models.biased_three_layer import BiasedThreeLayer as BiasedThreeLayer
from ..papers.allenzhu2018.models.biased_two_layer import BiasedTwoLayer as BiasedTwoLayer
from ..papers.ren2023.depth_separator import DepthSeparator as DepthSeparator
from . import embeddings as embeddings, maps as maps
from .base import AbstractModel as AbstractModel, pullback_by_autodiff as pullback_by_autodiff
from .deep import Deep as Deep
from .homogeneous import Homogeneous as Homogeneous
from .mean_field_stack import MeanFieldStack as MeanFieldStack
from .pruning import (
    PruningCurve as PruningCurve,
    effective_nodes as effective_nodes,
    features as features,
    importance as importance,
    importance_share as importance_share,
    prune as prune,
    pruning_curve as pruning_curve,
)
from .rescaled import Rescaled as Rescaled, rescaled as rescaled
from .shallow import Shallow as Shallow
from .taylor import Taylor as Taylor, taylor as taylor
from .wrapped import Wrapped as Wrapped, wrap as wrap
