"""Scalings: how the output, the pre-activation and the step depend on width."""

from ._core import scalings as _scalings
from ._core.scalings import *

__all__: list[str] = []  # type checkers read this form
__all__ += _scalings.__all__
