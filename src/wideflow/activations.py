"""Activations as objects: a function with its derivatives, its constants and its Gaussian
integrals.
"""

from ._core import activations as _activations
from ._core.activations import *

__all__: list[str] = []  # type checkers read this form
__all__ += _activations.__all__
