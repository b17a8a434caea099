"""Chen, Vanden-Eijnden and Bruna 2022; README.md beside this file maps symbols, equations and
figures to files.
"""

from ..base import Paper

PAPER = Paper(
    key="chen2022",
    authors="Chen, Vanden-Eijnden and Bruna",
    title="Partially trained networks: feature learning with a linear rate",
    link="https://arxiv.org/abs/2204.10782",
    package=__name__,
    experiments={
        "chen2022-figure1": "figure1",
        "chen2022-figure2": "figure2",
        "chen2022-figure3": "figure3",
        "chen2022-figure4": "figure4",
        "chen2022-dashboard": "dashboard",
        "chen2022-gram": "gram",
        "chen2022-reduction": "reduction",
        "chen2022-limits": "limits",
    },
)
