"""Infinite-width limit of the depth-separation learner on radial laws."""

from ..laws.arcsine import ArcsineLaw as ArcsineLaw, ArcsineRadial as ArcsineRadial
from ..laws.base import AbstractRadialLaw as AbstractRadialLaw, c_gamma as c_gamma
from ..laws.bessel import BesselLaw as BesselLaw
from ..laws.regular import (
    FixedRadius as FixedRadius,
    GaussianRadius as GaussianRadius,
    UniformBall as UniformBall,
    UniformRadius as UniformRadius,
)
from ..laws.stage_times import StageTimes as StageTimes
from ..laws.step_bound import step_bound as step_bound
from ..laws.thresholds import Thresholds as Thresholds
from ..laws.truncated import Truncated as Truncated
from .field import (
    ReducedState as ReducedState,
    reduced_field as reduced_field,
    reduced_loss as reduced_loss,
)
from .flow import (
    ReducedPath as ReducedPath,
    alpha_of_norm as alpha_of_norm,
    reduced_flow as reduced_flow,
)
from .stages import reduced_stages as reduced_stages, time_to_loss as time_to_loss
