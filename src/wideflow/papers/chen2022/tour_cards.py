"""The two-input feature scatter under three scalings (chen2022)."""

from ...experiments.tours.base import Step, Tour
from . import tour

TOUR = Tour(
    paper="chen2022",
    title="Two inputs under three scalings",
    experiment=tour.EXPERIMENT.name,
    steps=(
        Step(
            "Every neuron is a point",
            "Only two of the coordinates of an input decide its label, the others are noise. "
            "Three networks share their random draws and differ in scaling only. "
            "Each point is a neuron: across, what it sees at a training input; up, at a test "
            "input of the other label. Press start.\n\n"
            "Under MF the cloud starts as a dot; under the other two it has the same width.",
            look=tour.TITLES["ours"],
        ),
        Step(
            "NTK stays",
            "All three learn the training data, NTK more slowly. Under NTK each neuron moves by "
            "a hair, and the more neurons there are the less: the cloud stays where it was. "
            "The network fits by a kernel that was fixed at the start.",
            look=tour.TITLES["NTK"],
        ),
        Step(
            "MF starts from nothing",
            "Under the older mean-field scaling all neurons start next to zero, so the data "
            "alone decide where they go, and the cloud opens into a few arms. "
            "In exchange there is no proof that it converges.",
            look=tour.TITLES["MF"],
            moment=tour.mean_field_left,
        ),
        Step(
            "Features pay",
            "The paper's scaling keeps the wide start of NTK and moves like MF. The neurons line "
            "up with the two coordinates that matter, and the noise is "
            "ignored. So the test error falls far below NTK's. NTK also fits more slowly: to be "
            "fair, compare the test errors at equal training errors.",
            look="Test error",
            moment=tour.features_learnt,
        ),
    ),
    settings={},
    live=tour.live,
)
