"""Goldt et al. 2019; README.md beside this file maps symbols and figures to files."""

from ..base import Paper

PAPER = Paper(
    key="goldt2019",
    authors="Goldt, Advani, Saxe, Krzakala and Zdeborova",
    title="Dynamics of SGD where the student is wider than its teacher",
    link="https://arxiv.org/abs/1906.08632",
    package=__name__,
    experiments={"goldt2019-wider": "wider"},
)
