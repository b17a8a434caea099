"""Sweeps: many runs from one description, on this machine or a cluster, never lost and never
repeated.
"""

from .collect import collect as collect
from .lines import SpecError as SpecError
from .plan import Plan as Plan, expand as expand, survey as survey
from .spec import SweepSpec as SweepSpec, read_spec as read_spec
from .sweep import Swept as Swept, sweep as sweep
