"""Mean-field vector fields of the depth-separation learner, by the way in which the expectation is
taken.
"""

from .directions import direction_error as direction_error, direction_kernel as direction_kernel
from .integrated import integrated_field as integrated_field, integrated_loss as integrated_loss
from .rays import ray_field as ray_field, ray_losses as ray_losses
from .samples import Field as Field, forward as forward, sample_field as sample_field
