"""Exact populations, which stand where a dataset stands: `train` descends their loss without
samples.
"""

from .data import populations as _populations
from .data.populations import *

__all__: list[str] = []  # type checkers read this form
__all__ += _populations.__all__
