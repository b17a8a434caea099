"""A run that diverges is called so, and a rate beyond the edge of stability is warned of before the
first step.
"""

import dataclasses

import jax
import numpy as np
import pytest
import xarray as xr

import wideflow as wf
from wideflow.experiments.training import EXPERIMENT, Settings, build
from wideflow.lab.dialling import dial
from wideflow.lab.health import diverged, ending, largest_rate, warning
from wideflow.training.session import Session

SMALL = Settings(
    data="wave-1d",
    samples=8,
    width=12,
    activation="tanh",
    record=("kernel_change", "linearisation_gap", "kernel_spectrum"),
    records=4,
    steps=40,
    rate=0.1,
)


def run(settings):
    return EXPERIMENT.run(settings, jax.random.key(5), Session())


@pytest.fixture(scope="module")
def edge():
    r"""$2/\lambda_{\max}$ of the Jacobian's own Gram matrix, by autodiff."""
    networks, data, _ = build(SMALL, jax.random.key(5))
    weights = lambda w: wf.Shallow(w.T, networks[0].output, networks[0].scaling, "tanh").outputs(
        data.inputs
    )
    with jax.enable_x64(True):
        rows = np.asarray(jax.jacobian(weights)(networks[0].weights)).reshape(len(data), -1)
    return 2 / np.linalg.eigvalsh(rows @ rows.T)[-1]


@pytest.mark.parametrize(("loss", "factor"), [("half-sum-squares", 1.0), ("mean-squares", 8 / 2)])
def test_the_largest_rate_is_that_of_the_loss(edge, loss, factor):
    settings = dataclasses.replace(SMALL, loss=loss)
    assert largest_rate(run(settings), settings) == pytest.approx(factor * edge, rel=1e-9)


def test_a_run_within_the_edge_is_not_warned_of():
    table = run(SMALL)
    assert warning(table, SMALL) == ""
    assert not diverged(table)
    assert ending(table) == "finished"
    assert largest_rate(table, dataclasses.replace(SMALL, dynamics="adam")) is None


@pytest.mark.filterwarnings("ignore:descent finished above its start")
def test_a_rate_beyond_the_edge_is_told_before_the_first_step_and_its_end_is_no_regime(edge):
    settings = dataclasses.replace(SMALL, rate=500 * edge)
    table = run(settings)
    start = table.isel(step=slice(0, 1))
    assert f"above 2/λ_max = {edge:.3g}" in warning(start, settings)
    assert f"below {edge:.2g}" in warning(start, settings)
    assert float(table.loss[-1]) > float(table.loss[0])  # tanh is bounded: large, but finite
    assert diverged(table)
    assert ending(table) == dial(table)["verdict"] == "diverged"
    assert "has diverged" in warning(table, settings)
    broken = table.assign(loss=table.loss.where(table.step < table.step[-1]))
    assert "no longer a finite number" in warning(broken, settings)


def test_of_several_networks_each_is_compared_with_its_own_start():
    losses = [
        [2.0, 0.5, 0.1],
        [1.0, 0.9, 0.8],
    ]  # the second ends above the first's end and below its own start
    table = lambda values: xr.Dataset({"loss": (("setting", "step"), values)}, {"step": [0, 1, 2]})
    assert not diverged(table(losses))
    assert diverged(table([losses[0], [1.0, 0.9, 1.5]]))
    assert "1.5 times" in warning(table([losses[0], [1.0, 0.9, 1.5]]), None)
