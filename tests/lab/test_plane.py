"""A phase plane in the lab: saved points as a map to click on, without training; the plane is made
up, so that its numbers are known.
"""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from bokeh.document import Document

from wideflow.lab import plane
from wideflow.lab.links import place
from wideflow.lab.messages import Figure, State
from wideflow.lab.tab import Tab
from wideflow.lab.uploads import Uploads
from wideflow.phase.answer import answer
from wideflow.phase.axes import Axis
from wideflow.phase.measurements import measurements_of
from wideflow.phase.network import Network, Training
from wideflow.phase.phase import Phase
from wideflow.phase.saved import read_plane

RICHNESS, WIDTHS, LEVELS, FOLDS = (0.01, 0.1, 1.0, 10.0), (16, 64), (0.5, 0.2, 0.1), 3
CHANGE = {0.01: 0.01, 0.1: 0.08, 1.0: 0.3, 10.0: 2.0}  # by richness: lazy, lazy, between, rich
ERROR = {0.01: 0.4, 0.1: 0.3, 1.0: 0.2, 10.0: 0.5}


def made_up() -> Phase:
    """Error and kernel change are the tables above, times what makes the level 0.2 the best one;
    wider is better by a tenth.
    """
    axes = (Axis("richness", RICHNESS), Axis("width", WIDTHS))
    done = [((i, j), fold) for i in range(4) for j in range(2) for fold in range(FOLDS)]
    rows = [(RICHNESS[i], WIDTHS[j], fold) for (i, j), fold in done]
    by_level = np.array([1.3, 1.0, 1.1])
    noise = np.random.default_rng(0).normal(1.0, 0.02, size=(len(rows), 1))
    error = (
        np.array([[ERROR[r] * (1.1 if w == 16 else 1.0)] for r, w, _ in rows]) * by_level * noise
    )
    change = np.array([[CHANGE[r]] for r, _, _ in rows]) * np.array([0.5, 1.0, 1.5])
    both = lambda values: (("run", "level"), values)
    table = xr.Dataset(
        {
            "validation": both(error),
            "test": both(1.05 * error),
            "kernel_change": both(change),
            "linearisation_gap": both(2 * change),
            "movement": both(change),
            "time": both(0 * change + 1),
            "final_loss": ("run", np.full(len(rows), 0.1)),
            "train_rows": ("run", np.full(len(rows), 40)),
            "run_status": ("run", ["finished"] * len(rows)),
        },
        {
            "level": list(LEVELS),
            "fold": ("run", [f for _, _, f in rows]),
            "richness": ("run", [r for r, _, _ in rows]),
            "width": ("run", [w for _, w, _ in rows]),
        },
    )
    settings = (
        vars(Network())
        | vars(Training())
        | {"levels": LEVELS, "samples": 40, "folds": FOLDS, "data": "x"}
    )
    places, measured = measurements_of(table, axes, done, LEVELS, FOLDS)
    lazy = {name: np.full((FOLDS, len(LEVELS)), 0.35) for name in ("validation", "test")}
    limits = xr.Dataset(
        {n: (("fold", "level"), v) for n, v in lazy.items()}, {"level": list(LEVELS)}
    )
    rich = (limits + 0.1).assign_attrs(richness=10.0, particles=512)
    verdict = answer(axes, places, measured, lazy, FOLDS, rich)
    return Phase(
        "made up",
        axes,
        places,
        settings,
        table,
        limits,
        rich,
        measured,
        verdict,
        "share of the variance",
        FOLDS,
        "all 24 runs were used",
        done,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("plane")
    made_up().write(out)
    return out


@pytest.fixture
def uploads(folder):
    made = Uploads(folder)
    yield made
    made.end()


def number_of(richness: float, width: int) -> int:
    return read_places().index((RICHNESS.index(richness), WIDTHS.index(width)))


def read_places() -> list:
    return [(i, j) for i in range(4) for j in range(2)]


def test_a_plane_that_was_written_is_read_as_it_was(folder):
    written, read = made_up(), read_plane(folder)
    assert read.sentence == written.sentence
    assert read.recommended == written.recommended
    xr.testing.assert_identical(read.lazy, written.lazy)
    xr.testing.assert_identical(read.rich, written.rich)
    for name in ("validation", "test", "kernel_change"):
        np.testing.assert_array_equal(getattr(read.measured, name), getattr(written.measured, name))
        np.testing.assert_array_equal(read.table[name], written.table[name])


def test_a_folder_without_a_plane_and_an_older_one_are_refused(tmp_path):
    with pytest.raises(ValueError, match="`folder` holds no phase"):
        read_plane(tmp_path)
    xr.Dataset({"validation": ("run", [1.0])}).to_netcdf(tmp_path / "phase.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match="older version"):
        read_plane(tmp_path)


@pytest.mark.parametrize(
    ("richness", "width", "verdict"),
    [(0.01, 64, "lazy"), (0.1, 16, "lazy"), (1.0, 64, "between"), (10.0, 16, "rich")],
)
def test_the_dial_shows_the_kernel_change_where_the_error_is_best(folder, richness, width, verdict):
    at = number_of(richness, width)
    table = plane.run(plane.Settings(str(folder), at), None, None)
    assert table.sizes["run"] == FOLDS
    told = plane.dial(table)
    assert told["richness"] == told["kernel_change"] == pytest.approx(CHANGE[richness])
    assert told["linearisation_gap"] == pytest.approx(2 * CHANGE[richness])
    assert told["verdict"] == verdict


def test_the_figure_marks_the_point_and_draws_its_runs(folder):
    at = number_of(1.0, 16)
    spec = plane.live(plane.run(plane.Settings(str(folder), at), None, None))
    assert [panel.title for panel in spec.panels[:2]] == list(plane.MAPS.values())
    for panel in spec.panels[:2]:
        chosen = panel.marks[-1]
        assert (list(chosen.x), list(chosen.y)) == ([1.0], [16])
    errors = spec.panels[2].marks
    assert len(errors) == 2 * FOLDS
    written = made_up().table.isel(run=slice(FOLDS * at, FOLDS * at + 1))
    np.testing.assert_allclose(errors[0].y, written["validation"].values[0])
    assert "richness 1, width 16: between" in spec.caption.lower()


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (0.9, 60.0, (1.0, 64)),
        (0.02, 17.0, (0.01, 16)),
        (40.0, 1000.0, (10.0, 64)),
        (0.4, 16.0, (1.0, 16)),
    ],
)
def test_a_click_chooses_the_nearest_point_in_the_axes_own_scale(folder, x, y, expected):
    # 0.4 is nearer to 0.1 than to 1 on a linear axis, and nearer to 1 on a logarithmic one
    assert plane.nearest(read_plane(folder), x, y) == number_of(*expected)


def test_addresses_of_points(uploads):
    first = place({"scene": "plane"}, uploads)
    assert first.choices["point"] == read_plane(uploads.plane).answer.best == number_of(1.0, 64)
    there = place({"scene": "plane", "point": "3"}, uploads)
    assert "point=3" in there.link()
    assert there.changes == {"point": 3, "folder": str(uploads.plane)}
    assert there.command() == f"wideflow lab {uploads.plane}"
    assert "PhaseRegressor(width=64, richness=0.1" in there.lines()
    assert "loss=0.2" in there.lines()
    with pytest.raises(ValueError, match="`point` must lie in"):
        place({"scene": "plane", "point": "8"}, uploads)
    with pytest.raises(ValueError, match="`point` must be a whole number"):
        place({"scene": "plane", "point": "x"}, uploads)
    without = Uploads()
    with pytest.raises(ValueError, match="wideflow lab FOLDER"):
        place({"scene": "plane"}, without)
    without.end()


def test_a_tab_draws_what_is_clicked_on_at_once(uploads, folder):
    from .test_tab import Idlers

    tab = Tab("code", Document(), place({"scene": "plane"}, uploads), uploads, Idlers())
    tab.receive(json.dumps({"do": "choose", "place": {"scene": "plane", "point": "0"}}))
    (worker,) = tab.workers.given
    assert not worker.jobs[0].held  # there is nothing to start
    table = plane.run(plane.Settings(str(folder), 0), None, None)
    tab.heard(1, Figure(plane.live(table), plane.dial(table), float("nan"), 0))
    tab.heard(1, State("finished", "finished"))
    before = list(tab.drawn)
    tab.tapped(SimpleNamespace(x=9.0, y=20.0))
    assert json.loads(tab.talk.message)["point"] == number_of(10.0, 16)
    assert worker.jobs[1].changes["point"] == number_of(10.0, 16)
    table = plane.run(plane.Settings(str(folder), number_of(10.0, 16)), None, None)
    tab.heard(2, Figure(plane.live(table), plane.dial(table), float("nan"), 0))
    assert tab.drawn == before  # other numbers in the same plots: nothing jumps
    assert json.loads(tab.talk.message)["dial"]["verdict"] == "rich"
