"""The statements of the five papers, a file a paper; importing this registers them."""

from ..registry import register
from . import allenzhu2018, caron2023, chen2022, li2020, ren2023

for _paper in (caron2023, chen2022, allenzhu2018, li2020, ren2023):
    register(*_paper.STATEMENTS)
