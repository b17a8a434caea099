"""The forms for each platform, and blocks of neurons, against plain NumPy; and the choice between
them.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow._core.activations import relu
from wideflow.models import shallow
from wideflow.models.base import pullback_by_autodiff
from wideflow.models.shallow import BLOCK, block_count, node_gradient, node_sum, pieces

RNG = np.random.default_rng(5)
INPUTS, HIDDEN = RNG.normal(size=(30, 4)), RNG.normal(size=(103, 4))
SMALL = 3_000  # bytes: 12 neurons of 30 samples
OUTPUTS = {"one": RNG.normal(size=103), "many": RNG.normal(size=(3, 103))}

FORMS = np.random.default_rng(3)
FEATURES, VALUES = FORMS.normal(size=(30, 7)), FORMS.normal(size=(30, 40))
COTANGENT, MIXED = FORMS.normal(size=30), FORMS.normal(size=40)
SLOPES = (VALUES > 0).astype(float)
EXPECTED = np.einsum("ik,ij,i,j->kj", FEATURES, SLOPES, COTANGENT, MIXED)


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


def test_no_array_of_all_pairs_is_left_in_the_program(small_cache):
    net = wf.Shallow(HIDDEN, OUTPUTS["one"])
    objective = wf.Dataset(INPUTS, INPUTS[:, 0]).objective(wf.losses.HalfSumSquares(), net)
    program = str(eqx.filter_make_jaxpr(objective.gradient)(net)[0])
    assert "30,103" not in program
    with jax.enable_x64(True):
        whole = str(jax.make_jaxpr(net.respond)(objective.features))
    assert "30,103" in whole  # the same search finds it where it is


def single(*arrays):
    return [jnp.asarray(a, jnp.float32) for a in arrays]


@pytest.mark.parametrize("form", ["mixed_first", "mixed_last", "in_pieces"])
def test_every_form_is_the_same_gradient(form):
    gradient = getattr(shallow, form)(relu(), *single(FEATURES, VALUES, COTANGENT, MIXED))
    assert_allclose(gradient, EXPECTED, atol=2e-6 * np.abs(EXPECTED).max())


def test_platform_is_chosen_by_the_compiler():
    with jax.enable_x64(True):
        arrays = map(jnp.asarray, (FEATURES, VALUES, COTANGENT, MIXED))
        assert_allclose(node_gradient(relu(), *arrays), EXPECTED, rtol=1e-12)
        sums = node_sum(relu(), jnp.asarray(VALUES), jnp.asarray(MIXED))
        assert_allclose(sums, np.maximum(VALUES, 0) @ MIXED, rtol=1e-12)


def test_pieces_add_up_exactly_and_fit_bfloat16():
    values = jnp.asarray(
        FORMS.normal(size=1000) * 10.0 ** FORMS.integers(-20, 20, 1000), jnp.float32
    )
    parts = jax.jit(pieces)(values)
    assert all(part.dtype == jnp.bfloat16 for part in parts)
    total = sum(np.asarray(part, np.float64) for part in parts)
    assert_allclose(total, np.asarray(values, np.float64), rtol=0)
