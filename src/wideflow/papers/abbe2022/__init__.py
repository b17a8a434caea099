"""Abbe et al. 2022; README.md beside this file maps symbols and figures to files."""

from ..base import Paper

PAPER = Paper(
    key="abbe2022",
    authors="Abbe, Boix-Adsera and Misiakiewicz",
    title="The merged staircase: learning coordinates one after the other",
    link="https://arxiv.org/abs/2202.08658",
    package=__name__,
    experiments={"abbe2022-staircase": "staircase"},
)
