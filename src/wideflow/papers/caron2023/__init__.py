"""Caron, Ayed, Jung, Lee, Lee and Yang 2023; README.md beside this file maps symbols, equations and
figures to files.
"""

from ..base import Paper

PAPER = Paper(
    key="caron2023",
    authors="Caron, Ayed, Jung, Lee, Lee and Yang",
    title="Asymmetric node scaling: global convergence and feature learning",
    link="https://arxiv.org/abs/2302.01002",
    package=__name__,
    experiments={
        "caron2023-figure1": "figure1",
        "caron2023-figure2": "figure2",
        "caron2023-figure3": "figure3",
        "caron2023-figure4": "figure4",
        "caron2023-figure5": "figure5",
        "caron2023-figure6": "figure6",
        "caron2023-figure7": "figure7",
        "caron2023-figure8": "figure8",
        "caron2023-figure9": "figure9",
        "caron2023-figure10": "figure10",
        "caron2023-figure11": "figure11",
        "caron2023-widths": "widths",
        "caron2023-kinks": "kinks",
        "caron2023-limit": "limit",
        "caron2023-guarantees": "guarantees",
        "caron2023-first-step": "first_step",
        "caron2023-to-the-end": "to_the_end",
    },
)
