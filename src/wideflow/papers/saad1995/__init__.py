"""Saad and Solla 1995; README.md beside this file maps symbols and figures to files."""

from ..base import Paper

PAPER = Paper(
    key="saad1995",
    authors="Saad and Solla",
    title="Online learning in high dimension: the symmetric plateau",
    package=__name__,
    experiments={"saad1995-plateau": "plateau"},
)
