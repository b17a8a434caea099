"""The page: failed claims first, every link there, and a real browser opens it from disk without a
word.
"""

import dataclasses
import pathlib
import re

import numpy as np
import pytest
from small_experiment import EXPERIMENT, FAILING, draw, registered

from wideflow.experiments import registry
from wideflow.report.html import write_report
from wideflow.report.interactive import plots
from wideflow.report.tex import as_text
from wideflow.runs import Store, perform


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page on two experiments, one of them failing and in two sizes, and a damaged file."""
    folder = tmp_path_factory.mktemp("runs")
    store = Store(folder)
    perform(EXPERIMENT, store, size="smoke")
    perform(FAILING, store, size="smoke")
    perform(FAILING, store, size="default", seed=4)
    (folder / "broken-smoke-0123.nc").write_bytes(b"not a record")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "experiments", registered)
        return write_report(store, folder / "report.html")


def visible(page: pathlib.Path) -> str:
    """The page's text without scripts and styles."""
    return re.sub(r"<(script|style).*?</\1>", "", page.read_text(), flags=re.S)


def test_failed_claims_stand_first_and_in_red(page):
    text = visible(page)
    table = text[text.index('id="small-failing"') :]
    assert table.index("two is three") < table.index(">fine<")
    assert '<tr class="failed">' in table
    assert "does not reproduce (declared)" in text
    assert "1 of 4 claims FAILS" in text[: text.index("<main>")]  # already in the head
    main = text[text.index("<main>") :]
    assert main.index('id="small-failing"') < main.index('id="small-one"')


def test_everything_promised_is_there(page):
    text = visible(page)
    assert "wideflow run small-failing --size default --seed 4" in text  # larger sizes are shown
    assert "Other runs of this experiment (1)" in text
    assert "0.5" in text[text.index("published") :]
    assert "broken-smoke-0123.nc is not a netCDF file" in text
    for name in ("width", "gammas", "versions", "revision", "device"):
        assert f"<th>{name}</th>" in text
    links = re.findall(r'href="([^#"][^"]*\.(?:png|pdf|nc))"', text)
    assert len(links) == 6
    assert all((page.parent / link).is_file() for link in links)


def test_nothing_is_loaded_from_elsewhere(page):
    loaded = re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="([^"]*)"', page.read_text())
    assert [target for target in loaded if not target.startswith("data:")] == []


def test_a_run_of_a_forgotten_experiment_keeps_its_claims(tmp_path, monkeypatch):
    gone = dataclasses.replace(EXPERIMENT, name="small-gone")
    perform(gone, Store(tmp_path), size="smoke")
    monkeypatch.setattr(registry, "experiments", registered)
    text = visible(write_report(Store(tmp_path), tmp_path / "below" / "page.html"))
    assert "small-gone is not an experiment of this version" in text
    assert "the loss falls" in text
    assert "not run: <code>wideflow run small-one</code>" in text
    assert 'href="../small-gone' in text


def test_pages_of_sweeps_are_linked(tmp_path):
    folder = tmp_path / "sweeps" / "drift"
    folder.mkdir(parents=True)
    for name in ("table.nc", "index.html"):
        (folder / name).touch()
    (tmp_path / "sweeps" / "unfinished").mkdir()
    page = write_report(Store(tmp_path), tmp_path / "report.html").read_text()
    assert '<a href="sweeps/drift/index.html">drift</a>' in page
    assert "unfinished" not in page


@pytest.mark.parametrize("folder", ["", "nowhere"])
def test_an_empty_or_missing_folder_is_an_error_and_nothing_is_written(tmp_path, folder):
    with pytest.raises(ValueError, match="nothing to report"):
        write_report(Store(tmp_path / folder), tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_the_verdict_and_the_figure_stand_before_the_claims_and_what_was_not_run_at_the_end(page):
    text = visible(page)
    main = text[text.index("<main>") :]
    section = main[main.index('id="small-one"') :]
    assert section.index('class="verdict"') < section.index("<figure>") < section.index("the loss")
    assert "All 2 claims hold. 1 more is known not to reproduce, and does not." in section
    assert 'class="missing"' not in text  # both were run


def test_claims_are_folded_unless_one_fails(page):
    folds = re.findall(r'id="(small-\w+)".*?<details class="judged"( open)?>', visible(page), re.S)
    assert dict(folds) == {"small-failing": " open", "small-one": ""}


def test_printing_keeps_every_figure_uncut(page, browser):
    """The PDF holds a picture an experiment, and on paper each fits between the margins of one A4
    sheet.
    """
    tab = browser.new_context(color_scheme="dark").new_page()
    tab.goto(page.as_uri())
    pdf = tab.pdf(format="A4", margin=dict.fromkeys(("top", "right", "bottom", "left"), "1cm"))
    widths = [int(width) for width in re.findall(rb"/Subtype /Image\s+/Width (\d+)", pdf)]
    assert sum(width > 500 for width in widths) == 2  # none was drawn by scrolling to it
    tab.set_viewport_size({"width": 718, "height": 1047})  # A4 less 1 cm on each side, 96 dpi
    tab.emulate_media(media="print")
    boxes = [image.bounding_box() for image in tab.query_selector_all(".printed")]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 718 for box in boxes)
    assert all(0 < box["height"] < 1000 for box in boxes)
    assert tab.evaluate("getComputedStyle(document.body).color") == "rgb(29, 33, 38)"  # not dark


def test_every_panel_becomes_a_plot_with_its_numbers(tmp_path):
    table = perform(EXPERIMENT, Store(tmp_path), size="smoke").record.table
    drawn = plots(draw(table), "small-one")
    assert len(drawn) == 5
    mean = table.loss.values.mean(0)
    curves = [renderer.data_source.data.get("true_y", []) for renderer in drawn[0].renderers]
    assert any(len(curve) == len(mean) and np.allclose(curve, mean) for curve in curves)
    # a symlog axis carries asinh(y / threshold), threshold a thousandth of the largest number
    signed = mean - mean[2]
    expected = np.arcsinh(signed / (1e-3 * np.abs(signed).max()))
    np.testing.assert_allclose(drawn[4].renderers[0].data_source.data["y"], expected)


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        ("plain", "plain"),
        (r"$\|\Theta_t\|_2$", "‖Θₜ‖₂"),
        (r"$n^{-1/2}$", "n^-1/2"),
        (r"loss $\mathcal{L}$ at $10^{-3}$", "loss L at 10⁻³"),
    ],
)
def test_labels_without_tex(tex, text):
    assert as_text(tex) == text


def test_a_browser_opens_it_from_disk(page, browser):
    for width, scheme in ((1280, "light"), (390, "dark")):
        tab = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme
        ).new_page()
        said, asked = [], []
        tab.on("console", lambda message, said=said: said.append((message.type, message.text)))
        tab.on("pageerror", lambda error, said=said: said.append(("error", str(error))))
        tab.on("request", lambda request, asked=asked: asked.append(request.url))
        tab.goto(page.as_uri())
        for panel in tab.query_selector_all(".panel"):  # each is drawn when it comes near
            panel.scroll_into_view_if_needed()
        tab.wait_for_function("document.querySelectorAll('.panel .bk-Figure').length == 10")
        assert [line for line in said if line[0] in ("error", "warning")] == []
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
        assert (
            tab.evaluate("document.documentElement.scrollWidth") <= width
        )  # nothing runs off the page
        assert tab.evaluate("document.documentElement.dataset.theme") == scheme
        hidden = (
            "Bokeh.documents.flatMap(d => [...d.all_models]).filter(m => m.tags?.length && "
            "m.visible === false).length"
        )
        assert tab.evaluate(hidden) == 0
        tab.click(".entry >> nth=0")
        tab.wait_for_function(hidden + " > 0")
        tab.click("#theme")
        assert tab.evaluate("document.documentElement.dataset.theme") != scheme
