"""Theorems: one object a theorem or lemma; each paper's are in its own folder and gathered here by
bib key.
"""

from ..papers.allenzhu2018 import theorems as allenzhu2018
from ..papers.caron2023 import theorems as caron2023
from ..papers.chen2022 import theorems as chen2022
from ..papers.li2020 import theorems as li2020
from ..papers.ren2023 import theorems as ren2023
from .base import AbstractTheorem, Citation, Outcome, Verdict
from .judging import Judgement, judge, records
from .of_runs import AbstractRunTheorem

__all__ = [
    "AbstractRunTheorem",
    "AbstractTheorem",
    "Citation",
    "Judgement",
    "Outcome",
    "Verdict",
    "allenzhu2018",
    "caron2023",
    "chen2022",
    "judge",
    "li2020",
    "records",
    "ren2023",
]
