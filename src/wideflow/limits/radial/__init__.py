"""Infinite-width limit of the depth-separation learner on radial laws."""

from ..._core.radial_laws import (
    AbstractRadialLaw as AbstractRadialLaw,
    ArcsineLaw as ArcsineLaw,
    ArcsineRadial as ArcsineRadial,
    BesselLaw as BesselLaw,
    FixedRadius as FixedRadius,
    GaussianRadius as GaussianRadius,
    Thresholds as Thresholds,
    Truncated as Truncated,
    UniformBall as UniformBall,
    UniformRadius as UniformRadius,
    c_gamma as c_gamma,
)
from ..._core.radial_laws.stage_times import StageTimes as StageTimes
from ..._core.radial_laws.step_bound import step_bound as step_bound
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
