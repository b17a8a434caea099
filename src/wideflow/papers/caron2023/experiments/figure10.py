"""Training, pruning and transfer on MNIST, all panels (caron2023, Figure 10); see `digits` for the
protocol.

Run:  wideflow run caron2023-figure10
Takes:  default 3 min on two cores, smoke 10 s, paper 6 min on a GPU
"""

from ....experiments.base import Experiment
from . import digits


def draw(table):
    return digits.figure(
        "MNIST: training, pruning and transfer",
        list(digits.panels(table).values()),
        table,
        "Figure 10",
    )


EXPERIMENT = Experiment(
    name="caron2023-figure10",
    paper="caron2023",
    title="Feature learning, pruning and transfer on MNIST",
    figure="Figure 10",
    settings=digits.SIZES,
    run=digits.run,
    draw=draw,
    claims=digits.claims,
    needs_data=("MNIST",),
)
