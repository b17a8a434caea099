"""Allen-Zhu, Li and Liang 2018; README.md beside this file maps symbols, equations and figures to
files.
"""

from ..base import Paper

PAPER = Paper(
    key="allenzhu2018",
    authors="Allen-Zhu, Li and Liang",
    title="Improper learning with two and three layers",
    link="https://arxiv.org/abs/1811.04918",
    package=__name__,
    experiments={
        "allenzhu2018-width": "width",
        "allenzhu2018-three-beat-two": "three_beat_two",
        "allenzhu2018-coupling": "coupling",
        "allenzhu2018-sign-changes": "sign_changes",
        "allenzhu2018-variants": "variants",
        "allenzhu2018-spread": "spread",
        "allenzhu2018-representation": "representation",
        "allenzhu2018-descent-direction": "descent_direction",
        "allenzhu2018-rademacher": "rademacher",
        "allenzhu2018-algorithm2": "algorithm2",
    },
)
