"""Architectures as descriptions: layers without arrays, read by `Deep` as networks and by `limits`
as kernels.
"""

from ._core import architecture as _architecture
from ._core.architecture import *

__all__: list[str] = []  # type checkers read this form
__all__ += _architecture.__all__
