"""Training: `train` is the only loop; ensembles, records, checkpoints and devices stand beside it."""

from .schedule import Logarithmic
from .train import Run, train

__all__ = ["Logarithmic", "Run", "train"]
