"""Yang and Hu 2021; README.md beside this file maps symbols and figures to files."""

from ..base import Paper

PAPER = Paper(
    key="yang2021",
    authors="Yang and Hu",
    title="Which width exponents learn features",
    link="https://arxiv.org/abs/2011.14522",
    package=__name__,
    experiments={"yang2021-coordinates": "coordinates"},
)
