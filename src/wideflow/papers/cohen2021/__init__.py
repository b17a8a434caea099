"""Cohen, Kaur, Li, Kolter and Talwalkar 2021; README.md beside this file maps symbols and figures
to files.
"""

from ..base import Paper

PAPER = Paper(
    key="cohen2021",
    authors="Cohen, Kaur, Li, Kolter and Talwalkar",
    title="Gradient descent at the edge of stability",
    link="https://arxiv.org/abs/2103.00065",
    package=__name__,
    experiments={"cohen2021-edge": "edge"},
)
