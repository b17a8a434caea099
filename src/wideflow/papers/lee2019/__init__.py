"""Lee et al. 2019; README.md beside this file maps symbols and figures to files."""

from ..base import Paper

PAPER = Paper(
    key="lee2019",
    authors="Lee, Xiao, Schoenholz, Bahri, Novak, Sohl-Dickstein and Pennington",
    title="Wide networks of any depth as linear models with infinite-width kernels",
    link="https://arxiv.org/abs/1902.06720",
    package=__name__,
    experiments={
        "kernels-width": "width",
        "kernels-ensemble": "ensemble",
        "kernels-mnist": "mnist",
    },
    prefix="kernels",
)
