"""The structured tangent Gram matrix against Jacobians by autodiff, for every kind of layer."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow._core.architecture import (
    Activate,
    AveragePool,
    Chain,
    Conv,
    Dense,
    Flatten,
    GlobalAveragePool,
    LayerNorm,
    Residual,
    SelfAttention,
    mlp,
)
from wideflow._core.trees import parameters, with_parameters
from wideflow.models import deep_gram

RNG = np.random.default_rng(0)
CASES = {
    "mlp": (mlp(3, 7, "tanh", bias_std=0.3), (5,), "ntk"),
    "mlp, several outputs, maximal update": (
        mlp(2, 7, "relu", 3, bias_std=0.3),
        (5,),
        "maximal-update",
    ),
    "frozen layers": (
        Chain(
            Dense(6, trained=False),
            Activate("erf"),
            Dense(4),
            Activate("erf"),
            Dense(2, trained=False),
        ),
        (5,),
        "mean-field",
    ),
    "node weights": (
        Chain(Dense(6, node_scaling=wf.scalings.Zipf(0.3, 0.6)), Activate("tanh"), Dense(1)),
        (5,),
        "ntk",
    ),
    "residual": (
        Chain(
            Dense(6), Residual(Chain(LayerNorm(), Activate("tanh"), Dense(6)), Dense(6)), Dense(1)
        ),
        (5,),
        "standard",
    ),
    "convolution, few positions": (
        Chain(Conv(4, (2, 2), (2, 2), bias_std=0.2), Activate("tanh"), Flatten(), Dense(2)),
        (4, 4, 6),
        "ntk",
    ),
    "convolution, many positions": (
        Chain(
            Conv(3, (3, 3), bias_std=0.2),
            Activate("tanh"),
            AveragePool((2, 2)),
            Residual(Conv(3, (3, 3), padding="CIRCULAR")),
            GlobalAveragePool(),
            Dense(1, bias_std=0.1),
        ),
        (6, 6, 2),
        "ntk",
    ),
    "attention": (
        Chain(
            Dense(4),
            SelfAttention(5, 2, 3, 4, bias_std=0.2),
            Activate("tanh"),
            GlobalAveragePool(),
            Dense(2),
        ),
        (3, 2),
        "ntk",
    ),
    "attention with queries of its own": (
        Chain(SelfAttention(5, 2, 3, 4, "sqrt"), GlobalAveragePool(), Dense(1)),
        (3, 2),
        "standard",
    ),
    "dense over positions": (
        Chain(Dense(4), Activate("tanh"), Dense(3), GlobalAveragePool()),
        (5, 2),
        "ntk",
    ),
}


@eqx.filter_jit
def witness(model, left, right):
    """J c J'^T over all (sample, output) entries, array by array, from whole Jacobians."""
    theta, factors = parameters(model), model.rate_factors()

    def jacobian(x):
        rows = jax.jacrev(lambda p: with_parameters(model, p).respond(x).reshape(-1))(theta)
        return {name: j.reshape(j.shape[0], -1) for name, j in rows.items()}

    rows = jacobian(left), jacobian(right)
    return {name: factors[name] * rows[0][name] @ rows[1][name].T for name in theta}


@pytest.mark.parametrize("name", CASES)
def test_against_jacobians(name):
    architecture, shape, parametrisation = CASES[name]
    model = wf.Deep.init(1, architecture, shape, parametrisation)
    x, z = (model.embed(RNG.normal(size=(n, int(np.prod(shape))))) for n in (4, 3))
    square, cross = witness(model, x, x), witness(model, x, z)
    parts = deep_gram.gram_parts(model, x, z, None)
    assert parts.keys() == cross.keys()
    for array, expected in cross.items():
        assert_allclose(parts[array], expected, rtol=1e-9, atol=1e-13, err_msg=array)
    whole = sum(square.values())
    assert_allclose(deep_gram.gram(model, x, output=None), whole, rtol=1e-9, atol=1e-13)
    assert_allclose(
        wf.observables.tangent_gram(model, x),
        whole[:: whole.shape[0] // 4, :: whole.shape[0] // 4],
        rtol=1e-9,
        atol=1e-13,
    )


def test_tiles_change_nothing():
    model = wf.Deep.init(0, mlp(2, 16, "tanh", 2), 5)
    x = model.embed(RNG.normal(size=(9, 5)))
    whole, tiled = (deep_gram.gram(model, x, output=None, memory=m) for m in (None, 20_000))
    assert_allclose(tiled, whole, rtol=1e-12)
    parts = deep_gram.gram_parts(model, x[:4], x, 1, memory=20_000)
    assert_allclose(sum(parts.values()), whole[1:8:2, 1::2], rtol=1e-12)


def test_both_ways_over_positions():
    # the same layer once with many samples a position and once with few: the count of
    # multiplications takes another way
    side = lambda n, p, f, c: deep_gram.Side(
        jnp.asarray(RNG.normal(size=(n, p, f))), jnp.asarray(RNG.normal(size=(n, 2, p, c)))
    )
    for p, f, c in ((2, 9, 8), (9, 2, 2)):
        a, b = side(3, p, f, c), side(4, p, f, c)
        rows = [
            np.einsum("ipf,ikpc->ikfc", s.inputs, s.gradient).reshape(-1, f * c) for s in (a, b)
        ]
        assert_allclose(deep_gram._products(a, b), rows[0] @ rows[1].T, rtol=1e-10)


def test_products_without_the_matrix():
    model = wf.Deep.init(0, mlp(2, 8, "tanh", 2), 5)
    x, v = RNG.normal(size=(6, 5)), RNG.normal(size=(6, 2))
    gram = wf.observables.block_kernels.block_gram(model, x)
    assert_allclose(
        wf.observables.tangent_products(model, x)(v).reshape(-1), gram @ v.reshape(-1), rtol=1e-10
    )


def test_parts_of_any_model():
    net = wf.MeanFieldStack.init(jax.random.key(0), dimensions=(5, 2, 1), widths=(4, 3))
    x = RNG.normal(size=(3, 5))
    parts = wf.observables.tangent_gram_parts(net, x)
    assert_allclose(sum(parts.values()), wf.observables.tangent_gram(net, x), rtol=1e-12)
    expected = witness(net, net.embed(x), net.embed(x))
    assert_allclose(parts["inner_1"], expected["inner_1"], rtol=1e-10)
