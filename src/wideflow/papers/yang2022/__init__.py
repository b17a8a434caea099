"""Yang, Hu, Babuschkin, Sidor, Liu, Farhi, Ryder, Pachocki, Chen and Gao 2022; README.md beside
this file maps symbols and figures to files.
"""

from ..base import Paper

PAPER = Paper(
    key="yang2022",
    authors="Yang, Hu, Babuschkin, Sidor, Liu, Farhi, Ryder, Pachocki, Chen and Gao",
    title="Learning rates that transfer across widths",
    link="https://arxiv.org/abs/2203.03466",
    package=__name__,
    experiments={"yang2022-transfer": "transfer"},
)
