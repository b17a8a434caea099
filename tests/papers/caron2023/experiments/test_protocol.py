"""The protocol of the paper's experiments: splits, rates, transfer networks, and what the claims
say of made-up tables.
"""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.papers.caron2023.experiments import members, regression, transfer
from wideflow.training.session import Session

KEY = jax.random.key(0)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "sizes", "features"),
    [
        ("concrete", (412, 206, 412), 8),
        ("energy", (307, 154, 307), 8),
        ("airfoil", (601, 301, 601), 5),
        ("plant", (3827, 1914, 3827), 4),
    ],
)
def test_splits_have_the_sizes_of_the_released_code(name, sizes, features, data_folder):
    parts = regression.load(name, 0)
    held = len(parts["transfer"]) + len(parts["transfer_test"])
    assert (len(parts["train"]), len(parts["test"]), held) == sizes
    assert parts["train"].dimension == features
    assert_allclose(np.mean(np.asarray(parts["train"].inputs), axis=0), 0.0, atol=1e-9)
    assert np.mean(np.asarray(parts["train"].targets) ** 2) == pytest.approx(
        1.0
    )  # population deviation


def test_a_step_on_the_mean_of_squares_is_a_shorter_step_on_the_half_sum():
    # rate lr on the mean over n K entries is rate 2 lr/(n K) on the half sum of squares.
    rng = np.random.default_rng(0)
    data = wf.Dataset(rng.normal(size=(9, 4)), rng.normal(size=(9, 3)))
    net = wf.Shallow.init(KEY, features=4, width=30, outputs=3, scaling=wf.scalings.Zipf(0.5, 0.7))
    mean = wf.train(net, data, wf.GradientDescent(0.7), steps=50, loss=wf.losses.MeanSquares())
    half = wf.train(net, data, wf.GradientDescent(2 * 0.7 / 27), steps=50)
    assert_allclose(mean.model.weights, half.model.weights, rtol=1e-12)


def test_members_of_one_program_are_the_single_runs():
    data = wf.data.sphere_sines(KEY, 8, 5, noise=0.1)
    settings = types.SimpleNamespace(
        width=40,
        gammas=(1.0, 0.5),
        alphas=(0.7, 0.7),
        convention="paper",
        shifted=False,
        seeds=2,
        steps=30,
        records=3,
        precision="float64",
    )
    table, nets = members.train_members(
        settings,
        KEY,
        data,
        None,
        wf.GradientDescent(1.0),
        loss=wf.losses.HalfSumSquares(),
        record=[wf.observables.Risk(), wf.observables.WeightMovement()],
        session=Session(),
    )
    assert table["risk"].dims == ("setting", "seed", "step")
    for i, name in enumerate(("γ=1", "γ=.5, α=.7")):
        for seed in range(2):
            single = wf.train(
                members.start(settings, KEY, seed, i, 5),
                data,
                wf.GradientDescent(1.0),
                steps=30,
                record=[wf.observables.WeightMovement()],
            )
            assert_allclose(nets[i][seed].weights, single.model.weights, rtol=1e-10)
            assert isinstance(nets[i][seed].scaling, wf.scalings.Zipf)
            most = float(single.table["weight_movement"][-1].max())
            assert float(table["most_moved"].sel(setting=name)[seed, -1]) == pytest.approx(
                most, rel=1e-10
            )


def test_external_network_by_hand():
    # sizes (2, 1, 0): theta = (w11, w21, b1, v, c); f = v relu(w.x + b1) + c.
    net = transfer.Perceptron(jnp.array([1.0, -2.0, 0.5, 3.0, 0.25]), (2, 1, 0))
    assert_allclose(net.outputs([[2.0, 0.5], [0.0, 2.0]]), [3.0 * 1.5 + 0.25, 0.25])
    drawn = transfer.Perceptron.init(KEY, (50, 64, 64, 0), 4)
    assert drawn.theta.shape == (51 * 64 + 65 * 64 + 65,)
    assert float(jnp.max(jnp.abs(drawn.theta[: 51 * 64]))) == pytest.approx(
        0.5, abs=0.01
    )  # 1/sqrt(4)
    assert float(jnp.max(jnp.abs(drawn.theta[51 * 64 :]))) == pytest.approx(1 / 8, abs=0.01)


def test_padding_with_zeros_changes_no_transfer():
    # Four used inputs in six columns: the same network trained on the four columns alone.
    rng = np.random.default_rng(1)
    inputs, targets = rng.normal(size=(12, 4)), rng.normal(size=12)
    wide = transfer.Perceptron.init(KEY, (6, 3, 0), 4)
    weights = wide.theta[:18].reshape(6, 3)[:4].ravel()
    small = transfer.Perceptron(jnp.concatenate([weights, wide.theta[18:]]), (4, 3, 0))
    padded = wf.Dataset(np.concatenate([inputs, np.zeros((12, 2))], axis=1), targets)
    runs = [
        wf.train(net, data, wf.GradientDescent(0.1), steps=60, loss=wf.losses.MeanSquares())
        for net, data in ((wide, padded), (small, wf.Dataset(inputs, targets)))
    ]
    assert_allclose(runs[0].table["loss"], runs[1].table["loss"], rtol=1e-10)


@pytest.mark.parametrize(
    ("gamma", "alpha", "text"),
    [(1.0, 0.7, "γ=1"), (0.5, 0.7, "γ=.5, α=.7"), (0.0, 0.4, "γ=0, α=.4")],
)
def test_labels(gamma, alpha, text):
    assert members.label(gamma, alpha) == text


def test_levels_reach_both_ends():
    assert members.levels_of(2000).tolist() == list(range(0, 2001, 100))
    assert members.levels_of(7).tolist()[0] == 0
    assert members.levels_of(7).tolist()[-1] == 7


def test_settings_that_make_no_sense():
    with pytest.raises(ValueError, match="`gammas` and `alphas`"):
        regression.Settings(gammas=(1.0,))
    with pytest.raises(ValueError, match="`convention` must be"):
        regression.Settings(convention="both")
    with pytest.raises(ValueError, match="`tops`"):
        regression.Settings(width=50)
