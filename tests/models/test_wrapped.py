"""Networks of three libraries as models: the same outputs, trained, and given back in their own
form.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf

linen = pytest.importorskip("flax.linen")
nnx = pytest.importorskip("flax.nnx")

RNG = np.random.default_rng(0)
DATA = wf.Dataset(RNG.normal(size=(7, 5)), RNG.normal(size=7))


class LinenNet(linen.Module):
    @linen.compact
    def __call__(self, x):
        x = linen.tanh(linen.Dense(6, param_dtype=float)(x))
        return linen.Dense(1, param_dtype=float)(x)


class NnxNet(nnx.Module):
    def __init__(self, seed):
        rngs = nnx.Rngs(seed)
        self.first = nnx.Linear(5, 6, param_dtype=float, rngs=rngs)
        self.second = nnx.Linear(6, 1, param_dtype=float, rngs=rngs)

    def __call__(self, x):
        return self.second(jnp.tanh(self.first(x)))


def equinox_net(seed=0):
    return eqx.nn.MLP(5, "scalar", 6, 2, jnp.tanh, dtype=float, key=jax.random.key(seed))


def linen_net():
    module = LinenNet()
    return module, module.init(jax.random.key(0), DATA.inputs)


def by_hand(name):
    """The plain function of a batch, its parameters, and the wrapped model."""
    x = jnp.asarray(DATA.inputs)
    if name == "equinox":
        net = equinox_net()
        params, static = eqx.partition(net, eqx.is_inexact_array)
        return lambda p: jax.vmap(eqx.combine(p, static))(x), params, wf.wrap(net)
    if name == "nnx":
        graph, state = nnx.split(NnxNet(0))
        return lambda p: nnx.merge(graph, p)(x)[:, 0], state, wf.wrap(NnxNet(0))
    if name == "linen":
        module, variables = linen_net()
        return lambda p: module.apply(p, x)[:, 0], variables, wf.wrap(module, variables)
    params = {"w": jnp.asarray(RNG.normal(size=(5, 3))), "v": jnp.asarray(RNG.normal(size=3))}
    apply = lambda p, x: jnp.tanh(x @ p["w"]) @ p["v"]
    return lambda p: apply(p, x), params, wf.wrap(apply, params)


@pytest.mark.parametrize("name", ["equinox", "nnx", "linen", "function"])
def test_descends_like_the_network_by_itself(name):
    function, params, model = by_hand(name)
    loss = lambda p: jnp.sum((function(p) - DATA.targets) ** 2) / 2
    step = jax.jit(lambda p: jax.tree.map(lambda a, g: a - 0.05 * g, p, jax.grad(loss)(p)))
    for _ in range(3):
        params = step(params)
    run = wf.train(model, DATA, wf.GradientDescent(0.05), steps=3)
    assert_allclose(run.model.outputs(DATA.inputs), function(params), rtol=1e-12)
    rows = jax.jit(jax.jacobian(function))(params)
    flat = jnp.concatenate([leaf.reshape(7, -1) for leaf in jax.tree.leaves(rows)], axis=1)
    gram = wf.observables.tangent_gram(run.model, DATA.inputs)
    assert_allclose(gram, flat @ flat.T, rtol=1e-10)


def test_the_network_comes_back_in_its_own_form():
    steps = dict(steps=2)
    module = wf.train(wf.wrap(equinox_net()), DATA, wf.GradientDescent(0.1), **steps).model
    assert isinstance(module.network, eqx.nn.MLP)
    assert_allclose(jax.vmap(module.network)(jnp.asarray(DATA.inputs)), module.outputs(DATA.inputs))
    run = wf.train([wf.wrap(NnxNet(0)), wf.wrap(NnxNet(1))], DATA, wf.GradientDescent(0.1), **steps)
    assert isinstance(run.model[1].network, NnxNet)
    assert_allclose(run.model[1].network(DATA.inputs)[:, 0], run.model[1].outputs(DATA.inputs))
    net, variables = linen_net()
    model = wf.wrap(net, variables)
    assert model.trained == tuple(
        f"params.Dense_{k}.{x}" for k in (0, 1) for x in ("bias", "kernel")
    )
    assert jax.tree.structure(model.network) == jax.tree.structure(variables)


def test_images_and_single_inputs():
    conv = eqx.nn.Conv2d(1, 2, 3, dtype=float, key=jax.random.key(0))
    model = wf.wrap(conv, features=(1, 4, 4))
    x = RNG.normal(size=(3, 1, 4, 4))
    assert_allclose(model.outputs(x), jax.vmap(conv)(x).reshape(3, -1))
    assert_allclose(model.outputs(x.reshape(3, -1)), model.outputs(x))
    assert_allclose(model(x[0]), model.outputs(x)[0])
    one = wf.wrap((lambda p, x: p @ x, jnp.ones((2, 5))), batched=False)
    assert_allclose(one.outputs(DATA.inputs), np.repeat(DATA.inputs.sum(1)[:, None], 2, 1))


def test_whole_numbers_are_not_trained():
    model = wf.wrap(
        lambda p, x: x[:, p["column"]] * p["w"], {"w": 2.0 * jnp.ones(()), "column": jnp.asarray(1)}
    )
    assert model.trained == ("w",)
    assert_allclose(model.outputs(DATA.inputs), 2 * DATA.inputs[:, 1])


class Dropped(linen.Module):
    @linen.compact
    def __call__(self, x):
        return linen.Dropout(0.5, deterministic=False)(linen.Dense(1)(x))


def dropped():
    module = Dropped()
    keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    return wf.wrap(module, module.init(keys, DATA.inputs)).outputs(DATA.inputs)


def sequence(*layers):
    return nnx.Sequential(nnx.Linear(5, 4, rngs=nnx.Rngs(0)), *layers)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wf.wrap(eqx.nn.Sequential([eqx.nn.Dropout(0.5)])), "active dropout"),
        (lambda: wf.wrap(eqx.nn.BatchNorm(3, "batch", mode="batch")), "changes while training"),
        (lambda: wf.wrap(sequence(nnx.BatchNorm(4, rngs=nnx.Rngs(0)))), "`BatchStat`"),
        (lambda: wf.wrap(sequence(nnx.Dropout(0.3, rngs=nnx.Rngs(0)))), r"`network.eval\(\)`"),
        (dropped, "`deterministic=True`"),
        (lambda: wf.wrap(linen.Dense(1), {"params": {}, "batch_stats": {}}), "'batch_stats'"),
        (lambda: wf.wrap(linen.Dense(1)), "`params` must be the variables"),
        (lambda: wf.wrap(lambda p, x: x), "`params` must hold the parameters"),
        (lambda: wf.wrap(3.0), "`network` must be an Equinox module"),
        (lambda: wf.wrap(lambda p, x: x, {"n": 3}), "nothing to train"),
        (
            lambda: wf.wrap(lambda p, x: p @ x, jnp.ones((2, 5))).outputs(DATA.inputs),
            "`batched=False`",
        ),
        (
            lambda: wf.wrap(lambda p, x: jnp.sum(p), jnp.ones(2)).outputs(DATA.inputs),
            "leading sample axis",
        ),
        (
            lambda: wf.train(equinox_net(), DATA, wf.GradientDescent(0.1), steps=1),
            "with `wideflow.wrap`",
        ),
        (lambda: wf.wrap(wf.Deep.init(0, wf.mlp(1, 2), 5)), "wideflow model already"),
        (lambda: wf.wrap(equinox_net(), features=(2, 2)).outputs(DATA.inputs), "needs 4"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_switched_off_dropout_is_welcome():
    assert wf.wrap(
        eqx.nn.inference_mode(
            eqx.nn.Sequential([eqx.nn.Linear(5, 1, key=jax.random.key(0)), eqx.nn.Dropout(0.5)])
        )
    )
    module = sequence(nnx.Dropout(0.3, rngs=nnx.Rngs(0)))
    module.eval()
    assert_allclose(wf.wrap(module).outputs(DATA.inputs), module(DATA.inputs), rtol=1e-4, atol=1e-6)


def test_a_network_that_mixes_its_batch_is_refused():
    """`x - mean(x)` over the batch: descent runs, but the kernel would not be that of a model."""
    mixing = wf.wrap(lambda p, x: (x - x.mean(0)) @ p["w"], {"w": np.arange(1.0, 5.0)})
    data = wf.data.sphere_sines(0, samples=6, features=4)
    with pytest.raises(ValueError, match="mixes the inputs of a batch"):
        wf.train(mixing, data, wf.GradientDescent(0.1), steps=1)
    with pytest.raises(ValueError, match="mixes the inputs of a batch"):
        mixing.outputs(data.inputs)


def test_two_inputs_of_two_numbers_do_not_hide_a_function_of_one():
    """At n = d = 2 the product with the transposed batch has the right shape."""
    one = wf.wrap(
        lambda p, x: p["a"] @ jnp.tanh(p["w"] @ x), {"w": np.ones((3, 2)), "a": np.ones(3)}
    )
    with pytest.raises(ValueError, match="batched=False"):
        one.outputs(np.array([[1.0, 2.0], [3.0, 4.0]]))


def test_a_cast_inside_is_named():
    cast = wf.wrap(lambda p, x: (x @ p["w"]).astype(jnp.float32), {"w": np.ones(4)})
    data = wf.data.sphere_sines(0, samples=6, features=4)
    with pytest.raises(ValueError, match="answers float64 with float32"):
        wf.train(cast, data, wf.GradientDescent(0.1), steps=1)


def test_complex_arrays_are_refused():
    with pytest.raises(ValueError, match="complex array, 'w'"):
        wf.wrap(lambda p, x: jnp.real(x @ p["w"]), {"w": np.ones(4, complex)})


def test_several_wrapped_networks_train_together():
    nets = [wf.wrap(linear, {"w": np.full(4, value)}) for value in (1.0, 2.0)]
    data = wf.data.sphere_sines(0, samples=6, features=4)
    both = wf.train(nets, data, wf.GradientDescent(0.01), steps=3).table.loss.values
    alone = [
        wf.train(net, data, wf.GradientDescent(0.01), steps=3).table.loss.values for net in nets
    ]
    assert_allclose(both, alone, rtol=1e-12)


def linear(params, x):
    return x @ params["w"]
