"""Code in the README and in the book runs; links between pages lead somewhere."""

import pathlib
import re

import pages
import pytest

from wideflow.certify import registry
from wideflow.experiments.registry import experiments

ROOT = pathlib.Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def name(page: pathlib.Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [p for p in PAGES if pages.blocks(p)], ids=name)
def test_code_runs(page, tmp_path, monkeypatch):
    """Every Python block of a page, in order, in one namespace, prints what the page shows under
    it.

    A page that shows a figure of its own name draws it.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_REGISTERED", list(registry._REGISTERED))
    for printed, shown in zip(pages.run(page, tmp_path), pages.shown(page), strict=True):
        assert pages.agree(printed, shown), f"{name(page)} prints\n{printed}and shows\n{shown}"
    if f"](figures/{page.stem}.png)" in page.read_text():
        assert (tmp_path / f"{page.stem}.png").stat().st_size > 5000


def test_outputs_agree_up_to_rounding_and_not_beyond():
    assert pages.agree("loss 0.5000001 of 3\n", "loss  0.5 of 3\n")
    assert not pages.agree("loss 0.52 of 3\n", "loss 0.5 of 3\n")
    assert not pages.agree("risk 0.5 of 3\n", "loss 0.5 of 3\n")
    assert not pages.agree("", "loss 0.5\n")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    """Where a link names a heading, the page has it; what the built book links to is checked in
    test_book.py.
    """
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith(("http://", "https://", "#", "mailto:")):
            file = (page.parent / target.split("#")[0]).resolve()
            generated = file.suffix == ".md" and (
                file.parent.name in ("api", "notebooks") or file.name == "gallery.md"
            )
            assert file.exists() or generated, f"{name(page)} links to {target}"


def test_every_guide_is_run_or_has_no_code():
    """No fence hides from the tests: Python in the book is fenced as `python`, and nothing else
    is.
    """
    for page in PAGES:
        fences = re.findall(r"^```(\S*)$", page.read_text(), re.MULTILINE)
        unknown = set(fences) - {"", "python", "sh", "bash", "yaml", "toml", "text", "pycon"}
        assert not unknown, f"{name(page)} has blocks of {unknown}"


def test_every_erratum_says_where_it_is_tested():
    """Each numbered item of the errata has a row in its paper's table, and what the row names
    exists; a paper with a chapter has a section.
    """
    text = (ROOT / "docs" / "errata.md").read_text()
    known = set(experiments())
    for paper in (chapter.stem for chapter in (ROOT / "docs" / "papers").glob("*[0-9].md")):
        section = re.search(rf"^## {paper}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)[1]
        items = [int(n) for n in re.findall(r"^(\d+)\. ", section, re.MULTILINE)]
        rows = re.findall(r"^\| (\d+) \| (.+) \|$", section, re.MULTILINE)
        assert items == [int(n) for n, _ in rows] == list(range(1, len(items) + 1))
        for number, row in rows:
            named = re.findall(r"`([^`]+)`", row)
            assert named or "reading" in row or "algebra" in row, f"{paper} {number}"
            for name in named:
                assert (ROOT / name).is_file() or name in known, f"{paper} {number}: {name}"
