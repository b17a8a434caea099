"""Observables: what is measured along a run."""

from .base import AbstractObservable as AbstractObservable
from .kernels import (
    EffectiveRank as EffectiveRank,
    KernelAlignment as KernelAlignment,
    KernelDrift as KernelDrift,
    KernelGap as KernelGap,
    KernelSpectrum as KernelSpectrum,
    KernelTrace as KernelTrace,
    tangent_gram as tangent_gram,
)
from .movement import (
    ActiveFraction as ActiveFraction,
    FeatureMovement as FeatureMovement,
    LargestMovement as LargestMovement,
    ParameterMovement as ParameterMovement,
    WeightMovement as WeightMovement,
)
from .risks import (
    Accuracy as Accuracy,
    Loss as Loss,
    Outputs as Outputs,
    Risk as Risk,
    TestLoss as TestLoss,
    TestRisk as TestRisk,
)
from .kinks import (
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
