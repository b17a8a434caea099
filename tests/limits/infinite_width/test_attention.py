"""Self-attention: kernels by hand and against finite networks; `test_neural_tangents.py` has them
against neural-tangents.
"""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow import architecture as a

X = np.random.default_rng(8).standard_normal((3, 4, 2))  # three sequences of four positions
LAYER = dict(query_key_std=0.8, value_std=1.2, weight_std=0.9, bias_std=0.3)


def chain(layer: a.SelfAttention) -> a.Chain:
    return a.Chain(layer, a.GlobalAveragePool(), a.Dense(1, 1.1))


def test_linear_attention_by_hand():
    # Sigma_ab = x_a . x'_b / 2 at the inputs, weights A = softmax(0.8 Sigma(x, x)) along each row;
    # values and the layer after the heads have one part of the tangent kernel each, nothing below
    # is trained.
    products = np.einsum("iac,jbc->ijab", X, X) / 2
    scores = np.exp(0.8 * np.einsum("iiab->iab", products))
    weights = scores / scores.sum(-1, keepdims=True)
    mixed = (1.2 * 0.9) ** 2 * np.einsum("iac,ijcd,jbd->ijab", weights, products, weights)
    pooled = (mixed + 0.3**2).mean((2, 3))  # the bias is the same at all positions
    tangent = (2 * mixed + 0.3**2).mean((2, 3))
    k = wf.limits.kernels(chain(a.SelfAttention(5, **LAYER)))
    assert_allclose(k.nngp(X), 1.1**2 * pooled, rtol=1e-12)
    assert_allclose(k.ntk(X), 1.1**2 * (pooled + tangent), rtol=1e-12)


CASES = {
    # second moments of products of independent Gaussians: the means are those of the limit at every
    # width
    "sqrt": a.SelfAttention(8, 6, 6, 6, "sqrt", "identity", **LAYER),
    # the softmax sees K K^T / m, whose fluctuations shift the mean by O(1 / m)
    "linear": a.SelfAttention(8, 4, 2000, 4, "linear", "softmax", **LAYER),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kernel", ["nngp", "ntk"])
def test_finite_networks_have_these_kernels_on_average(name, kernel):
    network = chain(CASES[name])
    draw = lambda key: wf.Deep.init(key, network, (4, 2))
    estimate = wf.limits.monte_carlo_kernel(jax.random.key(1), draw, X, samples=300, kernel=kernel)
    expected = np.asarray(getattr(wf.limits.kernels(network), kernel)(X))
    # six numbers in each of four cases: a gap of 4.5 standard errors has a chance below 2e-4 in all
    assert np.max(np.abs(np.asarray(estimate.mean) - expected) / np.asarray(estimate.error)) < 4.5
    assert np.max(np.asarray(estimate.error)) < 0.2 * np.max(
        expected
    )  # and the errors tell something


@pytest.mark.parametrize(
    "layer",
    [
        a.SelfAttention(6, **LAYER),
        a.SelfAttention(6, scaling="sqrt", mechanism="identity", **LAYER),
    ],
)
def test_shares_diagonals_rates_and_frozen_layers(layer):
    # above a convolution, so that a tangent kernel comes from below, and with a second set of
    # inputs
    network = a.Chain(
        a.Conv(6, (3,)), a.Activate("relu"), layer, a.Activate("erf"), a.Flatten(), a.Dense(1)
    )
    k = wf.limits.kernels(network)
    parts = 3 if layer.scaling == "linear" else 4
    assert len(k.rates) == parts + 2
    ntk, shares = np.asarray(k.ntk(X, X[:2])), np.asarray(k.shares(X, X[:2]))
    assert_allclose(shares.sum(0), ntk, rtol=1e-12)
    assert_allclose(
        shares[1], 0 if layer.scaling == "linear" else shares[2], rtol=1e-12
    )  # keys, queries
    assert_allclose(k.ntk_diagonal(X), np.diagonal(k.ntk(X)), rtol=1e-12)
    assert_allclose(k.nngp_diagonal(X), np.diagonal(k.nngp(X)), rtol=1e-12)
    assert_allclose(k.layers(X)[-1].ntk, k.ntk(X), rtol=1e-12)
    rates = np.arange(1.0, parts + 3)
    weighted = wf.limits.kernels(network, rates=rates).ntk(X, X[:2])
    assert_allclose(weighted, np.tensordot(rates, shares, 1), rtol=1e-12)
    frozen = [
        a.SelfAttention(**{**vars(part), "trained": False}) if part is layer else part
        for part in network.layers
    ]
    assert_allclose(
        wf.limits.kernels(a.Chain(*frozen)).ntk(X, X[:2]), shares[0] + shares[-1], rtol=1e-12
    )


def test_attention_is_blind_to_the_order_of_positions():
    # without embeddings of positions a sequence in another order has its outputs in that order
    network = chain(a.SelfAttention(5, **LAYER))
    shuffled = X[:, [2, 0, 3, 1]]
    k = wf.limits.kernels(network)
    assert_allclose(k.ntk(shuffled, X), k.ntk(X), rtol=1e-12)
    model = wf.Deep.init(0, network, (4, 2))
    assert_allclose(model.outputs(shuffled), model.outputs(X), rtol=1e-10)


WRONG = {
    "positions": (
        lambda: wf.limits.kernels(a.SelfAttention(4)).ntk(X[:, 0]),
        "`SelfAttention` needs inputs of spatial axes",
    ),
    "heads": (lambda: a.SelfAttention(4, heads=0), "`heads` must be a whole number"),
    "mechanism": (
        lambda: a.SelfAttention(4, mechanism="soft"),
        "`mechanism` must be .* Did you mean 'softmax'",
    ),
    "scaling": (lambda: a.SelfAttention(4, scaling="root"), "`scaling` must be 'linear' or 'sqrt'"),
    "deviation": (
        lambda: a.SelfAttention(4, query_key_std=-1.0),
        "`query_key_std` must be positive",
    ),
    "no closed form": (
        lambda: wf.limits.kernels(a.SelfAttention(4, scaling="sqrt")).nngp(X),
        "closed form for mechanism='identity' alone",
    ),
    "standard": (
        lambda: wf.limits.kernels(a.SelfAttention(4), parametrisation="standard").ntk(X),
        "NTK parametrisation alone",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_named(name):
    call, words = WRONG[name]
    with pytest.raises(ValueError, match=words):
        call()
