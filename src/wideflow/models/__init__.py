"""Networks: one architecture a file."""

from . import embeddings as embeddings
from .base import AbstractModel as AbstractModel
from .biased_three_layer import BiasedThreeLayer as BiasedThreeLayer
from .biased_two_layer import BiasedTwoLayer as BiasedTwoLayer
from .homogeneous import Homogeneous as Homogeneous
from .shallow import Shallow as Shallow
from .pruning import (
    PruningCurve as PruningCurve,
    effective_nodes as effective_nodes,
    features as features,
    importance as importance,
    prune as prune,
    pruning_curve as pruning_curve,
)
