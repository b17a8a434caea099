"""Feature learning at infinite width and any depth: the dynamical mean-field theory (bordelon2022),
solved forward in time.
"""

from .lazy_expansion import LazyExpansion as LazyExpansion, lazy_expansion as lazy_expansion
from .linear import (
    LinearFieldTheory as LinearFieldTheory,
    linear_field_theory as linear_field_theory,
)
from .solve import FieldTheory as FieldTheory, field_theory as field_theory
