"""Every theorem cites a work that is in the bibliography, and states itself in its docstring."""

import inspect
import pathlib
import re

import pytest

import wideflow as wf
from wideflow.papers import papers
from wideflow.theorems.base import AbstractTheorem

SOURCE = pathlib.Path(inspect.getfile(wf)).parent
KNOWN = set(papers()) | set(  # a paper with a folder tells there who wrote it and where it is
    re.findall(r"^@\w+\{(\w+),", (SOURCE / "theorems" / "references.bib").read_text(), re.MULTILINE)
)
PAPERS = {key: found for key, paper in papers().items() if (found := paper.module("theorems"))}
THEOREMS = [
    theorem
    for module in PAPERS.values()
    for _, theorem in inspect.getmembers(module, inspect.isclass)
    if issubclass(theorem, AbstractTheorem) and theorem is not AbstractTheorem
]


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda t: t.__name__)
def test_cited_and_stated(theorem):
    assert theorem.citation.key in KNOWN
    assert theorem.citation.locator
    assert len(inspect.getdoc(theorem) or "") > 40


@pytest.mark.parametrize("paper", PAPERS)
def test_every_folder_of_theorems_has_one_of_the_paper(paper):
    assert any(t.citation.key == paper for t in THEOREMS)


def test_keys_used_in_the_source_are_known():
    used = set()
    for path in SOURCE.rglob("*.py"):
        used |= set(re.findall(r"\b([a-z]{2,}(?:19|20)\d\d)\b", path.read_text()))
    assert used <= KNOWN
