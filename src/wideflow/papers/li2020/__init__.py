"""Li, Ma and Zhang 2020; README.md beside this file maps symbols, equations and figures to
files.
"""

from ..base import Paper

PAPER = Paper(
    key="li2020",
    authors="Li, Ma and Zhang",
    title="Tensor stages: learning beyond the tangent kernel",
    link="https://arxiv.org/abs/2007.04596",
    package=__name__,
    experiments={
        "li2020-figure1": "figure1",
        "li2020-figure1-samples": "figure1_samples",
        "li2020-figure2": "figure2",
        "li2020-scaling": "scaling",
        "li2020-width": "width",
        "li2020-late": "late",
        "li2020-kernels": "kernels",
        "li2020-infinite-width": "infinite_width",
        "li2020-coupling": "coupling",
        "li2020-lottery": "lottery",
        "li2020-algorithm1": "algorithm1",
    },
)
