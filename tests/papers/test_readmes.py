"""Each paper's README leads from its symbols, statements and figures to files and commands that
exist.
"""

import pathlib
import re

import pytest

import wideflow
from wideflow.papers import papers

SOURCE = pathlib.Path(wideflow.__file__).parent
REPOSITORY = pathlib.Path(__file__).parents[2]
WITH_THEOREMS = [key for key, paper in papers().items() if paper.module("theorems")]


def readme(key: str) -> str:
    return (SOURCE / "papers" / key / "README.md").read_text()


@pytest.mark.parametrize("key", list(papers()))
def test_every_experiment_has_its_command(key):
    text = readme(key)
    missing = [name for name in papers()[key].experiments if f"`wideflow run {name}`" not in text]
    assert not missing


@pytest.mark.parametrize("key", list(papers()))
def test_every_file_that_is_named_exists(key):
    folder = SOURCE / "papers" / key
    places = (SOURCE, folder, folder / "experiments", REPOSITORY)
    for name in re.findall(r"`([\w/]+\.py)`", readme(key)):
        assert any((place / name).is_file() for place in places), name


@pytest.mark.parametrize("key", WITH_THEOREMS)
def test_it_has_symbols_statements_and_figures(key):
    headings = re.findall(r"^## (.+)$", readme(key), re.MULTILINE)
    assert headings == ["Symbols", "Equations and statements", "Figures"]


@pytest.mark.parametrize("key", WITH_THEOREMS)
def test_every_module_of_theorems_and_limits_stands_in_it(key):
    """Nothing of the paper is left out: what a theorem, limit or law file holds can be found from
    the README.
    """
    text, folder = readme(key), SOURCE / "papers" / key
    shared = {"_common", "__init__", "problem", "judge", "judging"}  # helpers without a statement
    for path in sorted((folder / "theorems").glob("*.py")):
        if path.stem not in shared:
            assert f"{path.parent.name}/{path.name}" in text, path.name


@pytest.mark.parametrize("paper", papers().values(), ids=lambda paper: paper.key)
def test_links_lead_to_the_paper_and_names_are_short(paper):
    assert re.fullmatch(r"(https://(arxiv\.org/abs/\d{4}\.\d{4,5}|doi\.org/10\..+))?", paper.link)
    assert paper.name.endswith(paper.year)
    assert len(paper.name) < 40


@pytest.mark.parametrize("key", list(papers()))
def test_every_paper_can_be_read(key):
    assert re.match(r"https://(arxiv\.org/abs/\d{4}\.\d{5}|doi\.org/10\.)", papers()[key].link)
