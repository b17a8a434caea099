"""The probe against closed forms and dense Jacobians; the coordinate check against known
exponents.
"""

import dataclasses
import math
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from compile_log import compilations
from numpy.testing import assert_allclose

import wideflow as wf


def mlp(params, x):
    """Of one input; two outputs."""
    return params["out"] @ jnp.tanh(params["in"] @ x + params["bias"])


@pytest.fixture(scope="module")
def case():
    random = np.random.default_rng(0)
    before = {
        "in": random.normal(size=(7, 3)),
        "bias": random.normal(size=7),
        "out": random.normal(size=(2, 7)),
    }
    after = {name: value + 0.1 * random.normal(size=value.shape) for name, value in before.items()}
    return before, after, random.normal(size=(6, 3)), random.normal(size=(6, 2))


def dense(params, inputs):
    """The Jacobian of all outputs as one (sample, output, parameter) array, by forward mode."""
    flat, back = jax.flatten_util.ravel_pytree(params)
    return np.asarray(
        jax.jacfwd(lambda p: jax.vmap(lambda x: mlp(back(p), x))(inputs))(flat)
    ), np.asarray(flat)


def test_one_program_serves_before_and_after_and_every_output(case):
    before, after, inputs, targets = case
    with compilations() as names:
        wf.probe(mlp, before, after, inputs, targets)
    assert names.count("_gradients") == 1
    assert names.count("on") == 1


def test_numbers_agree_with_dense_jacobians(case):
    before, after, inputs, targets = case
    found = wf.probe(mlp, before, after, inputs, targets)
    (first, theta0), (second, theta1) = (dense(p, inputs) for p in (before, after))
    k0, k1 = (np.einsum("iop,jop->ij", j, j) / 2 for j in (first, second))
    f0, f1 = (np.array([mlp(p, x) for x in inputs]) for p in (before, after))
    linear = f0 + first @ (theta1 - theta0)
    assert_allclose(
        found.regime.kernel_change, np.linalg.norm(k1 - k0) / np.linalg.norm(k0), rtol=1e-10
    )
    assert_allclose(
        found.regime.linearisation_gap,
        np.linalg.norm(f1 - linear) / np.linalg.norm(f1 - f0),
        rtol=1e-10,
    )
    assert_allclose(
        found.alignment, np.sum(k0 * k1) / np.linalg.norm(k0) / np.linalg.norm(k1), rtol=1e-12
    )
    assert_allclose(found.spectrum_after, np.linalg.eigvalsh(k1), rtol=1e-8, atol=1e-12)
    assert_allclose(found.gap_before, np.linalg.eigvalsh(k0)[0], rtol=1e-8)
    assert_allclose(
        found.parameter_movement,
        np.linalg.norm(theta1 - theta0) / np.linalg.norm(theta0),
        rtol=1e-12,
    )
    assert_allclose(found.loss_before, 0.5 * np.sum((f0 - targets) ** 2) / 6, rtol=1e-12)
    assert_allclose(
        found.target_alignment_before,
        np.trace(targets.T @ k0 @ targets) / np.linalg.norm(k0) / np.sum(targets**2),
        rtol=1e-10,
    )


def test_tiles_and_batches_give_the_same_numbers(case):
    before, after, inputs, _ = case
    whole = wf.probe(mlp, before, after, inputs)
    batch = lambda params, xs: jnp.tanh(xs @ params["in"].T + params["bias"]) @ params["out"].T
    for other in (
        wf.probe(mlp, before, after, inputs, memory=2000),  # one or two rows a tile
        wf.probe(batch, before, after, inputs),
        wf.probe(batch, before, after, inputs, batched=True),
    ):
        assert_allclose(other.spectrum_before, whole.spectrum_before, rtol=1e-9, atol=1e-12)
        assert_allclose(other.regime.kernel_change, whole.regime.kernel_change, rtol=1e-10)


def test_one_output_alone(case):
    before, after, inputs, _ = case
    found = wf.probe(mlp, before, after, inputs, output=1)
    jacobian = dense(before, inputs)[0][:, 1]
    assert_allclose(
        found.spectrum_before, np.linalg.eigvalsh(jacobian @ jacobian.T), rtol=1e-8, atol=1e-12
    )


def test_linear_in_the_parameters_is_lazy_however_far_it_moves():
    found = wf.probe(lambda w, x: jnp.vdot(w, x), np.ones(3), 100 * np.ones(3), np.eye(3))
    assert found.verdict == "lazy"
    assert found.regime == (0.0, 0.0)
    assert found.index == 1.0


def test_kernel_of_a_product_by_hand():
    # f = a b x: kernel (a^2 + b^2) x x', so (1, 1) -> (2, 2) multiplies it by 4: change 3, aligned;
    # the tangent at (1, 1) gives 1 + 2 = 3 of 4
    found = wf.probe(
        lambda p, x: p[0] * p[1] * x[0],
        np.array([1.0, 1.0]),
        np.array([2.0, 2.0]),
        np.array([[1.0], [2.0]]),
    )
    assert_allclose(found.regime, (3.0, 1 / 3), rtol=1e-12)
    assert_allclose((found.alignment, found.size_ratio), (1.0, 4.0), rtol=1e-12)
    assert found.verdict == "rich"
    assert math.isnan(found.gap_before)  # rank one: not resolved


def test_equinox_module_with_fixed_leaves_and_features():
    net = eqx.nn.MLP(3, 2, 8, 1, key=jax.random.key(0))
    other = eqx.tree_at(lambda m: m.layers[0].weight, net, replace_fn=lambda w: 1.1 * w)
    inputs = jax.random.normal(jax.random.key(1), (5, 3))
    found = wf.probe(lambda m, x: m(x), net, other, inputs, features=lambda m, x: m.layers[0](x))
    hidden = [np.asarray(jax.vmap(m.layers[0])(inputs)) for m in (net, other)]
    assert_allclose(
        found.feature_movement,
        np.linalg.norm(hidden[1] - hidden[0]) / np.linalg.norm(hidden[0]),
        rtol=1e-6,
    )
    assert found.parameters == 3 * 8 + 8 + 8 * 2 + 2
    assert "feature movement" in str(found)


def test_flax_modules_of_both_kinds():
    nn = pytest.importorskip("flax.linen")
    nnx = pytest.importorskip("flax.nnx")

    class Linen(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(2)(nn.tanh(nn.Dense(8, name="hidden")(x)))

    class Stateful(nnx.Module):
        def __init__(self, rngs):
            self.hidden, self.out = nnx.Linear(3, 8, rngs=rngs), nnx.Linear(8, 2, rngs=rngs)

        def __call__(self, x):
            return self.out(nnx.tanh(self.hidden(x)))

    inputs = jax.random.normal(jax.random.key(1), (5, 3))
    linen = Linen()
    before = linen.init(jax.random.key(0), inputs)
    wave = lambda leaf: 0.1 * jnp.cos(jnp.arange(leaf.size).reshape(leaf.shape))
    after = jax.tree.map(lambda leaf: leaf + wave(leaf).astype(leaf.dtype), before)
    found = wf.probe(linen.apply, before, after, inputs)
    assert found.parameters == 3 * 8 + 8 + 8 * 2 + 2
    # the same weights in the other kind of module
    graph = nnx.split(Stateful(nnx.Rngs(0)))[0]

    def filled(tree):
        net, params = Stateful(nnx.Rngs(0)), tree["params"]
        for layer, name in ((net.hidden, "hidden"), (net.out, "Dense_0")):
            layer.kernel[...], layer.bias[...] = params[name]["kernel"], params[name]["bias"]
        return nnx.split(net)[1]

    other = wf.probe(
        lambda params, x: nnx.merge(graph, params)(x), filled(before), filled(after), inputs
    )
    # and written out
    plain = lambda p, x: (
        jnp.tanh(x @ p["params"]["hidden"]["kernel"] + p["params"]["hidden"]["bias"])
        @ p["params"]["Dense_0"]["kernel"]
        + p["params"]["Dense_0"]["bias"]
    )
    written = wf.probe(plain, before, after, inputs)
    for one in (found, other):
        assert_allclose(one.spectrum_after, written.spectrum_after, rtol=1e-4, atol=1e-5)
        assert_allclose(one.regime, written.regime, rtol=1e-3)
        assert one.verdict == written.verdict


MEMORY = """
import pathlib
import jax, jax.numpy as jnp
import wideflow as wf

jax.config.update("jax_platforms", "cpu")
keys = jax.random.split(jax.random.key(0), 4)
sizes = [(64, 1800), (1800, 2700), (2700, 1800), (1800, 1)]
before = [jax.random.normal(k, s, jnp.float32) / s[0] ** 0.5 for k, s in zip(keys, sizes)]
after = [w + 1e-3 * jnp.sign(w) for w in before]
def net(weights, x):
    for w in weights[:-1]:
        x = jax.nn.relu(x @ w)
    return (x @ weights[-1])[0]
x = jax.random.normal(jax.random.key(1), (10, 64), jnp.float32)
found = wf.probe(net, before, after, x)
status = pathlib.Path("/proc/self/status").read_text()  # ru_maxrss would count the parent's memory before exec
print(found.parameters, found.verdict, int(status.split("VmHWM:")[1].split()[0]))
"""


def test_ten_million_parameters_within_four_gibibytes():
    told = subprocess.run(
        [sys.executable, "-c", MEMORY], check=True, capture_output=True, text=True
    ).stdout
    count, verdict, peak = told.split()
    assert int(count) > 9_800_000
    assert verdict in ("lazy", "between", "rich")
    assert int(peak) * 1024 < 4 * 2**30


def test_two_precisions_meet_in_the_finer_one():
    coarse, fine = np.array([1.0, 1.0], np.float32), np.array([2.0, 2.0])
    found = wf.probe(lambda p, x: p[0] * p[1] * x[0], coarse, fine, np.array([[1.0], [2.0]]))
    assert_allclose(found.regime, (3.0, 1 / 3), rtol=1e-12)  # as by hand above


def test_unmoved_parameters_are_told_apart():
    found = wf.probe(lambda w, x: jnp.sin(w @ x), np.ones(3), np.ones(3), np.eye(3))
    assert found.verdict == "untrained"
    assert found.to_dict()["kernel_change"] == 0.0


def test_wideflow_models_give_the_observables_numbers():
    """What a model does not train is no part of the kernel: its output weights would be most of
    it.
    """
    net = wf.Shallow.init(0, features=4, width=30, activation="tanh")
    data = wf.Dataset(np.random.default_rng(1).normal(size=(6, 4)), np.arange(6.0))
    gap = wf.observables.LinearisationGap()
    run = wf.train(net, data, wf.GradientDescent(0.05), steps=20, record=[gap])
    before, after = (wf.observables.tangent_gram(m, data.inputs) for m in (net, run.model))
    for apply in (net, lambda m, x: m(x), lambda m, x: m.outputs(x)):
        probe = wf.probe(apply, net, run.model, data.inputs)
        assert list(probe.layers) == ["weights"]
        assert_allclose(probe.spectrum_before, np.linalg.eigvalsh(before), rtol=1e-8, atol=1e-12)
        change = np.linalg.norm(after - before) / np.linalg.norm(before)
        assert_allclose(probe.regime.kernel_change, change, rtol=1e-9)
        moved = float(run.table.linearisation_gap[-1])
        assert_allclose(probe.regime.linearisation_gap, moved, rtol=1e-9)


def test_what_a_model_does_not_train_must_not_change():
    net = wf.Shallow.init(0, features=4, width=30)
    other = eqx.tree_at(lambda m: m.output, net, 2 * net.output)
    with pytest.raises(ValueError, match="an array that their model does not train"):
        wf.probe(net, net, other, np.eye(4))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"params_after": {"w": np.ones(2)}}, "one structure"),
        ({"params_after": np.ones(4)}, "shapes of `params_before`"),
        ({"targets": np.ones(2)}, "`targets` must have the shape"),
        ({"output": 3}, "`output` must lie in 0..0"),
        ({"params_before": 3, "params_after": 3}, "no floating-point array"),
        ({"params_after": np.full(3, np.nan)}, "finite outputs"),
    ],
)
def test_wrong_input_is_named(change, message):
    given = {
        "apply": lambda w, x: jnp.vdot(w, x),
        "params_before": np.ones(3),
        "params_after": np.zeros(3),
        "inputs": np.eye(3),
    }
    with pytest.raises(ValueError, match=message):
        wf.probe(**(given | change))


def test_a_function_that_mixes_its_batch_is_refused():
    with pytest.raises(ValueError, match="batched="):
        wf.probe(
            lambda w, x: (x - jnp.mean(x, axis=0)) @ w,
            np.arange(1.0, 4.0),
            np.zeros(3),
            np.eye(3) + 1.0,
        )


@pytest.mark.parametrize(
    ("scaling", "slope"), [(wf.scalings.NTK(), -0.5), (wf.scalings.MeanField(), 0.0)]
)
def test_coordinate_check_finds_the_exponents(scaling, slope):
    # NTK: each pre-activation moves like m^-1/2; mean field with neuron factor m: like m^0
    random = np.random.default_rng(0)
    x, y = random.normal(size=(8, 5)), random.normal(size=8)
    build = lambda key, width: wf.Shallow.init(
        key, features=5, width=width, scaling=scaling, activation="tanh", symmetric=True
    )
    found = wf.coordinate_check(build, (64, 256, 1024), x, y, rate=0.2, steps=2, seeds=4)
    assert abs(found.slopes["preactivations"] - slope) < 0.1
    assert len(found.figure().panels) == 2
    assert "preactivations" in str(found)


def test_coordinate_check_of_plain_functions():
    def build(key, width):
        """Output weights of variance 1/width under an unscaled rate: the output's own update grows
        with the width.
        """
        a, b = jax.random.split(key)
        params = {
            "in": jax.random.normal(a, (width, 3)),
            "out": jax.random.normal(b, (width,)) / math.sqrt(width),
        }
        return (lambda p, x: jnp.tanh(x @ p["in"].T) @ p["out"]), params

    found = wf.coordinate_check(
        build, (32, 128, 512), np.eye(3), np.ones(3), rate=1e-4, steps=1, seeds=4
    )
    assert_allclose(found.slopes["outputs"], 1.0, atol=0.15)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"widths": (8, 8)}, "two different"), ({"steps": 0}, "`steps`"), ({"rate": -1.0}, "`rate`")],
)
def test_coordinate_check_names_wrong_input(change, message):
    given = {
        "constructor": lambda key, width: None,
        "widths": (8, 16),
        "inputs": np.eye(3),
        "targets": np.ones(3),
    }
    with pytest.raises(ValueError, match=message):
        wf.coordinate_check(**(given | change))


@pytest.mark.parametrize("optimiser", ["descent", "adam"])
def test_coordinate_check_of_deep_networks_stands_beside_theory(optimiser):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 4)), rng.normal(size=6)
    build = lambda key, width: wf.Deep.init(key, wf.mlp(2, width, "tanh"), 4, "maximal-update")
    dynamics = None if optimiser == "descent" else wf.Optax(optax.adam(0.02))
    check = wf.coordinate_check(build, (64, 256), x, y, rate=0.3, seeds=5, dynamics=dynamics)
    assert check.predicted == {"layer_1": 0.0, "layer_2": 0.0, "outputs": 0.0, "kernel": 0.0}
    for name in ("layer_1", "layer_2"):
        low, high = check.intervals[name]
        assert low - 0.1 <= 0 <= high + 0.1, check
        assert check.verdicts[name] != "refuted"
    wrong = dataclasses.replace(check, predicted={"layer_2": -0.5})
    assert wrong.verdicts == {"layer_2": "refuted"}
    assert "predicted 0" in str(check)


def test_coordinate_check_predicts_nothing_where_theory_is_silent():
    x, y = np.ones((2, 3)), np.ones(2)
    plain = wf.parametrisations.STANDARD.with_rate_exponent(0)
    build = lambda key, width: wf.Deep.init(key, wf.mlp(1, width, "tanh"), 3, plain)
    adam = wf.Optax(optax.adam(1e-3))
    assert wf.coordinate_check(build, (4, 8), x, y, seeds=1, dynamics=adam).predicted == {}
    pair = lambda key, width: (lambda p, inputs: inputs @ p, np.ones(3))
    with pytest.raises(ValueError, match="`dynamics` needs wideflow models"):
        wf.coordinate_check(pair, (4, 8), x, y, dynamics=adam)


@pytest.mark.parametrize("outputs", [1, 2])
def test_deep_networks_have_a_structured_kernel(outputs, monkeypatch):
    chain = wf.mlp(2, 5, "tanh", outputs=outputs, bias_std=0.2)
    before, after = (wf.Deep.init(seed, chain, 3, "maximal-update") for seed in (0, 1))
    x = np.random.default_rng(0).standard_normal((6, 3))
    with jax.enable_x64(True):
        rows = jax.jacrev(lambda net: net.outputs(x).reshape(6, -1))(before)
        flat = [leaf.reshape(6, outputs, -1) for leaf in jax.tree.leaves(rows)]
        kernel = sum(jnp.einsum("ikp,jkp->ij", part, part) for part in flat) / outputs
    expected = np.linalg.eigvalsh(np.asarray(kernel))
    twice = wf.probe(lambda net, x: 2 * net(x), before, after, x)  # not the network's own outputs
    np.testing.assert_allclose(twice.spectrum_before, 4 * expected, rtol=1e-9, atol=1e-12)
    monkeypatch.setattr("wideflow.probe._products", lambda *_: pytest.fail("rows of gradients"))
    probe = wf.probe(lambda net, x: net(x), before, after, x)
    np.testing.assert_allclose(probe.spectrum_before, expected, rtol=1e-9, atol=1e-12)
