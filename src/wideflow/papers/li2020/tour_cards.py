"""The plateau and the lottery winners (li2020)."""

from ...experiments.tours.base import Step, Tour
from . import tour

TOUR = Tour(
    paper="li2020",
    title="The plateau and the lottery",
    experiment=tour.EXPERIMENT.name,
    steps=(
        Step(
            "A sum of absolute values",
            "The target is the mean of |x₁|, …, |x_d|. The network has ten times as many "
            "neurons, all pointing in random directions, and descends the "
            "exact loss: there is no sampling noise. Press start.\n\n"
            "In the scatter every neuron is a point. To the right are neurons that lie along one "
            "coordinate, up are long ones. "
            "The triangles are the tenth that starts closest to a coordinate: they hold the best "
            "tickets.",
            look="Neurons",
        ),
        Step(
            "The plateau",
            "The loss splits into tensor orders. Orders 0 and 2, which a quadratic function can "
            "fit, are learnt at once. Then the loss stops at the dashed floor, "
            "(1 − 3/π)/d: no function of degree two gets below it, and the paper proves that "
            "kernel methods stay at its order, 1/d. "
            "It looks as if training had ended.",
            look="Loss",
            moment=tour.plateau,
        ),
        Step(
            "The winners",
            "On the plateau each neuron turns slowly towards the coordinate it started closest "
            "to, the ones with the best tickets first. "
            "They grow as they get closer, and when enough of them have arrived the loss falls: "
            "all higher orders fall together.",
            look="Loss by tensor order",
            moment=tour.escape,
        ),
        Step(
            "Decided at the start",
            "In the end every coordinate has its neuron, and most neurons have lost: they stay "
            "short. "
            "See where the triangles are now. Who wins could be read off the random start.",
            look="Winners",
            moment=tour.all_found,
        ),
    ),
    settings={},
    live=tour.live,
)
