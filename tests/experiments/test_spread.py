"""Bars and bands over repeats: the sample standard deviation, and nothing where there is one
repeat.
"""

import math

import numpy as np
import pytest
import xarray as xr

from wideflow.experiments.spread import deviation, standard_error
from wideflow.papers.chen2022.experiments import figure2
from wideflow.papers.chizat2019.experiments import laziness
from wideflow.report import interactive, static


def test_two_repeats_lie_their_difference_over_root_two_apart():
    """The sum of squares is (a - b)^2 / 2, over n - 1 = 1."""
    table = xr.DataArray([[1.0, 4.0], [2.0, 2.5]], dims=("width", "seed"))
    assert deviation(table).values == pytest.approx([3 / math.sqrt(2), 0.5 / math.sqrt(2)])
    assert standard_error(table).values == pytest.approx([1.5, 0.25])


def test_one_repeat_tells_no_spread():
    table = xr.Dataset({"risk": (("width", "draw"), [[1.0], [2.0]])})
    assert np.isnan(deviation(table, "draw")["risk"].values).all()
    assert np.isnan(standard_error(table, "draw")["risk"].values).all()


def lazy_table(seeds: int) -> xr.Dataset:
    alpha = np.array([1.0, 10.0, 100.0])
    values = np.outer(1 / alpha, 1 + np.arange(seeds) / 4)
    names = ("linearisation_gap", "distance", "test_risk", "parameter_movement")
    return xr.Dataset(
        {name: (("alpha", "seed"), values) for name in names}
        | {"tangent_risk": ("seed", values[-1])},
        {"alpha": alpha, "seed": np.arange(seeds)},
    )


def test_the_band_of_two_seeds_is_not_too_narrow():
    curve = laziness.draw(lazy_table(2)).panels[0].marks[0]
    assert np.asarray(curve.high) - np.asarray(curve.y) == pytest.approx(
        [0.25 / math.sqrt(2) / a for a in (1, 10, 100)]
    )


def embedded_table(seeds: int) -> xr.Dataset:
    sizes = {"m": 1, "n": 2, "embedding": 2, "seed": seeds, "record": 3}
    fall = 2.0 ** -np.arange(3) * (1 + np.arange(seeds) / 2)[:, None]
    values = np.broadcast_to(fall, tuple(sizes.values()))
    return xr.Dataset(
        {name: (tuple(sizes), values) for name in ("test_risk", "sum_loss")}
        | {
            "time": (
                ("m", "n", "embedding", "record"),
                np.broadcast_to(np.arange(3.0), (1, 2, 2, 3)),
            )
        },
        {"m": [64], "n": [20, 40], "embedding": ["plain", "quadratic"], "seed": np.arange(seeds)},
        {"loss": "half mean", "literal": 1, "steps_of_one": 10, "figure": "chen2022, Figure 2"},
    )


def test_bars_of_two_seeds_are_not_too_short():
    points = figure2.draw(embedded_table(2)).panels[0].marks[0]
    assert np.asarray(points.errors) == pytest.approx([0.125 / math.sqrt(2)] * 2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("spec", [laziness.draw(lazy_table(1)), figure2.draw(embedded_table(1))])
def test_one_seed_is_drawn_without_bars(spec):
    pixels, _ = static.render(spec)
    assert pixels.startswith(b"\x89PNG")
    assert len(interactive.plots(spec, "one")) == len(spec.panels)
