"""The book is built from nothing without a warning; every link in it leads somewhere, every public
name is in it, and it needs no network and no server: links and search work from disk.
"""

import html.parser
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

import api
import pytest

from wideflow.papers import papers

ROOT = pathlib.Path(__file__).parents[1]


class Page(html.parser.HTMLParser):
    """Links, anchors, loaded files and plain text of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.links, self.anchors, self.loaded, self.text = [], set(), [], []
        self._skip = 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("script", "img") and given.get("src"):
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preconnect"):
            self.loaded.append(given["href"])
        self._skip += tag in ("code", "pre", "script", "style")

    def handle_endtag(self, tag):
        self._skip -= tag in ("code", "pre", "script", "style")

    def handle_data(self, data):
        if not self._skip:
            self.text.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    said = [line for line in built.stderr.splitlines() if line.strip()]
    assert built.returncode == 0, built.stderr[-3000:]
    usual = (
        "Cleaning site directory",
        "Building documentation to directory",
        "Documentation built in",
    )
    unusual = [line for line in said if not any(words in line for words in usual)]
    assert not unusual, "mkdocs remarks: " + "\n".join(unusual)
    return {
        path.relative_to(folder).as_posix(): Page(path.read_text())
        for path in folder.rglob("*.html")
    } | {"": folder}


def pages(site):
    return {path: page for path, page in site.items() if path and path != "404.html"}


def resolve(path: str, target: str) -> tuple[str, str]:
    """The file of the site that a link on page `path` leads to, and the anchor in it."""
    url = urllib.parse.urlparse(urllib.parse.urljoin(f"http://book/{path}", target))
    return urllib.parse.unquote(url.path).lstrip(
        "/"
    ), url.fragment  # from disk a folder has no page


def test_every_link_and_anchor_leads_somewhere(site):
    dead = []
    for path, page in pages(site).items():
        for target in page.links:
            if urllib.parse.urlparse(target).scheme in ("http", "https", "mailto"):
                continue
            file, anchor = resolve(path, target)
            if not (site[""] / file).is_file():
                dead.append(f"{path}: {target}")
            elif anchor and file in site and urllib.parse.unquote(anchor) not in site[file].anchors:
                dead.append(f"{path}: {target} has no such heading")
    assert not dead, "\n".join(dead[:20])


def test_nothing_is_loaded_from_elsewhere(site):
    for path, page in pages(site).items():
        for source in page.loaded:
            assert not urllib.parse.urlparse(source).scheme, f"{path} loads {source}"
            assert (site[""] / resolve(path, source)[0]).is_file(), f"{path} shows {source}"


def test_no_formula_is_left_as_source(site):
    """Dollar signs and backslash commands in the text are formulas that were not rendered."""
    for path, page in pages(site).items():
        text = "".join(page.text)
        assert "$" not in text, (
            f"{path}: ...{text[max(0, text.find('$') - 60) : text.find('$') + 60]}..."
        )
        left = re.search(r".{0,40}\\[a-zA-Z|{}(\[].{0,40}", text)
        assert left is None, f"{path} shows {left.group(0)}"


@pytest.mark.parametrize("package", [*api.PAGES, "wideflow"])
def test_every_public_name_is_in_the_book(site, package):
    """What each `__init__.py` exports has an anchor on its page; top-level names stand in the
    overview.
    """
    if package == "wideflow":
        text = "".join("".join(page.text) for page in [site["api/index.html"]])
        source = (site[""] / "api" / "index.html").read_text()
        for name in {*api.exported("wideflow"), *api.late()}:
            assert f">wf.{name}<" in source, f"wf.{name} is not in the overview"
        assert "is explained in" in text
        return
    anchors = site[f"api/{package.removeprefix('wideflow.')}.html"].anchors
    for name in public(package):
        assert name in anchors, f"{name} is not on its page"


def public(package: str) -> list[str]:
    names = []
    for name, module in api.exported(package).items():
        full = f"{package}.{name}"
        names += public(full) if module and api.is_package(full) else [full]
    return names


def test_every_page_is_in_the_navigation(site):
    home = {resolve("index.html", link)[0] for link in site["index.html"].links}
    for path in pages(site):
        assert path in home, f"{path} cannot be reached from the start page"


def test_the_gallery_shows_every_experiment(site):
    """A card each, with the command; every experiment of the five papers with a picture, and no
    picture of anything else.
    """
    names = {name for paper in papers().values() for name in paper.experiments}
    source = (site[""] / "gallery.html").read_text()
    assert names <= site["gallery.html"].anchors
    assert all(f"wideflow run {name}<" in source for name in names)
    pictures = {path.stem for path in (ROOT / "docs" / "gallery").glob("*.webp")}
    assert pictures == names
    assert sum(path.stat().st_size for path in (ROOT / "docs" / "gallery").iterdir()) < 2e6


def test_every_page_but_the_last_leads_to_the_next(site):
    ends = [path for path, page in pages(site).items() if "Next" not in "".join(page.text)]
    assert len(ends) == 1


def test_search_works_from_disk(site, browser):
    """Typed into the search box of a page opened as a file, a word leads to the page that is about
    it.
    """
    tab = browser.new_page()
    tab.set_default_timeout(300_000)  # a busy machine is no failure
    asked = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto((site[""] / "papers" / "caron2023.html").as_uri())
    tab.click("[name=query]")
    tab.type("[name=query]", "neural-tangents")
    first = tab.wait_for_selector(".md-search-result__link")
    assert "neural-tangents" in first.get_attribute("href")
    assert all(url.startswith(("file:", "data:", "about:", "blob:")) for url in asked)
    tab.close()
