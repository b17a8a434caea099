"""Parametrisations: where the powers of the width stand, layer by layer."""

from ._core import parametrisations as _parametrisations
from ._core.parametrisations import *

__all__: list[str] = []  # type checkers read this form
__all__ += _parametrisations.__all__
