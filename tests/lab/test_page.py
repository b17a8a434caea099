"""The lab in a real browser: curves that move, pause, reset, and what else a tab can do."""

SMALL = (
    "data=sphere-sines&samples=12&features=6&width=32&dynamics=descent&rate=0.5&steps=2000&seed=3"
)


def test_curves_move_pause_and_reset(open_page):
    page = open_page(SMALL)
    page.tab.select_option("#pace", "slow")
    page.tab.click("#start")
    page.wait("window.lab.told.filter(t => t.drawn && t.step > 0).length >= 2")
    first = page.curve("loss")
    page.wait("window.lab.told.filter(t => t.drawn && t.step > 0).length >= 4")
    second = page.curve("loss")
    assert len(second) > len(first) > 1
    assert second[: len(first)] == first  # it grows, and what was drawn stays
    assert second[-1] < second[0]
    page.tab.click("#pause")
    page.state("paused")
    page.tab.wait_for_timeout(400)
    still = page.curve("loss")
    page.tab.wait_for_timeout(900)  # three records at this pace
    assert page.curve("loss") == still
    page.tab.click("#pause")
    page.wait(f"window.lab.told.some(t => t.drawn && t.step > {10 * len(still)})")
    assert len(page.curve("loss")) > len(still)
    page.tab.click("#reset")
    page.state("ready")
    page.wait("Bokeh.documents.flatMap(d => [...d.all_models]).every(m => m.type !== 'Figure')")
    assert page.said == [line for line in page.said if line[0] not in ("error", "warning")]
