"""Ren, Zhou and Ge 2023; README.md beside this file maps symbols, equations and figures to
files.
"""

from ..base import Paper

PAPER = Paper(
    key="ren2023",
    authors="Ren, Zhou and Ge",
    title="Depth separation with multilayer mean-field networks",
    link="https://arxiv.org/abs/2304.01063",
    package=__name__,
    experiments={
        "ren2023-figure2": "figure2",
        "ren2023-concentration": "concentration",
        "ren2023-separation": "separation",
        "ren2023-width": "width_scaling",
        "ren2023-dimension": "dimension_scaling",
        "ren2023-stages": "stages",
        "ren2023-regular-laws": "regular_laws",
        "ren2023-clipping": "clipping",
        "ren2023-deterministic": "deterministic",
        "ren2023-stack": "stack",
    },
)
