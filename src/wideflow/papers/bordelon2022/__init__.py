"""Bordelon and Pehlevan 2022; README.md beside this file maps symbols, equations and figures to
files.
"""

from ..base import Paper

PAPER = Paper(
    key="bordelon2022",
    authors="Bordelon and Pehlevan",
    title="Self-consistent field theory of feature learning in deep networks",
    link="https://arxiv.org/abs/2205.09653",
    package=__name__,
    experiments={
        "bordelon2022-kernels": "kernels",
        "bordelon2022-richness": "richness",
        "bordelon2022-linear": "linear",
    },
)
