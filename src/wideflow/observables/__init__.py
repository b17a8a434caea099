"""Observables: what is measured along a run."""

from ..papers.allenzhu2018.observables.biased_kernels import (
    last_layer_features as last_layer_features,
    last_layer_gram as last_layer_gram,
)
from ..papers.allenzhu2018.observables.pseudo import (
    CouplingError as CouplingError,
    SignChange as SignChange,
    Signs as Signs,
    coupled_main_part as coupled_main_part,
    coupling_error as coupling_error,
    cross_coefficients as cross_coefficients,
    cross_variance as cross_variance,
    pseudo_outputs as pseudo_outputs,
    sign_changes as sign_changes,
    signed_move as signed_move,
    signs as signs,
    smoothed_pair as smoothed_pair,
)
from ..papers.allenzhu2018.observables.rademacher import (
    bilinear_bound as bilinear_bound,
    bilinear_rademacher as bilinear_rademacher,
    bilinear_sup as bilinear_sup,
    gap_bound_variant1 as gap_bound_variant1,
    gap_bound_variant2 as gap_bound_variant2,
    network_sup as network_sup,
    rademacher_signs as rademacher_signs,
    row_ball_oracle as row_ball_oracle,
    row_ball_projection as row_ball_projection,
    two_layer_bound as two_layer_bound,
    two_layer_sup as two_layer_sup,
)
from ..papers.allenzhu2018.observables.row_norms import (
    IncrementNorm as IncrementNorm,
    row_norm as row_norm,
)
from ..papers.allenzhu2018.observables.smoothed_objective import (
    DescentTriple as DescentTriple,
    descent_triple as descent_triple,
    smoothed_objective as smoothed_objective,
)
from ..papers.caron2023.observables.kernel_parts import (
    KernelPart as KernelPart,
    KernelPartDistance as KernelPartDistance,
    KernelPartMinEigenvalue as KernelPartMinEigenvalue,
    KernelParts as KernelParts,
    kernel_parts as kernel_parts,
)
from ..papers.caron2023.observables.kinks import (
    DecayRate as DecayRate,
    Flips as Flips,
    GradientChange as GradientChange,
    KernelSpeed as KernelSpeed,
    MaskAveraging as MaskAveraging,
    Sliding as Sliding,
    SmallestPreactivation as SmallestPreactivation,
    kernel_velocity as kernel_velocity,
    sliding as sliding,
)
from ..papers.chen2022.observables.activity import (
    DeadFraction as DeadFraction,
    DisplacedFraction as DisplacedFraction,
    Diversity as Diversity,
    FeatureScatter as FeatureScatter,
    KernelChain as KernelChain,
    LeastActiveFraction as LeastActiveFraction,
    LossSlope as LossSlope,
    PointMovement as PointMovement,
    PreactivationSpeed as PreactivationSpeed,
    SumLoss as SumLoss,
    WeightedResidual as WeightedResidual,
    kernel_chain as kernel_chain,
    path_integral as path_integral,
    safe_rate as safe_rate,
    stability as stability,
)
from ..papers.li2020.observables.lottery import (
    BasisNeurons as BasisNeurons,
    CoveredDirections as CoveredDirections,
    DirectionMasses as DirectionMasses,
    FrozenNeurons as FrozenNeurons,
    LargestNeuron as LargestNeuron,
    NeuronSets as NeuronSets,
    NeuronShares as NeuronShares,
    NeuronSizes as NeuronSizes,
    basis_like as basis_like,
    direction_persistence as direction_persistence,
    ignored as ignored,
    lottery_scores as lottery_scores,
    neuron_sets as neuron_sets,
    posterior_masses as posterior_masses,
    ranking_quality as ranking_quality,
    singletons as singletons,
    typical_neurons as typical_neurons,
    winning_threshold as winning_threshold,
)
from ..papers.li2020.observables.tensors import (
    LossTail as LossTail,
    MomentError as MomentError,
    OrderLosses as OrderLosses,
    moment_errors as moment_errors,
)
from ..papers.ren2023.observables import depth as depth
from ..papers.ren2023.observables.sphere_extremes import (
    Extremes as Extremes,
    sphere_extremes as sphere_extremes,
)
from .base import AbstractObservable as AbstractObservable
from .kernels import (
    EffectiveRank as EffectiveRank,
    KernelAlignment as KernelAlignment,
    KernelDistance as KernelDistance,
    KernelMaxEigenvalue as KernelMaxEigenvalue,
    KernelMinEigenvalue as KernelMinEigenvalue,
    KernelSpectrum as KernelSpectrum,
    KernelTrace as KernelTrace,
    tangent_gram as tangent_gram,
    tangent_gram_parts as tangent_gram_parts,
    tangent_products as tangent_products,
)
from .layers import (
    ArrayMovement as ArrayMovement,
    FeatureAlignment as FeatureAlignment,
    FeatureKernelDrift as FeatureKernelDrift,
    GradientKernelDrift as GradientKernelDrift,
    LayerFeatureMovement as LayerFeatureMovement,
    centred_alignment as centred_alignment,
    feature_kernels as feature_kernels,
    gradient_kernels as gradient_kernels,
)
from .laziness import LinearisationGap as LinearisationGap
from .movement import (
    ActiveFraction as ActiveFraction,
    FeatureMovement as FeatureMovement,
    LargestMovement as LargestMovement,
    ParameterMovement as ParameterMovement,
    WeightMovement as WeightMovement,
)
from .old_names import (
    KernelChange as KernelChange,
    KernelDrift as KernelDrift,
    KernelGap as KernelGap,
    KernelMovement as KernelMovement,
    KernelTop as KernelTop,
)
from .overlaps import (
    GeneralisationError as GeneralisationError,
    LargestCosine as LargestCosine,
    StudentOverlap as StudentOverlap,
    TeacherOverlap as TeacherOverlap,
    weak_recovery_time as weak_recovery_time,
)
from .pruned import PrunedRisk as PrunedRisk
from .risks import (
    Accuracy as Accuracy,
    Loss as Loss,
    Outputs as Outputs,
    Risk as Risk,
    TestLoss as TestLoss,
    TestRisk as TestRisk,
)
from .sharpness import (
    Sharpness as Sharpness,
    hessian_eigenvalues as hessian_eigenvalues,
)
from .stages import (
    first_time as first_time,
    late_exponent as late_exponent,
    moment_decay_time as moment_decay_time,
    stage_events as stage_events,
)
from .visual import FeaturePair as FeaturePair, NeuronPlaces as NeuronPlaces, OutputsAt as OutputsAt

Eta = LeastActiveFraction  # its name in version 0.1
