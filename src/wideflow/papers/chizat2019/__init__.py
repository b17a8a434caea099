"""Chizat, Oyallon and Bach 2019; README.md beside this file maps symbols and figures to files."""

from ..base import Paper

PAPER = Paper(
    key="chizat2019",
    authors="Chizat, Oyallon and Bach",
    title="Lazy training by the scale of the outputs, at any width",
    link="https://arxiv.org/abs/1812.07956",
    package=__name__,
    experiments={"chizat2019-laziness": "laziness"},
)
