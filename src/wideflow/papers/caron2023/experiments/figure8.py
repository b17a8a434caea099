"""Training, pruning and transfer on the UCI set airfoil (caron2023, Figure 8); see `regression` for
the protocol.

Run:  wideflow run caron2023-figure8
Takes:  default 1-2 min on two cores, smoke 10 s, paper on a GPU
"""

from .regression import build

EXPERIMENT = build("airfoil", "Figure 8")
