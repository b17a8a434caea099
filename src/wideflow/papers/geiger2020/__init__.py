"""Geiger, Spigler, Jacot and Wyart 2020; README.md beside this file maps symbols and figures to
files.
"""

from ..base import Paper

PAPER = Paper(
    key="geiger2020",
    authors="Geiger, Spigler, Jacot and Wyart",
    title="Feature and lazy training, separated by alpha sqrt(m)",
    link="https://arxiv.org/abs/1906.08034",
    package=__name__,
    experiments={"geiger2020-lazy-rich": "lazy_rich"},
)
