"""Pruned and transferred accuracy on MNIST (caron2023, Figure 3); see `digits` for the protocol.
Figure 10 has all panels.

Run:  wideflow run caron2023-figure3
Takes:  default 3 min on two cores, smoke 10 s, paper 6 min on a GPU
"""

from ....experiments.base import Experiment
from . import digits


def draw(table):
    panels = digits.panels(table)
    return digits.figure(
        "MNIST: pruning and transfer",
        [panels["pruned_test"], panels["transfer_test"]],
        table,
        "Figure 3",
    )


EXPERIMENT = Experiment(
    name="caron2023-figure3",
    paper="caron2023",
    title="Pruning and transfer on MNIST",
    figure="Figure 3",
    settings=digits.SIZES,
    run=digits.run,
    draw=draw,
    claims=digits.claims,
    needs_data=("MNIST",),
)
