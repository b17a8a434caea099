"""Slopes and bands against values known beforehand; the table's missing runs."""

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

from wideflow.figures import Line
from wideflow.report.static import build
from wideflow.runs.sweeps.figures import confidence_band, draw, fit_slope, parse_plot


def test_a_power_law_gives_its_exponent():
    x = np.array([1.0, 10.0, 100.0])
    slope = fit_slope(x, 3 * x**-0.5)
    assert_allclose([slope.exponent, slope.constant], [-0.5, 3.0], rtol=1e-12)
    assert slope.error < 1e-12
    assert fit_slope(x, np.array([1.0, np.nan, np.nan])) is None


def test_the_band_is_students():
    # Mean 2, deviation 1, n = 3: half width t(0.975; 2) / sqrt(3), with t = 4.302652729911275 from
    # the tables.
    mean, low, high = confidence_band(np.array([[1.0, 2.0, 3.0, np.nan]]))
    assert_allclose(
        [mean[0], high[0] - mean[0], mean[0] - low[0]],
        [2.0, *[4.302652729911275 / np.sqrt(3)] * 2],
        rtol=1e-9,
    )


def test_a_logarithmic_band_is_about_the_geometric_mean():
    mean, low, high = confidence_band(np.array([[1.0, 100.0]]), logarithmic=True)
    assert_allclose(mean, 10.0, rtol=1e-12)
    assert_allclose(low * high, 100.0, rtol=1e-9)
    assert low[0] > 0


@pytest.fixture
def table():
    """loss = width^-1 for 'a', width^-2 for 'b', the same for both seeds; one run is missing, one
    ends early.
    """
    width, steps = np.array([10.0, 100.0, 1000.0]), np.array([0, 5])
    last = np.stack([width**-1, width**-2], 1)[:, :, None]
    loss = np.stack([np.ones((3, 2, 2)), np.broadcast_to(last, (3, 2, 2))], -1).copy()
    status = np.full((3, 2, 2), "finished").astype(object)
    loss[0, 0, 0], status[0, 0, 0] = np.nan, "missing"
    return xr.Dataset(
        {
            "run_status": (("width", "kind", "seed"), status.astype(str)),
            "loss": (("width", "kind", "seed", "step"), loss),
        },
        {"width": width, "kind": ["a", "b"], "seed": [0, 1], "step": steps},
        {"sweep": "known"},
    )


def test_the_last_values_are_drawn_with_their_slopes(table):
    spec = draw(table, parse_plot(["y=loss x=width", "hue=kind"]))
    (panel,) = spec.panels
    fits = [mark.label for mark in panel.marks if isinstance(mark, Line) and mark.dash == "dashed"]
    assert fits == ["kind = a: slope -1.00 ± 0.00", "kind = b: slope -2.00 ± 0.00"]
    assert (panel.xscale, panel.yscale) == ("log", "log")
    assert "1 of 12 runs is missing" in spec.caption
    build(spec).draw_without_rendering()


def test_the_slopes_error_comes_from_the_runs_scatter(table):
    # Logarithms u = ln 10 (1, 2, 3) twice; seeds lie at c above and below the line: six residuals
    # of size c, spread 4 ln(10)^2, so that the error is sqrt(6 c^2 / 4) / (2 ln 10).
    c = 0.5
    moved = table.copy(deep=True)
    moved["loss"].values[0, 0, 0] = moved["loss"].values[0, 0, 1]
    moved["loss"].values[..., 0, :] *= np.exp(c)
    moved["loss"].values[..., 1, :] *= np.exp(-c)
    (panel,) = draw(moved, {"y": "loss", "x": "width", "hue": "kind"}).panels
    fits = [mark.label for mark in panel.marks if isinstance(mark, Line) and mark.dash == "dashed"]
    error = np.sqrt(6 * c**2 / 4) / (2 * np.log(10))
    assert fits[0] == f"kind = a: slope -1.00 ± {error:.2f}"


def test_over_steps_nothing_is_fitted(table):
    (panel,) = draw(table, {"y": "loss", "x": "step"}).panels
    assert all(mark.dash == "solid" for mark in panel.marks if isinstance(mark, Line))
    (panel,) = draw(table, {"y": "loss", "x": "kind", "at": "0"}).panels
    assert_allclose(panel.marks[0].y, [1.0, 1.0])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["y=loss"], "needs x="),
        (["why=loss"], "takes y=, x=, hue= and at="),
        (["y=los", "x=width"], "`y` of --plot must be 'loss', got 'los'. Did you mean 'loss'?"),
        (["y=loss", "x=depth"], "`x` of --plot"),
        (["y=loss", "x=width", "hue=step"], "`hue` of --plot"),
        (["y=loss", "x=width", "at=end"], "`at` of --plot must be a step, got 'end'"),
    ],
)
def test_wrong_plots_are_explained(table, words, sentence):
    with pytest.raises(ValueError) as caught:
        draw(table, parse_plot(words))
    assert sentence in str(caught.value)
