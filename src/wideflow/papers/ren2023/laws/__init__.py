"""Laws of the radius of a spherically symmetric input, on one interface."""

from .arcsine import ArcsineLaw as ArcsineLaw, ArcsineRadial as ArcsineRadial
from .base import AbstractRadialLaw as AbstractRadialLaw, c_gamma as c_gamma, sphere as sphere
from .bessel import BesselLaw as BesselLaw
from .regular import (
    FixedRadius as FixedRadius,
    GaussianRadius as GaussianRadius,
    UniformBall as UniformBall,
    UniformRadius as UniformRadius,
)
from .thresholds import Thresholds as Thresholds, as_thresholds as as_thresholds
from .truncated import Truncated as Truncated
