"""Exact populations, which stand where a dataset stands: `train` descends their loss without samples."""

from .gaussian_abs_teacher import GaussianAbsTeacher as GaussianAbsTeacher
from .radial_population import Radial as Radial
