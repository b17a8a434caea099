"""Losses, each with its factors stated; outputs and targets are (sample,) or (sample, output)."""

from .dynamics import bounded_losses as _bounded_losses, losses as _losses
from .dynamics.bounded_losses import *
from .dynamics.losses import *

__all__: list[str] = []  # type checkers read this form
__all__ += _bounded_losses.__all__
__all__ += _losses.__all__
