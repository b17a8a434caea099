"""Exact populations, which stand where a dataset stands: `train` descends their loss without
samples.
"""

from .data.populations import (
    GaussianAbsTeacher,
    MultiIndex,
    Radial,
)

__all__ = [
    "GaussianAbsTeacher",
    "MultiIndex",
    "Radial",
]
