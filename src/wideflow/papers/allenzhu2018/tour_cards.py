"""Three layers against two (allenzhu2018)."""

from ...experiments.tours.base import Step, Tour
from . import tour

TOUR = Tour(
    paper="allenzhu2018",
    title="Three layers against two",
    experiment=tour.EXPERIMENT.name,
    steps=(
        Step(
            "A product of two waves",
            "The target is the product cos(6x₁) cos(6x₂) on a sphere in five dimensions: the map "
            "shows it over x₁ and x₂. The samples are few for its wiggles, so that "
            "fitting them is not yet predicting new points. Press start: two layers go first.",
            look="Target",
        ),
        Step(
            "Two layers",
            "The two-layer network has five times the neurons and takes more steps. Its training "
            "error falls and its map shows some of the pattern, but on "
            "new points it stays far from the target.",
            look="Learnt by two layers",
            moment=tour.two_layers_stop,
        ),
        Step(
            "Three layers, at equal fit",
            "Now three layers, by the same descent on the same samples: the second layer can "
            "form functions of the first, and the chessboard appears. A fair moment to compare "
            "is "
            "when they have just the training error that two layers ended with. Their test error "
            "is then about four fifths of two layers': they generalise better from the same "
            "fit, but not by much.",
            look="Training error",
            moment=tour.equal_fit,
        ),
        Step(
            "The gap",
            "Three layers go on to fit the samples ten times better than two layers did in all "
            "their passes, and their test error follows: half of the best that two layers ever "
            "had, and on. So the gap is mostly one of what descent can fit. It is there too "
            "against the tangent kernels of both networks (`wideflow run "
            "allenzhu2018-three-beat-two`); on easier targets there is no gap.",
            look="Test error",
            moment=tour.three_layers_win,
        ),
    ),
    settings={},
    live=tour.live,
)
