"""Theorems: one object per theorem or lemma, a folder a paper."""

from . import (
    allenzhu2018 as allenzhu2018,
    caron2023 as caron2023,
    chen2022 as chen2022,
    li2020 as li2020,
    ren2023 as ren2023,
)
from .base import (
    AbstractTheorem as AbstractTheorem,
    Citation as Citation,
    Outcome as Outcome,
    Verdict as Verdict,
)
