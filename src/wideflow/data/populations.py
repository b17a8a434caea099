"""Exact populations, which stand where a dataset stands: `train` descends their loss without samples."""

from ..papers.li2020.population import GaussianAbsTeacher as GaussianAbsTeacher
from ..papers.ren2023.population import Radial as Radial
from .multi_index import MultiIndex as MultiIndex
