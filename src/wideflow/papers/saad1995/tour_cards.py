"""The plateau of online learning (saad1995)."""

from ...experiments.tours.base import Step, Tour
from . import tour

TOUR = Tour(
    paper="saad1995",
    title="The plateau of online learning",
    experiment=tour.EXPERIMENT.name,
    steps=(
        Step(
            "Two students, two teachers",
            "The target is a sum of two units in 500 dimensions. A network of two units learns "
            "it from samples that it sees once each. "
            "In high dimension all that matters is how much each student overlaps with each unit "
            "of the teacher, and these overlaps follow closed equations: "
            "the dashed lines are there before the run. Press start.\n\n"
            "In the plane each student is a point; the teacher's units are at (1, 0) and (0, 1).",
            look="Students among the teachers",
        ),
        Step(
            "The plateau",
            "Both students run to the same place on the diagonal. There each of them does the "
            "mean of what the two units do, which is the best that two equal students can do. "
            "The error stands still, however many samples come.",
            look="Generalisation error",
            moment=tour.plateau,
        ),
        Step(
            "A small difference grows",
            "The students were never quite equal: at the start each had a little more of its own "
            "unit. On the plateau this difference grows by the same factor in equal times, "
            "a straight line on this scale. When it is of order one the error falls. A start "
            "that is ten times more symmetric waits longer by one fixed amount.",
            look="What tells the students apart",
            moment=tour.escape,
        ),
        Step(
            "Each finds its own",
            "In the end every student follows one unit of the teacher and has forgotten the "
            "other. The network scatters around the dashed lines by about one over the root of "
            "the dimension, "
            "most of all where it leaves the plateau: there the noise of single samples had its "
            "say in the small difference.",
            look="Overlaps with the teacher",
            moment=tour.parted,
        ),
    ),
    settings={},
    live=tour.live,
)
