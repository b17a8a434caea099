"""Exact populations, which stand where a dataset stands: `train` descends their loss without
samples.
"""

from ..papers.li2020.population import GaussianAbsTeacher
from ..papers.ren2023.population import Radial
from .multi_index import MultiIndex

__all__ = ["GaussianAbsTeacher", "MultiIndex", "Radial"]
