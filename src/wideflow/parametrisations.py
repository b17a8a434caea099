"""Parametrisations: where the powers of the width stand, layer by layer."""

from ._core.parametrisations import (
    MAXIMAL_UPDATE,
    MEAN_FIELD,
    NTK,
    STANDARD,
    Parametrisation,
    parametrisation,
)

__all__ = [
    "MAXIMAL_UPDATE",
    "MEAN_FIELD",
    "NTK",
    "STANDARD",
    "Parametrisation",
    "parametrisation",
]
