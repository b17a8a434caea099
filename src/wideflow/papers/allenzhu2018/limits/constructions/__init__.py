"""The existential lemmas of allenzhu2018 as algorithms that return weights."""

from .hermite_functions import (
    HermiteFunction as HermiteFunction,
    hermite_function as hermite_function,
    least_constant as least_constant,
    normalised_hermite as normalised_hermite,
    paper_clip as paper_clip,
    practical_clip as practical_clip,
    window_constant as window_constant,
    window_end as window_end,
)
from .intervals import IntervalPartition as IntervalPartition
from .single_neuron import SplitNeuron as SplitNeuron, split_neuron as split_neuron
from .three_layer import (
    ThreeLayerWeights as ThreeLayerWeights,
    explicit_carrier as explicit_carrier,
    first_function as first_function,
    ridge_carrier as ridge_carrier,
    three_layer_representation as three_layer_representation,
    three_layer_weights as three_layer_weights,
)
from .two_layer import (
    two_layer_representation as two_layer_representation,
    two_layer_weights as two_layer_weights,
)
