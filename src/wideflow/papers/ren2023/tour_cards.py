"""The cone settling (ren2023)."""

from ...experiments.tours.base import Step, Tour
from . import tour

TOUR = Tour(
    paper="ren2023",
    title="The cone settles",
    experiment=tour.EXPERIMENT.name,
    steps=(
        Step(
            "A cone in high dimension",
            "The target is the cone max(1 − ‖x‖, 0). Two layers need very many neurons to "
            "approximate it well; three layers need few: one layer for ‖x‖, one for "
            "the cone. But does gradient descent find them? Press start.\n\n"
            "The network begins as a constant. The band shows how much it differs between "
            "directions.",
            look="The learnt function",
        ),
        Step(
            "Leaving the constant",
            "At first no constant does better, and the best one leaves the dotted loss. The "
            "slope of the second layer must turn negative before the first layer has a reason to "
            "grow. "
            "Then each helps the other.",
            look="Loss",
            moment=tour.leaves_the_constant,
        ),
        Step(
            "Three numbers",
            "The first layer acts as α‖x‖, and all neurons of the second layer move as one, so "
            "the whole network follows three numbers: α, the weight w and the height b. "
            "The dashed curves are those three numbers at infinite width, computed before the "
            "run. The network follows them.",
            look="Second-layer neurons",
        ),
        Step(
            "The cone",
            "Slope −1 and height 1 make the cone. The tip and the kink at ‖x‖ = 1 come last. "
            "What is left of the loss is the small difference between directions that a first "
            "layer of finite width keeps.",
            look="The learnt function",
            moment=tour.cone,
        ),
    ),
    settings={},
    live=tour.live,
)
