"""Exact populations, which stand where a dataset stands: `train` descends their loss without samples."""

from .data.populations import (
    GaussianAbsTeacher,
    Radial,
)

__all__ = [
    "GaussianAbsTeacher",
    "Radial",
]
