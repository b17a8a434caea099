"""Scalings: how the output, the pre-activation and the step depend on width."""

from ._core.scalings import (
    ABC,
    MAXIMAL_UPDATE,
    NTK,
    AbstractScaling,
    MeanField,
    ScalingVerdict,
    Weights,
    Zipf,
    classify,
    parse_scaling,
)

__all__ = [
    "ABC",
    "MAXIMAL_UPDATE",
    "NTK",
    "AbstractScaling",
    "MeanField",
    "ScalingVerdict",
    "Weights",
    "Zipf",
    "classify",
    "parse_scaling",
]
