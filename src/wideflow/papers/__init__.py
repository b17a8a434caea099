"""Papers: a folder each, with all that one paper alone uses. A new paper is a new folder and one
line here.
"""

import functools
import importlib

from .base import Paper

KEYS = (  # in the order of the lists that show them
    "caron2023",
    "chen2022",
    "li2020",
    "ren2023",
    "allenzhu2018",
    "yang2021",
    "yang2022",
    "chizat2019",
    "cohen2021",
    "saad1995",
    "goldt2019",
    "benarous2021",
    "abbe2022",
    "veiga2022",
    "bordelon2022",
    "luo2021",
    "geiger2020",
    "lee2019",
)

__all__ = ["KEYS", "Paper", "papers"]


@functools.cache
def papers() -> dict[str, Paper]:
    """Every paper by its bib key."""
    return {key: importlib.import_module(f".{key}", __name__).PAPER for key in KEYS}
