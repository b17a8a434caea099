"""Veiga et al. 2022; README.md beside this file maps symbols and figures to files."""

from ..base import Paper

PAPER = Paper(
    key="veiga2022",
    authors="Veiga, Stephan, Loureiro, Krzakala and Zdeborova",
    title="Phases of SGD: learning rate against width",
    link="https://arxiv.org/abs/2202.00293",
    package=__name__,
    experiments={"veiga2022-phases": "phases"},
)
