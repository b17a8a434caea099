"""Ben Arous et al. 2021; README.md beside this file maps symbols and figures to files."""

from ..base import Paper

PAPER = Paper(
    key="benarous2021",
    authors="Ben Arous, Gheissari and Jagannath",
    title="Online SGD and the information exponent",
    link="https://arxiv.org/abs/2003.10409",
    package=__name__,
    experiments={"benarous2021-exponent": "exponent"},
)
