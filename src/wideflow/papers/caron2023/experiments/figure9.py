"""Training, pruning and transfer on the UCI set plant (caron2023, Figure 9); see `regression` for
the protocol.

Run:  wideflow run caron2023-figure9
Takes:  default 1-2 min on two cores, smoke 10 s, paper on a GPU
"""

from .regression import build

EXPERIMENT = build("plant", "Figure 9")
