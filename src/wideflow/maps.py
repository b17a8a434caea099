"""Exact maps between scalings: the same network and the same training path in other words."""

from .models import maps as _maps
from .models.maps import *

__all__: list[str] = []  # type checkers read this form
__all__ += _maps.__all__
