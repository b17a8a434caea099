"""Luo, Xu, Ma and Zhang 2021; README.md beside this file maps symbols and figures to files."""

from ..base import Paper

PAPER = Paper(
    key="luo2021",
    authors="Luo, Xu, Ma and Zhang",
    title="Phase diagram of two-layer ReLU networks at infinite width",
    link="https://arxiv.org/abs/2007.07497",
    package=__name__,
    experiments={"luo2021-phases": "phases"},
)
