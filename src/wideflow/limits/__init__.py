"""Limits: infinite-width objects; they import `_core` alone, so that agreement with networks is evidence."""

from .first_step import (
    mean_kernel_velocity as mean_kernel_velocity,
    mean_weight_velocity as mean_weight_velocity,
    output_bound as output_bound,
    self_correlation as self_correlation,
    triple_correlation as triple_correlation,
    weight_speed as weight_speed,
)
from .kernels import Spectrum as Spectrum, kappa as kappa, mean_ntk as mean_ntk, nngp as nngp, spectrum as spectrum
from .node_limit import NodeLimit as NodeLimit, node_limit as node_limit, train_node_limit as train_node_limit
from .random_gram import (
    gram_variance as gram_variance,
    limit_nodes as limit_nodes,
    random_ntg as random_ntg,
    truncation_error as truncation_error,
    variance_constant as variance_constant,
    zipf_sum as zipf_sum,
    zipf_tail as zipf_tail,
)
