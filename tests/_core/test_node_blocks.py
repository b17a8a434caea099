"""Blocks of neurons against the plain form, and the choice between both."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow._core.node_products import BLOCK, block_count, cut_blocks, join_blocks
from wideflow.models import shallow
from wideflow.models.base import pullback_by_autodiff

RNG = np.random.default_rng(5)
INPUTS, HIDDEN = RNG.normal(size=(30, 4)), RNG.normal(size=(103, 4))
SMALL = 3_000  # bytes: 12 neurons of 30 samples
OUTPUTS = {"one": RNG.normal(size=103), "many": RNG.normal(size=(3, 103))}


@pytest.fixture
def small_cache(monkeypatch):
    monkeypatch.setattr(shallow, "BLOCK", SMALL)


@pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_blocks_and_their_rest_are_the_transposed_jacobian(small_cache, activation, output):
    net = wf.Shallow(HIDDEN, output, wf.scalings.Zipf(0.3, 0.6), activation)
    features = net.embed(INPUTS)
    assert block_count(features, net.weights, SMALL) == 9  # 24 720 bytes; 103 = 9 x 11 + 4
    outputs, pull = net.pullback(features)
    expected, witness = pullback_by_autodiff(net, features)
    cotangent = jnp.asarray(RNG.normal(size=outputs.shape))
    assert_allclose(outputs, expected, rtol=1e-12, atol=1e-14)
    assert_allclose(pull(cotangent)["weights"], witness(cotangent)["weights"], atol=1e-13)


def test_descent_in_blocks_is_descent(small_cache):
    net = wf.Shallow(HIDDEN, OUTPUTS["one"], activation="tanh")
    data = wf.Dataset(INPUTS, np.sin(INPUTS[:, 0]))
    run = wf.train(net, data, wf.GradientDescent(0.02), steps=20)
    weights, scale = HIDDEN.T.copy(), 1 / np.sqrt(103)
    phi = INPUTS / 2  # 1 / sqrt(D)
    for _ in range(20):
        z = phi @ weights
        residual = scale * np.tanh(z) @ OUTPUTS["one"] - np.sin(INPUTS[:, 0])
        weights -= 0.02 * phi.T @ (np.outer(residual, scale * OUTPUTS["one"]) / np.cosh(z) ** 2)
    assert_allclose(run.model.hidden.T, weights, rtol=1e-11)


def test_what_fits_the_cache_stays_whole():
    with jax.enable_x64(True):
        weights = jnp.zeros((5, 10_000))
        assert block_count(jnp.zeros((100, 5)), weights, BLOCK) == 1  # 8 MB
        assert block_count(jnp.zeros((1000, 5)), weights, BLOCK) == 12  # 80 MB


@pytest.mark.parametrize("count", [1, 4, 5, 13])
def test_blocks_join_to_what_was_cut(count):
    one, rows = np.arange(13.0), RNG.normal(size=(2, 3, 13))
    blocks, rest = cut_blocks(count, jnp.asarray(one), jnp.asarray(rows))
    assert len(blocks) == count
    assert float(jnp.sum(blocks)) == one.sum()  # padded by zeros
    assert_allclose(join_blocks(rest, 13), rows, rtol=1e-6)


def test_no_array_of_all_pairs_is_left_in_the_program(small_cache):
    net = wf.Shallow(HIDDEN, OUTPUTS["one"])
    objective = wf.Dataset(INPUTS, INPUTS[:, 0]).objective(wf.losses.HalfSumSquares(), net)
    program = str(eqx.filter_make_jaxpr(objective.gradient)(net)[0])
    assert "30,103" not in program
    with jax.enable_x64(True):
        whole = str(jax.make_jaxpr(net.respond)(objective.features))
    assert "30,103" in whole  # the same search finds it where it is
