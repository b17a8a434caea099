"""Tours to their end in a real browser, at once in tabs of their own: two of them in their smoke
size, and with `-m slow` all as a user sees them.
"""

import numpy as np
import pytest

from wideflow.lab.tours import TOURS

DATA = """([title, name]) => {
  const plots = Bokeh.documents.flatMap((doc) => doc.get_model_by_name("grid").children);
  const plot = plots.find((m) => m.title.text === title);
  const data = plot.renderers.find((r) => r.tags.includes(`lab/${name}`)).data_source.data;
  return [[...data.true_x], [...data.true_y]];
}"""
EVENT = """(title) => {
  const plots = Bokeh.documents.flatMap((doc) => doc.get_model_by_name("grid").children);
  const plot = plots.find((m) => m.title.text === title);
  return plot.renderers.filter((m) => m.glyph.type === "VSpan").map((m) => m.data_source.data.x[0]);
}"""
LOOKED_AT = """() => Bokeh.documents.flatMap((doc) => [...doc.all_models])
  .filter((m) => m.type === "Figure" && m.css_classes.includes("looked-at")).map((m) => m.title.text)"""

FRAMED = """() => {
  const figures = [], seek = (root) => { for (const e of root.querySelectorAll("*")) {
    if (e.classList.contains("bk-Figure") && getComputedStyle(e).outlineStyle === "solid") figures.push(e);
    if (e.shadowRoot) seek(e.shadowRoot);
  } };
  seek(document);
  return figures.length;
}"""


def data(page, title, name) -> tuple[np.ndarray, np.ndarray]:
    """A curve as the browser holds it."""
    return tuple(np.array(values, float) for values in page.tab.evaluate(DATA, [title, name]))


def crossing(page, title, below, than) -> float:
    """The first place of the curve `below` at which `than` of its heights holds."""
    x, y = data(page, title, below)
    return float(x[np.flatnonzero(than(y))[0]])


def li2020(page) -> float:
    x, y = data(page, "Loss", "loss")  # in units of the floor of degree two
    time = crossing(page, "Loss", "loss", lambda y: y <= 0.5)
    waiting = y[(x > 0.2 * time) & (x < 0.4 * time)]
    assert np.all((waiting > 0.74) & (waiting < 1.35))
    assert y[-1] < 0.1
    return time


def ren2023(page) -> float:
    x, y = data(page, "The learnt function", "network")
    assert np.max(np.abs(y - np.maximum(1 - x, 0))) < 0.1
    start = data(page, "The learnt function", "start")[1]
    assert np.ptp(start) < 0.1
    return page.tab.evaluate(EVENT, "Loss")[0]


def chen2022(page) -> float:
    x, error = data(page, "Test error", "ours")
    (_, fit), (_, lazy_fit), (_, lazy_error) = (
        data(page, *where)
        for where in (("Training error", "ours"), ("Training error", "NTK"), ("Test error", "NTK"))
    )
    moved, still = (data(page, "Feature movement", name)[1] for name in ("ours", "NTK"))
    assert moved[-1] > 10 * still[-1]
    for now in range(
        1, len(x)
    ):  # the first record at which NTK's test error is twice that of ours at an equal fit
        then = np.flatnonzero(fit[: now + 1] <= lazy_fit[now])
        if len(then) and error[then[0]] <= lazy_error[now] / 2 and moved[now] >= 10 * still[now]:
            return float(x[now])
    raise AssertionError("the features never paid")


def caron2023(page) -> float:
    removed, rich = data(page, "Risk after pruning", "γ=0, α=.4")
    lazy = data(page, "Risk after pruning", "γ=1")[1]
    most = int(np.argmin(np.abs(removed - 80)))
    assert rich[most] < 1.5 * rich[0]
    assert lazy[most] > 10 * lazy[0]
    return page.tab.evaluate(EVENT, "Training risk")[0]


def allenzhu2018(page) -> float:
    best = data(page, "Test error", "two layers")[1].min()
    return crossing(page, "Test error", "three layers", lambda y: y <= best / 2)


def saad1995(page) -> float:
    (x, y), (ahead, limit) = (
        data(page, "Generalisation error", name) for name in ("network", "equations")
    )
    assert np.all(x == ahead)
    early = (x > 10) & (x < 30)
    assert np.all(
        np.abs(np.log(y[early] / limit[early])) < 0.3
    )  # the dashed line is where the network goes
    return page.tab.evaluate(EVENT, "Generalisation error")[0]


SEEN = {
    "saad1995": saad1995,
    "li2020": li2020,
    "ren2023": ren2023,
    "chen2022": chen2022,
    "caron2023": caron2023,
    "allenzhu2018": allenzhu2018,
}


@pytest.mark.slow
def test_every_tour(open_page, own_server):
    watch(TOURS, open_page, own_server)


def test_tours_at_once(open_page, server):
    watch(("caron2023", "chen2022"), open_page, server)


def watch(papers, open_page, server) -> None:
    """Opens the papers' tours in a tab each, starts all of them, and looks at each one's end."""
    pages = {paper: open_page(f"scene={TOURS[paper].experiment}", server) for paper in papers}
    for page in pages.values():
        page.tab.select_option("#pace", "fast")
        page.tab.click("#start")
    for paper, page in pages.items():
        tour = TOURS[paper]
        page.state("finished")
        assert page.trouble() == ""
        table = page.table()
        time = SEEN[paper](page)  # in the plots' data
        assert time == pytest.approx(
            tour.steps[2 if paper in ("li2020", "saad1995") else -1].moment(table).time
        )
        for number, step in enumerate(tour.steps):  # on the cards
            assert page.tab.inner_text("#step-title") == step.title
            assert page.tab.evaluate(LOOKED_AT) == [step.look]
            assert page.tab.evaluate(FRAMED) == 1  # and no frame of an earlier step is left
            if step.moment is None:
                assert not page.tab.is_visible("#step-moment")
            else:
                assert page.tab.inner_text("#step-moment") == step.moment(table).sentence
            if number + 1 < len(tour.steps):
                page.tab.click("#next")
        assert page.tab.is_disabled("#next")
        assert page.troubles() == []
