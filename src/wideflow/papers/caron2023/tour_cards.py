"""Node scaling against NTK, and pruning (caron2023)."""

from ...experiments.tours.base import Step, Tour
from . import tour

TOUR = Tour(
    paper="caron2023",
    title="Node scaling, and pruning",
    experiment=tour.EXPERIMENT.name,
    steps=(
        Step(
            "Nodes of different weight",
            "The output is a sum over nodes. Under NTK scaling (γ=1) all have the same weight; "
            "under γ=0 the weights fall like a power of the node's number, "
            "so that a few carry most; γ=.5 is half and half. Data, initial weights and signs "
            "are the same. Press start.",
            look="Training risk",
        ),
        Step(
            "Heavy nodes move",
            "All three learn. But under NTK every node moves a little and none moves far, while "
            "under the other two the heaviest nodes travel: they learn "
            "features. Nodes are numbered from heavy to light.",
            look="Movement of every node",
            moment=tour.features_move,
        ),
        Step(
            "The kernel changes",
            "A network whose nodes hardly move keeps its kernel, and is a kernel method. Here "
            "the kernel of γ=1 stays almost as it was, those of the others do not. "
            "With γ above zero convergence to zero risk is still proved.",
            look="Change of the kernel",
        ),
        Step(
            "Pruning",
            "Now remove the least important nodes, without training again. Where a few nodes "
            "carry the function, most others can go. "
            "Under NTK everyone carries a little, and every removed node hurts.",
            look="Risk after pruning",
            moment=tour.prunable,
        ),
    ),
    settings={},
    live=tour.live,
)
