"""The lab in a real browser: curves that move, pause, reset, and what else a tab can do."""

import json
import shlex
import time
from urllib.parse import parse_qs, urlsplit

import numpy as np
import psutil
import pytest
import xarray as xr

from wideflow.cli import main
from wideflow.lab.links import START

SMALL = (
    "data=sphere-sines&samples=12&features=6&width=32&dynamics=descent&rate=0.5&steps=400&seed=3"
)
FIGURES = "Bokeh.documents.flatMap(d => [...d.all_models]).filter(m => m.type === 'Figure')"


def drawn(page, count: int) -> None:
    page.wait(f"window.lab.told.filter(t => t.drawn && t.step > 0).length >= {count}")


def test_curves_move_pause_and_reset(open_page):
    page = open_page(SMALL)
    page.tab.select_option("#pace", "slow")
    assert page.tab.is_visible("#empty-press")
    page.tab.click("#start")
    page.wait("document.getElementById('empty-press').hidden")  # what is waited for is said instead
    drawn(page, 2)
    assert not page.tab.is_visible("#empty")
    first = page.curve("Loss")
    drawn(page, 4)
    second = page.curve("Loss")
    assert len(second) > len(first) > 1
    assert second[: len(first)] == first  # it grows, and what was drawn stays
    assert second[-1] < second[0]
    page.tab.click("#pause")
    page.state("paused")
    page.tab.wait_for_timeout(300)
    still = page.curve("Loss")
    page.tab.wait_for_timeout(800)  # three records at this pace
    assert page.curve("Loss") == still
    page.tab.click("#pause")
    page.wait(f"({CURVE_LENGTH})('Loss') > {len(still)}")
    page.tab.click("#reset")
    page.state("ready")
    page.wait(f"{FIGURES}.length === 0")
    assert page.troubles() == []


CURVE_LENGTH = f"(title) => {FIGURES}.find(m => m.title.text === title).renderers[0].data_source.data.true_y.length"


def test_the_panels_dial_and_theorems_tell_what_was_recorded(open_page):
    page = open_page("data=wave-1d&samples=10&noise=0&width=24&scaling=zipf:0.5,0.5&dynamics=flow&time=50&seed=1")  # fmt: skip
    page.tab.select_option("#pace", "fast")
    page.tab.click("#start")
    page.state("finished", seconds=90)
    titles = page.tab.evaluate(f"{FIGURES}.map(m => m.title.text)")
    assert titles == ["Learned function", "Loss", "Kernel gap and drift", "From lazy to rich", "Weight movement per node", "Features of two inputs", "Spectrum of the tangent Gram matrix"]  # fmt: skip
    table = page.table()
    # figures hold the table's numbers, the dashed line is there before and beside the curve
    np.testing.assert_allclose(page.curve("Loss"), table.loss.values)
    np.testing.assert_allclose(page.curve("Loss", 1), table.linearised_loss.values)
    assert table.linearised_loss.values[0] == pytest.approx(table.loss.values[0])
    dial = page.tab.evaluate("window.lab.told.filter(t => t.dial).at(-1).dial")
    change, gap = (float(table[n][-1]) for n in ("kernel_change", "linearisation_gap"))
    assert dial["index"] == pytest.approx(1 / (1 + max(change, gap)))
    assert page.tab.inner_text("#dial-words") in ("lazy", "between lazy and rich", "rich")
    told = page.tab.evaluate(PICTURES)  # for those who do not see them
    assert len(told) == len(titles)
    assert page.tab.inner_text("#where").endswith("time 50")
    assert ["img", "Loss: loss over time"] in told
    page.wait("document.querySelectorAll('#rows tr').length > 10", 90)
    rows = page.tab.inner_text("#rows")
    assert "not applicable" in rows  # and why: every row has its reason
    assert all(cell.strip() for cell in page.tab.eval_on_selector_all("#rows td:last-child", "cells => cells.map(c => c.textContent)"))  # fmt: skip
    assert page.troubles() == []


def test_what_is_taken_home_repeats_the_run(open_page, tmp_path, monkeypatch, capsys):
    page = open_page(SMALL)
    page.tab.select_option("#pace", "fast")
    page.tab.click("#take-table")
    page.wait("document.getElementById('taken').textContent.includes('Press start')")
    page.tab.click("#start")
    page.state("finished")
    table = page.table()
    picture = page.download("#take-figure")
    assert picture.startswith(b"\x89PNG")
    command, lines = page.tab.inner_text("#command"), page.tab.inner_text("#lines")
    assert command.startswith("wideflow run train --size default --seed 3 --set")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(lines, names)
    assert main([*shlex.split(command)[1:], "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["found"] is True  # the shell asks for the very run that the Python lines made
    with xr.open_dataset(tmp_path / told["file"], engine="h5netcdf") as repeated:
        for name in table:
            np.testing.assert_array_equal(repeated[name].values, table[name].values)


def test_a_shared_link_gives_the_same_state(open_page):
    page = open_page()
    page.tab.fill("#f-width", "77")
    page.tab.select_option("#scaling-kind", "zipf")
    page.tab.evaluate("for (const [id, v] of [['gamma', 0.25], ['alpha', 0.35]]) { const e = document.getElementById(id); e.value = v; e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change', {bubbles: true})); }")  # fmt: skip
    page.tab.select_option("#f-dynamics", "descent")
    page.tab.fill("#f-seed", "9")
    page.tab.press("#f-seed", "Tab")
    page.wait("document.getElementById('link').textContent.includes('seed=9')")
    link = page.tab.inner_text("#link")
    assert page.tab.url == link
    asked = parse_qs(urlsplit(link).query)
    assert (asked["width"], asked["scaling"], asked["dynamics"]) == (["77"], ["zipf:0.25,0.35"], ["descent"])  # fmt: skip
    other = open_page(urlsplit(link).query.partition("&")[2])
    state = "JSON.stringify([...new FormData(document.getElementById('choices'))].filter(([n]) => n)) + gamma.value + alpha.value"
    assert other.tab.evaluate(state) == page.tab.evaluate(state)
    for what in ("#command", "#lines"):
        assert other.tab.inner_text(what) == page.tab.inner_text(what)
    for scaling in (
        "zipf:0.333,0.05",
        "mean-field:2",
    ):  # also what the sliders and the list would not give
        odd = open_page(f"scaling={scaling}")
        odd.tab.fill("#f-seed", "4")
        odd.tab.press("#f-seed", "Tab")
        odd.wait("document.getElementById('link').textContent.includes('seed=4')")
        asked = parse_qs(urlsplit(odd.tab.inner_text("#link")).query)
        assert asked["scaling"] == [scaling]
    wrong = open_page("width=-5")
    assert "`width` must lie in" in wrong.trouble()
    assert "starting settings" in wrong.trouble()
    assert wrong.tab.input_value("#f-width") == START["width"]
    tour = open_page("scene=tour-li2020&seed=many")
    assert "`seed` must be a whole number" in tour.trouble()
    assert tour.tab.is_visible("#tour")  # of the same scene


def test_settings_that_change_after_the_start_are_told_apart_from_the_run(open_page):
    page = open_page(SMALL.replace("steps=400", "steps=20"))
    page.tab.click("#start")
    page.state("finished")
    assert not page.tab.is_visible("#stale")
    page.tab.fill("#f-width", "33")
    page.tab.press("#f-width", "Tab")
    page.wait("!document.getElementById('stale').hidden")
    page.tab.fill("#f-width", "32")
    page.tab.press("#f-width", "Tab")
    page.wait("document.getElementById('stale').hidden")  # they are those of the run again
    page.tab.fill("#f-width", "")
    page.tab.press("#f-width", "Tab")
    assert page.trouble() == "Width needs a number from 1 to 8192."
    page.tab.click("#start")
    assert page.trouble().startswith("Width needs a number")
    assert (
        page.tab.inner_text("#state") == "finished"
    )  # nothing was started with a number of the page's own choice


def csv(rows: str) -> dict:
    return {"name": "my table.csv", "mimeType": "text/csv", "buffer": rows.encode()}


def test_a_users_table_and_a_defective_one(open_page):
    page = open_page()
    page.tab.set_input_files("#file", csv("x,y\n1,2\n2,zebra\n3,4\n"))
    page.wait("!document.getElementById('trouble').hidden")
    assert "'zebra' in line 3" in page.trouble()
    grid = np.linspace(-1, 1, 15)
    rows = "\n".join(f"{x},{np.sin(3 * x)},{x**2}" for x in grid)
    page.tab.set_input_files("#file", csv(f"x,wave,bowl\n{rows}\n"))
    page.wait("document.getElementById('f-data').value.startsWith('upload:')")
    assert page.trouble() == ""
    assert page.tab.eval_on_selector_all("#f-target option", "all => all.map(o => o.value)") == ["x", "wave", "bowl"]  # fmt: skip
    page.tab.fill("#f-width", "16")
    page.tab.fill("#f-time", "20")
    page.tab.select_option("#pace", "fast")
    page.tab.click("#start")
    page.state("finished", "failed", seconds=90)
    assert page.trouble() == ""
    table = page.table()
    expected = (grid**2 - np.mean(grid**2)) / np.std(grid**2)  # the target, standardised
    np.testing.assert_allclose(np.sort(table.data_targets.values), np.sort(expected), atol=1e-9)
    assert "--set data=my_table.csv" in page.tab.inner_text("#command")
    too_large = {
        "name": "large.csv",
        "mimeType": "text/csv",
        "buffer": b"a,b\n" + b"1,2\n" * 2_200_000,
    }
    page.tab.set_input_files("#file", too_large)
    page.wait("document.getElementById('trouble').textContent.includes('at most 8 MB')")


def test_two_tabs_and_a_closed_one(open_page, server):
    first, second = open_page(SMALL), open_page(SMALL.replace("seed=3", "seed=4"))
    for page in (first, second):
        page.tab.select_option("#pace", "slow")
        page.tab.click("#start")
    for page in (first, second):
        drawn(page, 2)
    a, b = first.curve("Loss"), second.curve("Loss")
    assert a[0] != b[0]  # each its own run
    deadline = time.monotonic() + 20
    while len(server.workers()) < 3 and time.monotonic() < deadline:
        time.sleep(0.2)
    before = server.workers()
    assert len(before) >= 3  # two that run and the spare
    first.close()
    deadline = time.monotonic() + 15
    while len(server.workers() & before) > len(before) - 1 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert len(server.workers() & before) == len(before) - 1  # the closed tab's process has ended
    length = len(second.curve("Loss"))
    second.wait(f"({CURVE_LENGTH})('Loss') > {length + 2}")  # the other tab goes on


def test_nothing_comes_from_outside_and_it_fits_a_phone(open_page, server):
    page = open_page(SMALL, viewport={"width": 390, "height": 800}, color_scheme="dark", bypass_csp=False)  # fmt: skip
    page.tab.select_option("#pace", "fast")
    page.tab.focus("#start")
    page.tab.keyboard.press("Enter")  # by keyboard
    page.state("finished")
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.tab.evaluate("document.documentElement.dataset.theme") == "dark"
    page.tab.click("#theme")
    assert page.tab.evaluate("document.documentElement.dataset.theme") == "light"
    foreign = [url for url in page.requests if not url.startswith((server.base, "data:", "blob:"))]
    assert foreign == []
    unnamed = "[...document.querySelectorAll('input, select, button')].filter(e => !(e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim())).map(e => e.outerHTML)"
    assert page.tab.evaluate(unnamed) == []  # every control says what it is
    assert page.troubles() == []


FOCUSED = "document.activeElement.id"
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
    page = open_page(SMALL.replace("steps=400", "steps=100"))
    tab_to(page, "f-width")  # the settings come first, then the run
    page.tab.keyboard.press("Control+A")
    page.tab.keyboard.type("24")
    tab_to(page, "start")
    page.tab.keyboard.press("Enter")
    drawn(page, 1)
    assert "width=24" in page.tab.url
    tab_to(page, "pause", 1)
    page.tab.keyboard.press("Space")
    page.state("paused")
    page.tab.keyboard.press("Space")
    page.state("finished")
    assert page.tab.evaluate(FOCUSED) == "start"  # not lost with the button that was switched off
    tab_to(page, "reset", 1)
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
    for _ in range(3):
        page.tab.keyboard.press("Shift+Tab")
    assert page.tab.evaluate(FOCUSED) == "reset"
    page.tab.keyboard.press("Enter")
    page.state("ready")
    assert page.tab.evaluate(FOCUSED) == "start"


PICTURES = """() => {
  const found = [], seek = (root) => { for (const e of root.querySelectorAll("*")) {
    if (e.classList.contains("bk-Figure")) found.push([e.getAttribute("role"), e.getAttribute("aria-label")]);
    if (e.shadowRoot) seek(e.shadowRoot);
  } };
  seek(document);
  return found;
}"""


def test_the_page_says_when_its_lab_has_ended_and_when_another_is_there(open_page, own_server):
    page = open_page(SMALL, own_server)
    page.tab.select_option("#pace", "slow")
    page.tab.click("#start")
    drawn(page, 2)
    before = page.curve("Loss")
    port = int(urlsplit(own_server.address).port)
    assert own_server.end() == 0
    page.wait("document.getElementById('lost').dataset.kind === 'ended'", 15)
    assert "The lab has ended" in page.tab.inner_text("#lost")
    assert page.tab.inner_text("#state") == "ended"
    for name in ("start", "pause", "reset", "pace", "f-width", "f-data"):
        assert page.tab.is_disabled(f"#{name}")
    assert len(page.curve("Loss")) >= len(before)  # what is drawn stays
    page.tab.click("#take-table")
    page.wait("document.getElementById('taken').textContent.includes('has ended')")
    state = page.tab.inner_text("#lost-link")
    other = type(own_server)(port)  # a new one at the same port, with another token
    try:
        page.wait("document.getElementById('lost').dataset.kind === 'anew'", 15)
        assert "new token" in page.tab.inner_text("#lost")
        again = open_page(state.removeprefix("&"), other)
        assert again.trouble() == ""
        assert again.tab.inner_text("#command") == page.tab.inner_text("#command")
    finally:
        other.end()


def test_ctrl_c_ends_everything(own_server):
    deadline = time.monotonic() + 20
    while not own_server.workers() and time.monotonic() < deadline:
        time.sleep(0.1)
    children = own_server.workers()
    assert children
    assert own_server.end() == 0
    time.sleep(0.3)
    assert not any(psutil.pid_exists(pid) for pid in children)
