"""Saad and Solla 1995; README.md beside this file maps symbols and figures to files."""

from ..base import Paper

PAPER = Paper(
    key="saad1995",
    authors="Saad and Solla",
    title="Online learning in high dimension: the symmetric plateau",
    link="https://doi.org/10.1103/PhysRevE.52.4225",
    package=__name__,
    experiments={"saad1995-plateau": "plateau"},
)
