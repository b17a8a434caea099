"""Training: `train` is the only loop; ensembles, records, checkpoints and devices stand beside
it.
"""

from .checkpoint import AbstractCheckpointer
from .recorder import Logarithmic
from .run import Run
from .session import Session
from .train import train

__all__ = ["AbstractCheckpointer", "Logarithmic", "Run", "Session", "train"]
