"""Limits: infinite-width objects; they import `_core` alone, so that agreement with networks is
evidence.
"""

from ..papers.allenzhu2018.limits import (
    complexity as complexity,
    constructions as constructions,
    sign_changes as sign_changes,
)
from ..papers.caron2023.limits.first_step import (
    mean_kernel_velocity as mean_kernel_velocity,
    mean_weight_velocity as mean_weight_velocity,
    output_bound as output_bound,
    self_correlation as self_correlation,
    triple_correlation as triple_correlation,
    weight_speed as weight_speed,
)
from ..papers.caron2023.limits.node_limit import (
    NodeLimit as NodeLimit,
    node_limit as node_limit,
    train_node_limit as train_node_limit,
)
from ..papers.li2020.limits import (
    gaussian_cloud as gaussian_cloud,
    hermite as hermite,
    kernel_floor as kernel_floor,
    sign_averages as sign_averages,
    stage_rates as stage_rates,
    symmetric_cloud as symmetric_cloud,
)
from ..papers.ren2023 import limits as radial  # noqa: F401  (gathered below with the others)
from .deep import (
    hidden_gram as hidden_gram,
    largest_cosine as largest_cosine,
    lazy_kernel as lazy_kernel,
    sampled_gram as sampled_gram,
    slope_gram as slope_gram,
)
from .feature_learning import (
    FieldTheory as FieldTheory,
    LazyExpansion as LazyExpansion,
    LinearFieldTheory as LinearFieldTheory,
    field_theory as field_theory,
    lazy_expansion as lazy_expansion,
    linear_field_theory as linear_field_theory,
)
from .finite_size import (
    OrderParameterBand as OrderParameterBand,
    StochasticPaths as StochasticPaths,
    order_parameter_band as order_parameter_band,
    stochastic_order_parameters as stochastic_order_parameters,
)
from .hermite_order import (
    hermite_coefficients as hermite_coefficients,
    information_exponent as information_exponent,
    leap as leap,
    recovery_samples as recovery_samples,
)
from .infinite_width.architecture_kernels import (
    KernelPair as KernelPair,
    Kernels as Kernels,
    LayerKernel as LayerKernel,
)
from .infinite_width.kernel_store import (
    StoredKernel as StoredKernel,
    open_kernel as open_kernel,
    write_kernel as write_kernel,
)
from .infinite_width.regression import (
    Regression as Regression,
    apply_kernel as apply_kernel,
    regress as regress,
)
from .kernels import (
    Spectrum as Spectrum,
    kappa as kappa,
    kernels as kernels,  # the function, in the place of the module
    mean_ntk as mean_ntk,
    nngp as nngp,
    spectrum as spectrum,
)
from .linearised import Linearised as Linearised, linearised as linearised
from .mean_field import (
    MeanFieldPath as MeanFieldPath,
    collapsed_mean_field as collapsed_mean_field,
    mean_field as mean_field,
)
from .monte_carlo import KernelEstimate as KernelEstimate, monte_carlo_kernel as monte_carlo_kernel
from .order_parameters import (
    OnlineEquations as OnlineEquations,
    OrderParameterPath as OrderParameterPath,
    Overlaps as Overlaps,
    order_parameter_error as order_parameter_error,
    order_parameters as order_parameters,
)
from .plateau import Plateau as Plateau, plateau as plateau
from .predict import (
    Prediction as Prediction,
    cross_entropy as cross_entropy,
    ensemble as ensemble,
    log_marginal_likelihood as log_marginal_likelihood,
    output_flow as output_flow,
    posterior as posterior,
)
from .random_gram import (
    departure as departure,
    gram_variance as gram_variance,
    limit_nodes as limit_nodes,
    random_ntg as random_ntg,
    truncation_error as truncation_error,
    variance_constant as variance_constant,
    zipf_sum as zipf_sum,
    zipf_tail as zipf_tail,
)
from .stack import StackPath as StackPath, stack_limit as stack_limit
from .time_to_loss import reach_time as reach_time, time_to_loss as time_to_loss
