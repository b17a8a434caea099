"""Kernels from descriptions: the older kernels as special cases, shares, rates, blocks, gradients,
wrong input.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.architecture import (
    Activate,
    AveragePool,
    Chain,
    Conv,
    Dense,
    Flatten,
    GlobalAveragePool,
    LayerNorm,
    Residual,
    mlp,
)

kernels = wf.limits.kernels
RNG = np.random.default_rng(0)
X, Z = RNG.standard_normal((6, 4)), RNG.standard_normal((5, 4))
IMAGES = RNG.standard_normal((4, 5, 4, 2))


def hidden(depth, activation, **settings):
    return [Dense(8, **settings), Activate(activation)] * depth


@pytest.mark.parametrize(
    ("activation", "other"),
    [("relu", None), ("leaky_relu", Z), ("gelu", Z)],
    ids=["relu", "leaky relu", "gelu"],
)
def test_older_kernels_are_special_cases(activation, other):
    exact = dict(rtol=1e-13, atol=1e-15)
    frozen_output = Chain(*hidden(1, activation), Dense(1, trained=False))
    k = kernels(frozen_output)
    assert_allclose(k.ntk(X, other), wf.limits.mean_ntk(X, activation, other), **exact)
    assert_allclose(k.nngp(X, other), wf.limits.nngp(X, activation, other), **exact)
    expected = wf.limits.hidden_gram(X, activation, 3, other)
    assert_allclose(kernels(Chain(*hidden(3, activation))).nngp(X, other), expected, **exact)
    lazy = Chain(
        *hidden(2, activation, trained=False), *hidden(1, activation), Dense(1, 1.7, trained=False)
    )
    expected = wf.limits.lazy_kernel(X, activation, depth=2, magnitude=1.7, other=other)
    assert_allclose(kernels(lazy).ntk(X, other), expected, **exact)


def test_deep_linear_networks_by_hand():
    # f = s1 s2 s3 W3 W2 W1 x / sqrt(d n n): the gradient with respect to any one layer has squared
    # size (s1 s2 s3)^2 x.x'/d, so the layers' shares are equal; a rate multiplies its own, a frozen
    # layer has none
    deviations = (1.5, 0.8, 1.2)
    gram = np.prod(deviations) ** 2 * X @ Z.T / 4
    layers = [Dense(8, s) for s in deviations]
    k = kernels(Chain(*layers))
    assert_allclose(k.nngp(X, Z), gram, rtol=1e-14)
    assert_allclose(k.ntk(X, Z), 3 * gram, rtol=1e-14)
    assert_allclose(k.shares(X, Z), np.stack([gram] * 3), rtol=1e-14)
    assert_allclose(k.share(-1, X, Z), gram, rtol=1e-14)
    assert_allclose(
        kernels(Chain(*layers), rates=(2.0, 0.5, 3.0)).ntk(X, Z), 5.5 * gram, rtol=1e-14
    )
    frozen = Chain(Dense(8, 1.5), Dense(8, 0.8, trained=False), Dense(8, 1.2))
    assert_allclose(kernels(frozen).ntk(X, Z), 2 * gram, rtol=1e-14)
    assert_allclose(kernels(frozen).share(1, X, Z), 0 * gram)


def test_the_shares_of_a_residual_network_sum_to_its_kernel():
    chain = Chain(
        Dense(8, 1.1, 0.3),
        Residual(Chain(Activate("relu"), Dense(8, 1.2, 0.1)), Dense(8, 0.5)),
        Activate("erf"),
        Dense(1),
    )
    k = kernels(chain, rates=(0.5, 1.0, 2.0, 1.5))
    assert_allclose(k.shares(X, Z).sum(0), k.ntk(X, Z), rtol=1e-14)
    assert_allclose(k.both(X, Z).nngp, k.nngp(X, Z), rtol=1e-13, atol=1e-15)


def test_layer_by_layer_ends_at_the_whole_and_diagonals_are_diagonals():
    chain = Chain(
        Conv(6, (3, 3), bias_std=0.2), Activate("relu"), AveragePool((2, 2)), Flatten(), Dense(1)
    )
    k = kernels(chain)
    layers = k.layers(IMAGES)
    assert [type(step.layer).__name__ for step in layers] == [
        "Conv",
        "Activate",
        "AveragePool",
        "Flatten",
        "Dense",
    ]
    assert layers[0].nngp.shape == (4, 4, 5, 4)
    assert layers[2].nngp.shape == (4, 4, 2, 2)
    whole = k.both(IMAGES)
    assert_allclose(layers[-1].nngp, whole.nngp, rtol=1e-14)
    assert_allclose(layers[-1].ntk, whole.ntk, rtol=1e-14)
    assert_allclose(k.nngp_diagonal(IMAGES), jnp.diagonal(whole.nngp), rtol=1e-14)
    assert_allclose(k.ntk_diagonal(IMAGES), jnp.diagonal(whole.ntk), rtol=1e-14)


def test_layers_before_the_first_weights_act_on_the_inputs():
    early = Chain(
        LayerNorm(),
        AveragePool((2, 2)),
        Activate("tanh"),
        Flatten(),
        Dense(8),
        Activate("relu"),
        Dense(1),
    )
    centred = IMAGES - IMAGES.mean(-1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
    pooled = normed[:, :4].reshape(4, 2, 2, 2, 2, 2).mean((2, 4))
    late = kernels(mlp(depth=1, width=8))
    assert_allclose(
        kernels(early).ntk(IMAGES), late.ntk(np.tanh(pooled).reshape(4, -1)), rtol=1e-12
    )


def test_blocks_give_the_same_numbers_and_say_how_far_they_are():
    chain = mlp(depth=2, bias_std=0.1)
    x = RNG.standard_normal((70, 4))
    whole = kernels(chain).both(x)
    seen = []
    small = kernels(chain, memory=8 * 8 * 16**2).both(
        x, progress=lambda done, total: seen.append((done, total))
    )
    assert_allclose(small.ntk, whole.ntk, rtol=1e-13, atol=1e-15)
    assert_allclose(small.nngp, small.nngp.T, rtol=0)
    assert seen == [(k, 15) for k in range(1, 16)]  # five blocks a side, those above the diagonal
    cross = kernels(chain, memory=8 * 8 * 16**2).ntk(x, Z)
    assert_allclose(cross, kernels(chain).ntk(x, Z), rtol=1e-13, atol=1e-15)


def test_quadrature_takes_any_smooth_activation():
    # E[phi phi] for phi = log cosh, on the diagonal, by Gauss-Hermite with 200 nodes
    function = lambda z: jnp.logaddexp(z, -z) - np.log(2.0)
    k = kernels(Chain(Dense(8), Activate(function)))
    t, w = np.polynomial.hermite_e.hermegauss(200)
    deviations = np.sqrt((X**2).mean(1))
    expected = (np.log(np.cosh(deviations[:, None] * t)) ** 2 * w).sum(1) / w.sum()
    assert_allclose(k.nngp_diagonal(X), expected, rtol=1e-9)
    hidden_kink = kernels(Chain(Dense(8), Activate(lambda z: jnp.maximum(z, 0.0))))
    with pytest.raises(ValueError, match="not smooth enough for quadrature"):
        hidden_kink.nngp(X)


@pytest.mark.parametrize("activation", ["relu", "abs", wf.activations.rectified_power(2), "erf"])
def test_gradients_at_equal_opposite_and_zero_inputs_are_numbers(activation):
    k = kernels(mlp(depth=2, activation=activation))
    x = jnp.array([[1.0, 2.0], [1.0, 2.0], [-1.0, -2.0], [0.0, 0.0]])
    value, slope = jax.value_and_grad(lambda a: k.both(a).ntk.sum() + k.nngp(a).sum())(x)
    assert np.isfinite(value)
    assert np.all(np.isfinite(slope))


def test_equal_and_opposite_inputs_are_exact():
    # by hand: the angle is 0 or pi, so ReLU's Sigma^2 = |x|^2/(2d) or 0 and Theta^2 = twice it or 0
    x = np.array([[0.3, -1.1, 0.7]])
    k = kernels(mlp(depth=1))
    square = float((x**2).sum()) / 3
    both = k.both(x, np.concatenate([x.copy(), -x, 0 * x, 3 * x]))
    assert_allclose(both.nngp, [[square / 2, 0, 0, 1.5 * square]], rtol=1e-14, atol=1e-16)
    assert_allclose(both.ntk, [[square, 0, 0, 3 * square]], rtol=1e-14, atol=1e-16)


def test_equal_inputs_of_many_features_are_exact():
    # Rows like images: most pixels hold one background value, whose products round the same way
    # over and over. A matrix product over all 784 was off by tens of epsilon, which the angle of
    # two equal inputs turns into 1e-8.
    rng = np.random.default_rng(0)
    x = np.where(rng.random((40, 784)) < 0.15, rng.random((40, 784)), 0.0) - 0.1307
    x *= np.sqrt(784) / np.linalg.norm(x, axis=1, keepdims=True)
    k = kernels(mlp(depth=3, weight_std=math.sqrt(2), bias_std=0.1))
    exact = np.asarray(
        k.ntk_diagonal(x)
    )  # each input with itself: no angle is computed from two sums
    assert_allclose(np.diagonal(k.ntk(x)), exact, rtol=1e-12)
    assert_allclose(np.diagonal(k.ntk(x, x.copy())), exact, rtol=1e-12)


def test_float32_agrees_to_its_rounding():
    single = kernels(mlp(depth=3), precision="float32").ntk(X)
    assert single.dtype == jnp.float32
    assert_allclose(single, kernels(mlp(depth=3)).ntk(X), rtol=2e-3)


WRONG = {
    "parametrisation": (
        lambda: kernels(mlp(), parametrisation="mup"),
        "`parametrisation` must be 'ntk' or 'standard'",
    ),
    "rates": (lambda: kernels(mlp(), rates=(1.0,)), "`rates` must be 2 non-negative numbers"),
    "x": (lambda: kernels(mlp()).ntk(X[0]), "`x` must have shape"),
    "x2": (lambda: kernels(mlp()).ntk(X, X[:, :3]), "`x2` must hold inputs of shape"),
    "channels": (
        lambda: kernels(Chain(Conv(3, (3, 3)), Flatten(), Dense(1))).ntk(X),
        "needs inputs of 2 spatial axes",
    ),
    "window": (
        lambda: kernels(Chain(Conv(3, (3,), padding="VALID"), Flatten(), Dense(1))).ntk(
            X[:, :2, None]
        ),
        "does not fit into positions",
    ),
    "image": (
        lambda: kernels(Chain(Conv(3, (3,)), Flatten(), Dense(1))).ntk(X[:, None, None, :]),
        "needs inputs of 1 spatial axes",
    ),
    "weight variance": (lambda: Dense(3, weight_std=-1.0), "`weight_std` must be positive"),
    "bias variance": (
        lambda: Conv(3, (3,), bias_std=-0.1),
        "`bias_std` must be finite and not negative",
    ),
    "complex": (
        lambda: kernels(mlp()).ntk(X + 1j),
        "`x` must be an array of numbers with one row per sample: it holds complex",
    ),
    "no slope": (
        lambda: kernels(Chain(Dense(3), Activate(np.tanh), Dense(1))).ntk(X),
        "written with `jax.numpy`",
    ),
    "a step": (
        lambda: kernels(Chain(Dense(3), Activate(jnp.floor), Dense(1))).ntk(X),
        "not smooth enough for quadrature",
    ),
    "twice": (
        lambda: kernels(Chain(Dense(3), Activate("relu"), Activate("relu"))).ntk(X),
        "not Gaussian in the limit",
    ),
    "norm": (
        lambda: kernels(Chain(Dense(3), Activate("relu"), LayerNorm())).ntk(X),
        "`LayerNorm` needs centred Gaussian",
    ),
    "correlated": (
        lambda: kernels(Chain(Dense(3), Residual(Activate("relu")))).ntk(X),
        "correlated in the limit",
    ),
    "share": (lambda: kernels(mlp()).share(2, X), "`layer` must be a layer with weights"),
    "nodes": (
        lambda: kernels(
            Chain(Dense(3, node_scaling=wf.scalings.Zipf(0.5, 0.7)), Activate("relu"))
        ).ntk(X),
        "`node_scaling`",
    ),
    "pool": (
        lambda: kernels(Chain(Dense(3), GlobalAveragePool())).ntk(X),
        "needs inputs of spatial axes",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_named(name):
    call, words = WRONG[name]
    with pytest.raises(ValueError, match=words):
        call()
