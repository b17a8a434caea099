"""A small plane from the data to the estimator, found again without a single run."""

import json

import numpy as np
import pytest
import xarray as xr

import wideflow as wf
from wideflow.phase.estimator import PhaseRegressor
from wideflow.phase.images import parity
from wideflow.runs.sweeps import cluster

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(80, 3))
DATA = wf.Dataset(X, np.sin(2 * X[:, 0]) + 0.1 * GENERATOR.normal(size=80), "waves")
AXES = {"richness": (0.01, 10.0, 4), "width": [4, 16]}
ASKED = {
    "runs": 20,
    "loss": (0.8, 0.5, 0.3),
    "steps": 300,
    "samples": 40,
    "folds": 3,
    "particles": 64,
}


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    out = tmp_path_factory.mktemp("plane")
    shown = []
    found = wf.phase(
        DATA, AXES, out=out, workers=2, progress=lambda *told: shown.append(told), **ASKED
    )
    assert shown[-1][0] <= shown[-1][1] == 20
    return found, out


def test_the_plane_keeps_to_its_budget_and_answers(plane):
    found, _ = plane
    assert found.runs == 20
    assert found.stopped == "all 20 runs were used"
    assert found.answer.error.count >= 2
    assert set(found.answer.regimes) <= {"lazy", "between", "rich", "unknown"}
    assert "Best at richness" in str(found)
    assert found.table.sizes["run"] == found.runs
    reached = found.table["validation"].notnull()
    below = found.table["final_loss"] <= found.table["level"]
    np.testing.assert_array_equal(reached, below.transpose("run", "level"))


def test_the_mean_field_limit_stands_beside_the_plane_and_is_none_of_its_runs(plane):
    found, _ = plane
    assert found.rich.attrs == {"richness": 10.0, "particles": 64}
    assert not (found.table["width"] == 64).any()
    label = "mean field at richness 10 (64 particles)"
    assert f"The other end, {label}, " in str(found)
    if np.isfinite(found.rich["validation"]).any():
        marks = [mark for panel in found.figure().panels for mark in panel.marks]
        assert sum(getattr(mark, "label", "") == label for mark in marks) == 2


def test_richer_points_change_their_kernel_more(plane):
    found, _ = plane
    table = found.table.sel(level=0.8).where(found.table["width"] == 16, drop=True)
    change = table["kernel_change"].groupby(table["richness"]).mean()
    assert (np.diff(change) > 0).all()


def test_a_second_call_runs_nothing_and_says_the_same(plane, monkeypatch):
    found, out = plane

    def refuse(*_):
        raise AssertionError("a run was missing")

    monkeypatch.setattr(cluster, "connected", refuse)
    again = wf.phase(DATA, AXES, out=out, workers=2, **ASKED)
    assert str(again) == str(found)
    xr.testing.assert_identical(again.table, found.table)


def test_files_and_what_they_say(plane, tmp_path):
    found, _ = plane
    page, table, numbers, png, pdf = found.write(tmp_path)
    assert found.answer.regime in page.read_text()
    assert json.loads(numbers.read_text())["runs"] == found.runs
    with xr.open_dataset(table) as saved:
        np.testing.assert_array_equal(saved["test"], found.table["test"])
    assert png.stat().st_size > 5000
    assert pdf.stat().st_size > 5000


def test_the_estimator_is_the_recommended_network(plane):
    found, _ = plane
    recommended = found.estimator()
    assert recommended.width == found.answer.setting["width"]
    assert recommended.loss == found.answer.level
    line = 3.0 + 2.0 * X[:, 0]  # what 60 rows are enough for
    fitted = found.estimator(width=32, loss=0.1, steps=4000).fit(X[:60], line[:60])
    assert fitted.loss_ <= 0.1
    assert np.mean((fitted.predict(X[60:]) - line[60:]) ** 2) < 0.5 * np.var(line[60:])


def test_an_estimator_that_cannot_reach_its_loss_warns():
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="above `loss` = 0.01"):
        PhaseRegressor(width=4, steps=5, loss=0.01).fit(X, DATA.targets)


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"runs": 3}, "runs"),
        ({"minutes": -1}, "minutes"),
        ({"samples": 2}, "samples"),
        ({"folds": 1}, "folds"),
        ({"loss": 2.0}, "loss"),
        ({"widht": 3}, "widht"),
        ({"width": 3}, "width"),
        ({"axes": ("share", "width"), "scaling": "ntk"}, "scaling"),
        ({"axes": ("rate", "width"), "dynamics": "flow"}, "dynamics"),
        ({"data": wf.Dataset(X, np.ones((80, 2)))}, "data"),
        ({"data": wf.Dataset(X[:3], X[:3, 0])}, "data"),
    ],
)
def test_what_makes_no_sense_is_named_before_anything_runs(changed, word, tmp_path):
    asked = {"data": DATA, "axes": AXES, "out": tmp_path} | changed
    with pytest.raises(ValueError, match=f"`{word}`|{word!r}"):
        wf.phase(**asked)
    assert not list(tmp_path.iterdir())


def test_parity_of_digits():
    images = wf.Dataset(np.eye(3), np.eye(10)[[0, 7, 4]])
    np.testing.assert_array_equal(parity(images).targets, [1.0, -1.0, 1.0])
    with pytest.raises(ValueError, match="`images`"):
        parity(wf.Dataset(np.eye(3), np.ones(3)))
