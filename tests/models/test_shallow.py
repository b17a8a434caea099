"""The shallow network against its formula in plain NumPy, and its pullback against autodiff."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.models.base import pullback_by_autodiff

RNG = np.random.default_rng(0)
HIDDEN, INPUTS = RNG.normal(size=(7, 3)), RNG.normal(size=(5, 3))
SIGNS = RNG.choice([-1.0, 1.0], size=7)
MATRIX = RNG.choice([-1.0, 1.0], size=(4, 7))
SCALINGS = [
    wf.scalings.NTK(),
    wf.scalings.MeanField(),
    wf.scalings.MeanField(1.0),
    wf.scalings.Zipf(0.3, 0.6),
]


@pytest.mark.parametrize("output", [SIGNS, MATRIX], ids=["one", "many"])
@pytest.mark.parametrize("scaling", SCALINGS, ids=str)
def test_outputs_are_the_formula(scaling, output):
    net = wf.Shallow(HIDDEN, output, scaling, "tanh")
    scales = np.asarray(scaling.node_scales(7))
    h = INPUTS @ HIDDEN.T * scaling.hidden_scale(7, 3)
    expected = np.tanh(h) @ (scales * output).T
    assert_allclose(net.outputs(INPUTS), expected, rtol=1e-13)
    assert_allclose(net(INPUTS[0]), expected[0], rtol=1e-13)
    assert_allclose(net.preactivations(INPUTS), h, rtol=1e-13)


@pytest.mark.parametrize("output", [SIGNS, MATRIX], ids=["one", "many"])
@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "abs", "softplus", "erf"])
def test_pullback_is_the_transposed_jacobian(activation, output):
    net = wf.Shallow(HIDDEN, output, wf.scalings.Zipf(0.3, 0.6), activation)
    features = net.embed(INPUTS)
    outputs, pull = net.pullback(features)
    expected_outputs, expected_pull = pullback_by_autodiff(net, features)
    cotangent = jnp.asarray(RNG.normal(size=outputs.shape))
    assert_allclose(outputs, expected_outputs, rtol=1e-14)
    assert_allclose(
        pull(cotangent)["weights"], expected_pull(cotangent)["weights"], rtol=1e-12, atol=1e-14
    )


def test_symmetric_start_is_exactly_zero():
    net = wf.Shallow.init(jax.random.key(0), features=3, width=40, symmetric=True)
    assert float(jnp.max(jnp.abs(net.outputs(INPUTS)))) < 1e-15


def test_adding_a_part_changes_no_draw():
    plain = wf.Shallow.init(jax.random.key(3), features=3, width=6)
    many = wf.Shallow.init(jax.random.key(3), features=3, width=6, outputs=2, weight_std=2.0)
    assert_allclose(many.hidden, 2 * plain.hidden)


def test_start_has_the_stated_moments():
    net = wf.Shallow.init(jax.random.key(0), features=4, width=50_000, weight_std=2.0)
    assert_allclose(float(jnp.mean(net.weights**2)), 4.0, atol=5 * 4 * np.sqrt(2 / 200_000))
    assert set(np.unique(net.output)) == {-1.0, 1.0}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: wf.Shallow(HIDDEN[0], SIGNS), r"`hidden` must have shape \(width, feature\)"),
        (
            lambda: wf.Shallow(HIDDEN, SIGNS[:3]),
            r"`output` must have shape \(7,\) or \(outputs, 7\)",
        ),
        (lambda: wf.Shallow(HIDDEN * np.nan, SIGNS), "`hidden` must be finite"),
        (lambda: wf.Shallow(HIDDEN, SIGNS, "ntk"), "`scaling` must be one of"),
        (lambda: wf.Shallow(HIDDEN, SIGNS, activation="rely"), "Did you mean 'relu'"),
        (lambda: wf.Shallow(HIDDEN, SIGNS).outputs(INPUTS[0]), "must have shape"),
        (
            lambda: wf.Shallow(HIDDEN, SIGNS).outputs(INPUTS[:, :2]),
            "2 features after the embedding",
        ),
        (
            lambda: wf.Shallow.init(jax.random.key(0), features=3, width=5, symmetric=True),
            "must be even",
        ),
        (
            lambda: wf.Shallow.init(
                jax.random.key(0), features=3, width=6, symmetric=True, scaling=wf.scalings.Zipf()
            ),
            "equal node scales",
        ),
    ],
)
def test_wrong_networks_fail_when_built(build, message):
    with pytest.raises(ValueError, match=message):
        build()
