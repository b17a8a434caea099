"""Every exact map, by training both sides; tanh under Xavier is the negative control."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.models import maps

RNG = np.random.default_rng(1)
N, D_IN, M, STEPS, RATE = 5, 3, 8, 15, 0.2
X, Y = RNG.normal(size=(N, D_IN)), RNG.normal(size=N)
XT = RNG.normal(size=(4, D_IN))
Z, W, C = RNG.normal(size=(M, D_IN)), RNG.normal(size=(M, M)), np.sign(RNG.normal(size=M))


def network(scaling, act="tanh", magnitude=1.0):
    return wf.Shallow(W, magnitude * C, scaling, act, wf.embeddings.RandomFeatures(Z, act))


def path(model, rate, targets=Y):
    """Outputs at the test points and pre-activations after every step."""
    outputs, hidden = [], []

    def seen(snapshot):
        return snapshot.model.respond(snapshot.model.embed(XT))

    def inside(snapshot):
        return snapshot.model.embed(XT) @ snapshot.model.weights

    run = wf.train(
        model,
        wf.Dataset(X, targets),
        wf.GradientDescent(rate),
        steps=STEPS,
        every=1,
        record=[seen, inside],
    )
    outputs, hidden = run.table["seen"].values, run.table["inside"].values
    assert np.ptp(outputs, axis=0).max() > 1e-3  # it moves
    return outputs, hidden


@pytest.mark.parametrize("act", ["tanh", "relu"])
def test_ntk_is_ours_with_large_output_weights(act):
    net = network(wf.scalings.NTK(), act)
    same = maps.ntk_as_mean_field(net, RATE)
    (f, h), (g, k) = path(net, RATE), path(same.model, same.rate)
    assert_allclose(f, g, atol=1e-12)
    assert_allclose(h, k, atol=1e-12)


@pytest.mark.parametrize("act", ["tanh", "relu"])
def test_older_mean_field_is_ours_near_zero(act):
    net = network(wf.scalings.MeanField(hidden=1.0), act)
    same = maps.older_as_mean_field(net, RATE)
    (f, h), (g, k) = path(net, RATE), path(same.model, same.rate)
    assert_allclose(f, g, atol=1e-12)
    assert_allclose(h, k, atol=1e-12)


def test_only_targets_over_magnitude_matter():
    net = network(wf.scalings.MeanField(), magnitude=2.5)
    same = maps.unit_magnitude(net, RATE / 6)
    (f, h), (g, k) = path(net, RATE / 6), path(same.model, same.rate, same.target_factor * Y)
    assert_allclose(f, same.output_factor * g, atol=1e-12)
    assert_allclose(h, k, atol=1e-12)


def test_xavier_is_ours_for_relu():
    net = network(wf.scalings.MeanField(), "relu")
    same = maps.as_xavier(net, RATE)
    (f, h), (g, k) = path(net, RATE), path(same.model, same.rate)
    assert_allclose(f, g, atol=1e-12)
    assert_allclose(k, h / np.sqrt(M), atol=1e-12)


def test_xavier_is_not_ours_for_tanh():
    net = network(wf.scalings.MeanField(), "tanh")
    other = maps.xavier_network(net, RATE).model
    assert np.abs(np.asarray(net.outputs(XT) - other.outputs(XT))).max() > 1e-2
    with pytest.raises(ValueError, match="degree 1"):
        maps.as_xavier(net, RATE)


def test_xavier_of_degree_two_is_off_by_the_stated_power():
    # degree k = 2: f_Xavier = m^((1 - k^2)/2) f_ours at step 0
    net = network(wf.scalings.MeanField(), "square")
    other = maps.xavier_network(net, RATE).model
    assert_allclose(other.outputs(XT), M ** ((1 - 4) / 2) * np.asarray(net.outputs(XT)), rtol=1e-12)


@pytest.mark.parametrize("theta", [-0.5, 0.5, 0.3])
@pytest.mark.parametrize("act", ["tanh", "relu"])
def test_shifted_exponents_train_alike(theta, act):
    base = network(wf.scalings.MeanField(), act)
    ours = maps.abc_network(base, maps.ours_exponents())
    shifted = maps.abc_network(base, maps.ours_exponents().shifted(theta))
    f = path(base, RATE)[0]
    assert_allclose(path(ours, RATE)[0], f, atol=1e-12)
    assert_allclose(path(shifted, RATE)[0], f, atol=1e-12)


def test_maximal_update_is_ours_also_when_deeper():
    key = jax.random.key(0)
    deep = wf.embeddings.DeepRandomFeatures.init(key, D_IN, M, layers=5, activation="tanh")
    base = wf.Shallow(W, C, wf.scalings.MeanField(), "tanh", deep)
    f = path(base, RATE)[0]
    assert_allclose(
        path(maps.abc_network(base, maps.maximal_update_exponents(5)), RATE)[0], f, atol=1e-12
    )
    half = maps.maximal_update_exponents(5).shifted(0.5)
    assert_allclose(half.a, maps.ours_exponents(5).a)
    assert (half.b, half.c) == (maps.ours_exponents(5).b, maps.ours_exponents(5).c)


@pytest.mark.parametrize(
    ("exponents", "full", "partial"),
    [
        (maps.ours_exponents(), 0.0, 0.0),
        (maps.maximal_update_exponents(), 0.0, 0.0),
        (maps.ntk_exponents(), 0.5, 0.5),
        (maps.older_mean_field_exponents(), -2.0, 0.0),
    ],
)
def test_exponents_of_the_abc_theory(exponents, full, partial):
    # the other form of the same number, (36): min(b_o, a_o + c) + a_o + c + min_l (2 a_l - 1[l !=
    # 1])
    a, b, c = exponents.a, exponents.b, exponents.c
    printed = min(b[-1], a[-1] + c) + a[-1] + c + min(2 * v - (i > 0) for i, v in enumerate(a[:-1]))
    assert exponents.feature_exponent == pytest.approx(full)
    assert exponents.feature_exponent == pytest.approx(printed)
    assert exponents.partial_exponent == pytest.approx(partial)


def test_ours_is_nontrivial():
    assert maps.ours_exponents().nontrivial
    assert maps.maximal_update_exponents().nontrivial


@pytest.mark.parametrize(
    "call",
    [
        lambda: maps.ntk_as_mean_field(network(wf.scalings.MeanField()), 1.0),
        lambda: maps.older_as_mean_field(network(wf.scalings.NTK()), 1.0),
        lambda: maps.as_xavier(wf.Shallow(W, C, wf.scalings.MeanField(), "relu"), 1.0),
        lambda: maps.abc_network(
            wf.Shallow(W, C, wf.scalings.MeanField(), "relu"), maps.ours_exponents()
        ),
        lambda: maps.unit_magnitude(
            wf.Shallow(W, C * np.arange(1, 9), wf.scalings.MeanField(), "relu"), 1.0
        ),
    ],
)
def test_networks_that_do_not_fit_are_refused(call):
    with pytest.raises(ValueError, match="`model`"):
        call()
