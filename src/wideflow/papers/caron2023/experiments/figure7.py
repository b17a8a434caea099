"""Training, pruning and transfer on the UCI set energy (caron2023, Figure 7); see `regression` for
the protocol.

Run:  wideflow run caron2023-figure7
Takes:  default 1-2 min on two cores, smoke 10 s, paper on a GPU
"""

from .regression import build

EXPERIMENT = build("energy", "Figure 7")
