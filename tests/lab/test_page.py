"""The lab in a real browser: a picture at once, settings that act, two runs beside each other, and
what else a tab can do.
"""

import time
from urllib.parse import parse_qs, urlsplit

import numpy as np
import psutil
import pytest

from wideflow.lab.links import START, place
from wideflow.lab.panel_help import HELP
from wideflow.lab.uploads import Uploads

SMALL = "data=wave-1d&samples=10&noise=0&width=24&scaling=zipf:0.5,0.5&rate=0.2&steps=100&seed=3"
# other models may be of a figure before
FIGURES = "Bokeh.documents.flatMap(d => d.get_model_by_name('grid').children)"
MOVED = "t.drawn && t.step > 0"


def curve(page, name: str, title: str = "Loss") -> list[float]:
    """The heights of the named curve, as the browser holds them."""
    return page.tab.evaluate(
        f"([title, name]) => [...({FIGURES}.find(m => m.title.text === title).renderers.find(r "
        f"=> r.tags[0] === `lab/${{name}}`)?.data_source.data.true_y ?? [])]",
        [title, name],
    )


def set_number(page, field: str, value) -> None:
    page.tab.fill(field, str(value))
    page.tab.press(field, "Tab")


@pytest.fixture(scope="module")
def page(browser, server):
    """One tab for the tests of a run, in the order in which they stand here: each goes on from the
    one before.
    """
    from .conftest import Page

    opened = Page(browser, server, SMALL)
    yield opened
    opened.close()


def test_the_start_is_drawn_before_anything_is_pressed(page):
    page.prepared()
    assert page.tab.inner_text("#state") == "ready"
    assert not page.tab.is_visible("#empty")
    titles = page.tab.evaluate(f"{FIGURES}.map(m => m.title.text)")
    assert titles == [title for title in HELP if title != "Predicted against true"]
    start, now = (
        curve(page, name, "Learned function") for name in ("at the start", "this network")
    )
    assert len(start) == 201
    assert start == now  # nothing has moved
    page.wait(
        f"{FIGURES}.find(m => m.title.text === 'Loss').renderers.find(r => r.tags[0] === "
        "'lab/linearised').data_source.data.true_y.filter(Number.isFinite).length === 101"
    )  # the prediction is there before the run
    assert page.tab.inner_text("#dial-words") == "at the start"
    page.tab.click("#take-table")
    page.wait("document.getElementById('taken').textContent.includes('Press Start')")
    descriptions = page.tab.evaluate(PICTURES)  # for those who do not see them
    assert ["img", "Loss: half sum of squares over time"] in descriptions


def test_curves_move_and_pause(page):
    page.tab.select_option("#pace", "slow")
    page.tab.click("#start")
    page.since_fresh("t.drawn && t.step >= 4")
    first = curve(page, "this network")
    page.tab.click("#pause")
    page.state("paused")
    page.tab.wait_for_timeout(300)
    still = curve(page, "this network")
    assert len(still) >= len(first) > 1
    assert still[: len(first)] == first  # it grows, and what was drawn stays
    page.tab.wait_for_timeout(600)  # two records at this pace
    assert curve(page, "this network") == still
    assert "step" in page.tab.inner_text("#where")  # a pause says where it is
    page.tab.select_option("#pace", "fast")
    page.tab.click("#pause")
    page.state("finished")
    assert page.tab.inner_text("#where").endswith("time 20")


def test_figures_dial_and_files_tell_what_was_recorded(page):
    table = page.table()
    np.testing.assert_allclose(curve(page, "this network"), table.loss.values)
    np.testing.assert_allclose(curve(page, "linearised"), table.linearised_loss.values)
    np.testing.assert_allclose(
        curve(page, "on test data", "Training and test error"), table.test_risk.values
    )
    change, gap = (float(table[n][-1]) for n in ("kernel_change", "linearisation_gap"))
    assert float(page.tab.inner_text("#dial-richness")) == pytest.approx(max(change, gap), rel=6e-3)
    assert page.tab.inner_text("#dial-words") in ("lazy", "between lazy and rich", "rich")
    assert page.download("#take-figure").startswith(b"\x89PNG")
    query = dict(pair.split("=") for pair in SMALL.split("&"))
    uploads = Uploads()
    here = place(query, uploads)
    uploads.end()
    assert page.tab.inner_text("#command") == here.command()
    assert page.tab.inner_text("#lines") == here.lines()
    assert "width 24" in page.tab.inner_text("#caption")


def test_the_theorems_say_a_headline_and_fold_what_does_not_apply(page):
    page.wait("document.querySelectorAll('#silent-rows dt').length > 5")
    assert page.tab.inner_text("#headline").startswith(("No theorem covers", "One theorem applies"))
    assert not page.tab.is_visible("#silent-rows")  # folded
    everything = page.tab.text_content("#verdicts")
    for internal in ("Zipf(", "MeanField(", "released", "`", "wf.", "10^2.", "laziness index"):
        assert internal not in everything
    chips = page.tab.eval_on_selector_all("#rows .chip", "all => all.map(c => c.textContent)")
    assert "not applicable" not in chips


def test_a_slider_starts_the_run_anew_in_the_same_process_over_the_last_one_in_grey(page, server):
    before, last = server.workers(), curve(page, "this network")
    slide = (
        "(e => { e.value = 0.2; e.dispatchEvent(new Event('input', {bubbles: true})); "
        "})(document.getElementById('gamma'))"
    )
    page.begins_anew(lambda: page.tab.evaluate(slide))
    assert "zipf%3A0.2" in page.tab.inner_text("#link")
    page.since_fresh(MOVED)
    page.state("finished")
    page.wait(
        f"({FIGURES}).find(m => m.title.text === 'Loss').renderers.some(r => r.tags[0] === "
        "'lab/the run before')"
    )
    assert curve(page, "the run before") == last
    assert curve(page, "this network") != last
    assert server.workers() >= before  # none was ended for it
    grey = page.tab.evaluate(
        f"{FIGURES}.find(m => m.title.text === 'Loss').renderers.find(r => r.tags[0] === "
        "'lab/the run before').glyph.line_color"
    )
    assert "#8A8A8A" in str(grey)


def test_a_field_that_is_empty_starts_nothing(page):
    set_number(page, "#f-width", "")
    assert page.trouble() == "Width needs a number from 1 to 8192."
    assert page.tab.inner_text("#state") == "finished"
    set_number(page, "#f-width", 24)


def test_a_rate_beyond_the_edge_is_warned_of_and_its_run_is_called_diverged(page):
    page.begins_anew(lambda: page.tab.click("#reset"))
    page.state("ready")
    page.since_fresh("t.prepared")
    page.wait(
        f"!({FIGURES}).find(m => m.title.text === 'Loss').renderers.some(r => r.tags[0] === "
        "'lab/the run before' && r.data_source.data.true_y.length)"
    )
    page.begins_anew(lambda: set_number(page, "#f-rate", 1000))
    page.since_fresh("t.prepared")
    assert "above 2/λ_max" in page.tab.inner_text("#warning")
    page.tab.click("#start")
    page.state("diverged")
    assert page.tab.inner_text("#dial-words") == "diverged"
    assert "has diverged" in page.tab.inner_text("#warning")


def test_lazy_against_rich_trains_both_at_once(page):
    page.begins_anew(lambda: set_number(page, "#f-rate", 0.2))
    page.begins_anew(lambda: page.tab.click("#compare"))
    assert "scaling=mean-field" in page.tab.inner_text("#link")
    page.since_fresh("t.rival")
    page.state("finished")
    page.wait(
        f"({FIGURES}).find(m => m.title.text === 'Loss').renderers.find(r => r.tags[0] === "
        "'lab/NTK')?.data_source.data.true_y.length === 101"
    )
    lazy, rich = curve(page, "NTK"), curve(page, "this network")
    assert len(lazy) == len(rich)
    assert lazy != rich
    assert "For comparison, NTK" in page.tab.inner_text("#dial-other")
    refused = "409"  # the table that was asked for before there was one
    assert [line for line in page.troubles() if refused not in line[1]] == []


def test_a_closed_tab_ends_its_process_and_no_other(page, open_page, server):
    other = open_page(SMALL.replace("seed=3", "seed=4"))
    other.prepared()
    assert curve(page, "this network")[0] != curve(other, "this network")[0]
    before = server.workers()
    other.close()
    deadline = time.monotonic() + 20
    while len(server.workers() & before) > len(before) - 1 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert len(server.workers() & before) == len(before) - 1  # the closed tab's process has ended
    page.begins_anew(lambda: page.tab.click("#start"))
    page.since_fresh(MOVED)  # the other tab goes on


PICTURES = """() => {
  const figures = [], seek = (root) => { for (const e of root.querySelectorAll("*")) {
    if (e.classList.contains("bk-Figure")) figures.push([e.getAttribute("role"), e.getAttribute("aria-label")]);
    if (e.shadowRoot) seek(e.shadowRoot);
  } };
  seek(document);
  return figures;
}"""


def test_a_shared_link_gives_the_same_state(open_page):
    page = open_page()
    page.tab.fill("#f-width", "77")
    page.tab.select_option("#scaling-kind", "zipf")
    page.tab.evaluate(
        "for (const [id, v] of [['gamma', 0.25], ['alpha', 0.35]]) { const e = "
        "document.getElementById(id); e.value = v; e.dispatchEvent(new Event('change', {bubbles: "
        "true})); }"
    )
    page.tab.select_option("#f-dynamics", "flow")
    set_number(page, "#f-seed", 9)
    page.wait("document.getElementById('link').textContent.includes('seed=9')")
    link = page.tab.inner_text("#link")
    assert page.tab.url == link
    query = parse_qs(urlsplit(link).query)
    assert (query["width"], query["scaling"], query["dynamics"]) == (
        ["77"],
        ["zipf:0.25,0.35"],
        ["flow"],
    )
    page.tab.goto(link)
    page.tab.wait_for_selector("body[data-connected]")
    assert page.tab.inner_text("#link") == link
    shown = "[gamma.value, alpha.value, document.getElementById('f-width').value]"
    assert page.tab.evaluate(shown) == ["0.25", "0.35", "77"]
    page.tab.goto(
        link.replace("zipf%3A0.25%2C0.35", "zipf%3A0.333%2C0.05")
    )  # between the slider's steps
    page.tab.wait_for_selector("body[data-connected]")
    set_number(page, "#f-seed", 4)
    page.wait("document.getElementById('link').textContent.includes('seed=4')")
    assert parse_qs(urlsplit(page.tab.inner_text("#link")).query)["scaling"] == ["zipf:0.333,0.05"]
    page.tab.goto(link.replace("width=77", "width=-5"))
    page.tab.wait_for_selector("body[data-connected]")
    assert "`width` must lie in" in page.trouble()
    assert page.tab.input_value("#f-width") == START["width"]
    set_number(page, "#f-depth", 3)  # a deep network has parametrisations in place of node scalings
    offered = page.tab.eval_on_selector_all(
        "#scaling-kind option:not([hidden])", "all => all.map(o => o.value)"
    )
    assert offered == ["ntk", "mean-field", "standard", "maximal-update"]


def csv(rows: str) -> dict:
    return {"name": "my table.csv", "mimeType": "text/csv", "buffer": rows.encode()}


def test_a_users_table_and_a_defective_one(open_page):
    page = open_page("width=16&steps=20")
    page.tab.set_input_files("#file", csv("x,y\n1,2\n2,zebra\n3,4\n"))
    page.wait("!document.getElementById('trouble').hidden")
    assert "'zebra' in line 3" in page.trouble()
    grid = np.linspace(-1, 1, 15)
    rows = "\n".join(f"{x},{np.sin(3 * x)},{x**2}" for x in grid)
    table = csv(f"place,wave,bowl\n{rows}\n")
    page.begins_anew(lambda: page.tab.set_input_files("#file", table))
    page.wait("document.getElementById('f-data').value.startsWith('upload:')")
    assert page.trouble() == ""
    assert page.tab.eval_on_selector_all("#f-target option", "all => all.map(o => o.value)") == [
        "place",
        "wave",
        "bowl",
    ]
    page.tab.select_option("#pace", "fast")
    page.since_fresh("t.prepared")
    page.tab.click("#start")
    page.state("finished", "failed")
    assert page.trouble() == ""
    labels = f"({FIGURES}).flatMap(m => m.below.map(axis => axis.axis_label))"
    assert "place" in page.tab.evaluate(labels)  # the file's own name of the column
    table = page.table()
    every = (grid**2 - np.mean(grid**2)) / np.std(grid**2)  # the target, standardised
    assert np.all(
        np.isclose(table.data_targets.values[:, None], every[None], atol=1e-9).any(axis=1)
    )
    assert table.sizes["sample"] == 10  # a third is set aside
    assert "--set data=my_table.csv" in page.tab.inner_text("#command")
    rows = "\n".join(f"{x},{'low' if x < -0.3 else 'high' if x > 0.3 else 'middle'}" for x in grid)
    page.begins_anew(lambda: page.tab.set_input_files("#file", csv(f"place,kind\n{rows}\n")))
    offered = page.tab.eval_on_selector_all("#f-positive option", "all => all.map(o => o.value)")
    assert offered == ["high", "low", "middle"]
    page.begins_anew(lambda: page.tab.select_option("#f-positive", "middle"))
    page.state("finished", "failed")
    assert page.trouble() == ""
    assert "--set positive=middle" in page.tab.inner_text("#command")
    targets = page.table().data_targets.values
    assert len(np.unique(targets.round(9))) == 2  # one class against the rest, standardised


def test_a_phone_starts_with_the_run_and_nothing_comes_from_outside(open_page, server):
    page = open_page(
        SMALL, viewport={"width": 390, "height": 800}, color_scheme="dark", bypass_csp=False
    )
    assert not page.tab.is_visible("#f-width")  # the settings are folded
    bar = page.tab.evaluate("document.getElementById('start').getBoundingClientRect().bottom")
    assert bar < 400
    page.prepared()
    page.tab.select_option("#pace", "fast")
    page.tab.focus("#start")
    page.tab.keyboard.press("Enter")  # by keyboard
    page.state("finished")
    page.tab.evaluate("window.scrollTo(0, 2000)")
    page.tab.wait_for_timeout(200)
    top, bottom = page.tab.evaluate(
        "(e => [e.top, e.bottom])(document.getElementById('start').getBoundingClientRect())"
    )
    assert 0 <= top < bottom < 120  # the bar has stayed
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.tab.evaluate("document.documentElement.dataset.theme") == "dark"
    page.tab.click("#theme")
    assert page.tab.evaluate("document.documentElement.dataset.theme") == "light"
    foreign = [url for url in page.requests if not url.startswith((server.base, "data:", "blob:"))]
    assert foreign == []
    unnamed = (
        "[...document.querySelectorAll('input, select, button')].filter(e => !(e.labels?.length || "
        "e.getAttribute('aria-label') || e.textContent.trim())).map(e => e.outerHTML)"
    )
    assert page.tab.evaluate(unnamed) == []  # every control says what it is
    assert page.troubles() == []


FOCUSED = "document.activeElement.id"
FAST = (
    "(e => { e.value = 'fast'; e.dispatchEvent(new Event('change', {bubbles: true})); "
    "})(document.getElementById('pace'))"
)
OUTLINE = (
    "(e => [e.outlineStyle, parseFloat(e.outlineWidth)])(getComputedStyle(document.activeElement))"
)


def tab_to(page, wanted: str, most: int = 60) -> None:
    """Presses Tab until the focus is on the element of that id, and looks whether one sees it."""
    for _ in range(most):
        page.tab.keyboard.press("Tab")
        if page.tab.evaluate(FOCUSED) == wanted:
            style, width = page.tab.evaluate(OUTLINE)
            assert style == "solid"
            assert width >= 2
            return
    raise AssertionError(f"Tab does not reach {wanted}")


def test_a_run_by_keyboard_alone(open_page):
    page = open_page(SMALL)
    tab_to(page, "f-seed")  # the settings come first, then the run
    page.tab.keyboard.press("Control+A")
    page.tab.keyboard.type("8")
    page.begins_anew(lambda: tab_to(page, "start"))
    assert "seed=8" in page.tab.url
    page.since_fresh("t.prepared")
    page.tab.keyboard.press("Enter")
    page.since_fresh(MOVED)
    tab_to(page, "pause", 1)
    page.tab.keyboard.press("Space")
    page.state("paused")
    page.tab.evaluate(FAST)  # the rest need not be watched; the focus stays where it is
    page.tab.keyboard.press("Space")
    page.state("finished")
    assert page.tab.evaluate(FOCUSED) == "start"  # not lost with the button that was switched off
    tab_to(page, "reset", 1)
    tab_to(page, "compare", 1)
    tab_to(page, "pace", 1)
    page.tab.keyboard.press("Tab")
    assert page.tab.evaluate("document.activeElement.textContent") == "What do these numbers mean?"
    page.tab.keyboard.press("Enter")
    assert page.tab.is_visible("#dial-rule")
    page.tab.keyboard.press("Tab")  # the legend's first entry
    pressed = "document.activeElement.getAttribute('aria-pressed')"
    assert page.tab.evaluate(pressed) == "true"
    page.tab.keyboard.press("Space")
    assert page.tab.evaluate(pressed) == "false"
    hidden = f"{FIGURES}.flatMap(m => m.renderers).filter(r => !r.visible).length"
    assert page.tab.evaluate(hidden) >= 2  # in every panel that has it


def test_the_page_says_when_its_lab_has_ended_and_when_another_is_there(open_page, own_server):
    page = open_page(SMALL, own_server)
    page.prepared()
    before = curve(page, "linearised")
    port = int(urlsplit(own_server.address).port)
    children = own_server.workers()
    assert children
    assert own_server.end() == 0  # Ctrl-C
    page.wait("document.getElementById('lost').dataset.kind === 'ended'", 15)
    assert not any(psutil.pid_exists(pid) for pid in children)  # it ends everything
    assert "The lab has ended" in page.tab.inner_text("#lost")
    assert page.tab.inner_text("#state") == "ended"
    for name in ("start", "pause", "reset", "pace", "compare", "f-width", "f-data"):
        assert page.tab.is_disabled(f"#{name}")
    assert curve(page, "linearised") == before  # what is drawn stays
    page.tab.click("#take-table")
    page.wait("document.getElementById('taken').textContent.includes('has ended')")
    state = page.tab.inner_text("#lost-link")
    other = type(own_server)("--port", str(port))  # a new one at the same port, with another token
    try:
        page.wait("document.getElementById('lost').dataset.kind === 'anew'", 15)
        assert "new token" in page.tab.inner_text("#lost")
        again = open_page(state.removeprefix("&"), other)
        assert again.trouble() == ""
        assert again.tab.inner_text("#command") == page.tab.inner_text("#command")
    finally:
        other.end()
