"""What the experiments of chen2022 share: compressed descent is the literal one, tables join, fits
are exact on exact data.
"""

import jax
import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.papers.chen2022.experiments.common import (
    caption,
    descend,
    last,
    recording,
    records_of,
    slope,
    stack,
)
from wideflow.papers.chen2022.experiments.scalings import networks


@pytest.fixture(scope="module")
def runs():
    data = [wf.data.random_labels(jax.random.key(s), samples=6, features=8) for s in range(2)]
    nets = [
        wf.Shallow.init(
            jax.random.key(s),
            features=8,
            width=30,
            scaling=wf.scalings.MeanField(),
            activation="tanh",
        )
        for s in range(2)
    ]
    options = {"total_time": 5.0, "record": [wf.observables.SumLoss()], "records": 5}
    literal = descend(nets, data, fraction=0.1, literal=True, **options)
    compressed = descend(nets, data, fraction=0.05, literal=False, **options)
    return data, literal, compressed


def test_compressed_and_literal_runs_end_at_the_same_loss(runs):
    _, literal, compressed = runs
    tables = [records_of(run, 6) for run in (literal, compressed)]
    assert float(tables[0].time[-1]) == pytest.approx(5.0)  # 30 steps of 1 on the mean of 6
    assert float(tables[1].time[-1]) == pytest.approx(5.0, rel=0.05)
    assert_allclose(last(tables[0].sum_loss), last(tables[1].sum_loss), rtol=0.1)


def test_the_mean_is_descended_and_said(runs):
    assert runs[1].table.attrs["loss"].startswith("half mean")


def test_runs_of_different_lengths_join(runs):
    tables = {
        name: records_of(run, 6)
        for name, run in zip(("literal", "compressed"), runs[1:], strict=True)
    }
    joined = stack(tables, "kind")
    for name, table in tables.items():
        assert_allclose(last(joined.sum_loss).sel(kind=name), table.sum_loss.isel(record=-1))


def test_recording_starts_at_zero_and_ends_at_the_end():
    grid = recording(1000, 10)
    assert (grid[0], grid[-1]) == (0, 1000)
    assert np.all(np.diff(grid) > 0)


def test_slope_of_a_line():
    fitted, explained = slope([0.0, 1.0, 2.0, np.nan], [1.0, -1.0, -3.0, 5.0])
    assert fitted == pytest.approx(-2.0)
    assert explained == pytest.approx(1.0)


def test_the_scalings_share_their_draws():
    ours, older = (networks(jax.random.key(0), name, 5, 12, 1)[0] for name in ("ours", "MF"))
    assert_allclose(ours.hidden, older.hidden)
    assert_allclose(ours.embedding.weights, older.embedding.weights)
    lazy = networks(jax.random.key(0), "NTK", 5, 12, 1)[0]
    assert_allclose(lazy.outputs(np.random.default_rng(0).normal(size=(7, 5))), 0.0, atol=1e-14)


def test_last_of_an_empty_run_is_missing():
    assert np.isnan(last(xr.DataArray([np.nan, np.nan], dims="record")))


def test_a_picture_says_what_was_run():
    attrs = {"loss": "half mean", "samples": 100, "features": 20, "figure": "chen2022, Figure 4"}
    attrs |= {"literal": 0, "fraction": 0.2, "careful_fraction": 0.02, "steps_of_one": 50_000}
    text = caption(xr.Dataset(coords={"seed": [0, 1]}, attrs=attrs))
    assert text == (
        "half mean. n = 100, d = 20; steps of 0.2/λ_max(K⁰) (0.02/λ_max for MF); mean over 2 "
        "seeds. Compare chen2022, Figure 4."
    )
    whole = caption(xr.Dataset(coords={"seed": [0]}, attrs=attrs | {"literal": 1}))
    assert "; 50000 steps of 1; one seed." in whole
