"""`Deep` against explicit loops, against `Shallow`, and under the shift symmetry."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow import architecture as a
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
    SumPool,
    mlp,
    with_width,
)

DATA = wf.Dataset(
    np.random.default_rng(0).normal(size=(7, 5)), np.random.default_rng(1).normal(size=7)
)


def convolved(x, w, strides, padding):
    """A convolution by loops over positions and window: (position, position, channel)."""
    size, window = x.shape[0], w.shape[0]
    if padding == "VALID":
        count, low = (size - window) // strides + 1, 0
    else:
        count = -(-size // strides)
        low = max((count - 1) * strides + window - size, 0) // 2
    out = np.zeros((count, count, w.shape[-1]))
    for i, j, u, v in itertools.product(range(count), range(count), range(window), range(window)):
        p, q = i * strides - low + u, j * strides - low + v
        if padding == "CIRCULAR":
            p, q = p % size, q % size
        if 0 <= p < size and 0 <= q < size:
            out[i, j] += x[p, q] @ w[u, v]
    return out


@pytest.mark.parametrize("padding", ["SAME", "VALID", "CIRCULAR"])
@pytest.mark.parametrize("strides", [1, 2])
def test_convolution_by_loops(padding, strides):
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(6, 6, 2)), rng.normal(size=(3, 3, 2, 4)), rng.normal(size=4)
    layer = Conv(4, (3, 3), (strides, strides), padding, weight_std=1.5, bias_std=0.5)
    net = wf.Deep(layer, (6, 6, 2), [w], [b])
    expected = 1.5 * convolved(x, w, strides, padding) / np.sqrt(18) + 0.5 * b
    assert_allclose(net(x), expected.reshape(-1), rtol=1e-12, atol=1e-13)
    assert_allclose(net.outputs(x.reshape(1, -1))[0], expected.reshape(-1), rtol=1e-12, atol=1e-13)


def test_pooling_by_hand():
    x = np.arange(9.0).reshape(3, 3, 1)

    def after(layer):
        # the last layer is the identity: weights 1 and factor n^-1/2 n^1/2
        net = Chain(Dense(1, weight_std=1.0), layer)
        return np.asarray(wf.Deep(net, (3, 3, 1), [np.ones((1, 1))])(x)).reshape(-1)

    assert_allclose(after(AveragePool((2, 2), (1, 1))), [2, 3, 5, 6])
    assert_allclose(after(AveragePool((2, 2), (2, 2), "SAME")), [2, 3.5, 6.5, 8])
    assert_allclose(after(SumPool((2, 2), (2, 2), "CIRCULAR")), [8, 10, 14, 16])
    assert_allclose(after(GlobalAveragePool()), [4])
    assert_allclose(after(Chain(Flatten(), LayerNorm())), (np.arange(9) - 4) / np.sqrt(60 / 9))


def test_residual_block_by_hand():
    rng = np.random.default_rng(0)
    w, v, s, x = (
        rng.normal(size=(3, 4)),
        rng.normal(size=(4, 4)),
        rng.normal(size=(3, 4)),
        rng.normal(size=3),
    )
    block = Residual(Chain(Dense(4), Activate("tanh"), Dense(4)), Dense(4))
    net = wf.Deep(block, 3, [w, v, s])
    expected = x @ s / np.sqrt(3) + np.tanh(x @ w / np.sqrt(3)) @ v / 2
    assert_allclose(net(x), expected, rtol=1e-12)
    assert net.trained == ("weight_1", "weight_2", "weight_3")


@pytest.mark.parametrize("scaling", ["linear", "sqrt"])
@pytest.mark.parametrize("mechanism", ["softmax", "identity", "relu", "abs"])
def test_attention_by_loops(scaling, mechanism):
    layer = a.SelfAttention(3, 2, 4, 5, scaling, mechanism, 0.49, 1.2, 0.8, 0.3)
    net = wf.Deep.init(2, layer, (2, 2, 6))  # four positions of a small image
    x = np.random.default_rng(0).standard_normal((2, 2, 6))
    rows = x.reshape(4, 6)
    *readers, out = [np.asarray(w) for w in net.weights]
    scaled = [
        std * rows @ w / np.sqrt(6) for w, std in zip(readers, [*[0.7] * (len(readers) - 1), 1.2])
    ]
    queries, keys, values = scaled[0], scaled[-2], scaled[-1]
    heads = []
    for h in range(2):
        q, k, v = (
            queries[:, 4 * h : 4 * h + 4],
            keys[:, 4 * h : 4 * h + 4],
            values[:, 5 * h : 5 * h + 5],
        )
        g = q @ k.T / (4 if scaling == "linear" else 2)
        zeta = {
            "softmax": np.exp(g) / np.exp(g).sum(1, keepdims=True),
            "identity": g,
            "relu": np.maximum(g, 0),
            "abs": np.abs(g),
        }
        heads.append(zeta[mechanism] @ v)
    expected = 0.8 * np.concatenate(heads, axis=1) @ out / np.sqrt(10) + 0.3 * np.asarray(
        net.biases[-1]
    )
    assert len(readers) == (2 if scaling == "linear" else 3)
    assert_allclose(np.asarray(net(x)).reshape(4, 3), expected, rtol=1e-12)


def test_widths_of_attention():
    whole = a.Chain(a.SelfAttention(7, 2, 4, 5), a.SelfAttention(3, 2, 4, 5))
    first, last = a.with_width(whole, 64).layers
    assert (first.width, first.heads, first.key_width, first.value_width) == (64, 8, 8, 8)
    assert (last.width, last.heads) == (3, 8)  # what comes out keeps its size


def test_the_law_at_the_start():
    # h^2 of a wide layer: E h^2 = sw^2 E phi(h^1)^2 + sb^2, h^1 ~ N(0, sw^2 |x|^2/D + sb^2); tanh
    # integrated by quadrature
    sw, sb, width = 1.3, 0.4, 1000
    # orthogonal inputs of one length: with weights alone their pre-activations would be
    # independent, the shared biases hardly matter
    inputs = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0] * 2.3
    x, count = inputs[0], 3 * width
    architecture = mlp(2, width, "tanh", weight_std=sw, bias_std=sb)
    for name in ("ntk", "standard", "mean-field", "maximal-update"):
        net = wf.Deep.init(1, architecture, 3, name)
        h = net.preactivations(inputs)
        first = sw**2 * (x @ x) / 3 + sb**2
        nodes, mass = np.polynomial.hermite_e.hermegauss(60)
        second = sw**2 * (mass / mass.sum()) @ np.tanh(np.sqrt(first) * nodes) ** 2 + sb**2
        for value, expected in ((h["layer_1"], first), (h["layer_2"], second)):
            # a mean of `count` squares of normals has standard error expected x sqrt(2 / count)
            assert value.shape == (3, width)
            assert np.mean(np.asarray(value) ** 2) == pytest.approx(
                expected, abs=4 * expected * np.sqrt(2 / count)
            )


@pytest.mark.parametrize("scaling", [wf.scalings.NTK(), wf.scalings.MeanField()])
@pytest.mark.parametrize("kind", ["identity", "random features", "deep random features"])
def test_partially_trained_networks_are_a_special_case(scaling, kind):
    # chen2022: frozen layers, one trained, a frozen readout of signs
    rng, width, embedded = np.random.default_rng(2), 12, 9
    z, inner = rng.normal(size=(embedded, 5)), rng.normal(size=(embedded, embedded))
    frozen = {
        "identity": (wf.embeddings.Identity(), []),
        "random features": (wf.embeddings.RandomFeatures(z, "tanh"), [z.T]),
        "deep random features": (
            wf.embeddings.DeepRandomFeatures(z, [inner], "tanh"),
            [z.T, inner.T],
        ),
    }
    embedding, before = frozen[kind]
    hidden, signs = (
        rng.normal(size=(width, embedded if before else 5)),
        rng.choice([-1.0, 1.0], width),
    )
    shallow = wf.Shallow(hidden, signs, scaling, "tanh", embedding)
    layers = [part for _ in before for part in (Dense(embedded, trained=False), Activate("tanh"))]
    architecture = Chain(*layers, Dense(width), Activate("tanh"), Dense(1, trained=False))
    name = "ntk" if isinstance(scaling, wf.scalings.NTK) else "mean-field"
    deep = wf.Deep(architecture, 5, [*before, hidden.T, signs[:, None]], parametrisation=name)
    assert deep.trained == (f"weight_{len(before) + 1}",)
    runs = [wf.train(net, DATA, wf.GradientDescent(0.3), steps=20) for net in (shallow, deep)]
    assert_allclose(runs[1].table.loss, runs[0].table.loss, rtol=1e-12)
    assert_allclose(getattr(runs[1].model, deep.trained[0]), runs[0].model.weights, atol=1e-12)
    assert_allclose(
        wf.observables.tangent_gram(deep, DATA.inputs),
        wf.observables.tangent_gram(shallow, DATA.inputs),
        rtol=1e-12,
    )


def test_node_weights_in_a_hidden_layer():
    # caron2023: the same network as `Shallow` with Zipf weights
    rng, scaling = np.random.default_rng(3), wf.scalings.Zipf(gamma=0.3, alpha=0.6)
    hidden, signs = rng.normal(size=(12, 5)), rng.choice([-1.0, 1.0], 12)
    shallow = wf.Shallow(hidden, signs, scaling, "relu")
    architecture = Chain(Dense(12, node_scaling=scaling), Activate("relu"), Dense(1, trained=False))
    deep = wf.Deep(architecture, 5, [hidden.T, signs[:, None]])
    runs = [wf.train(net, DATA, wf.GradientDescent(0.3), steps=20) for net in (shallow, deep)]
    assert_allclose(runs[1].table.loss, runs[0].table.loss, rtol=1e-12)
    second = Chain(
        Dense(4), Activate("relu"), Dense(12, node_scaling=scaling), Activate("relu"), Dense(1)
    )
    net = wf.Deep.init(0, second, 5)
    scales = np.asarray(scaling.node_scales(12))
    h = np.asarray(net.preactivations(DATA.inputs)["layer_2"])
    assert_allclose(
        net.outputs(DATA.inputs),
        np.maximum(h, 0) * scales @ np.asarray(net.weight_3)[:, 0],
        rtol=1e-12,
    )


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_shifting_the_exponents_leaves_training_unchanged(depth):
    # W = n^-a w starts at n^-(a+b) z and moves by n^-(2a+c) dL/dW: the shift keeps both, also layer
    # by layer.
    a, b = (0, *(0.5,) * depth), (0,) * (depth + 1)
    plain = wf.scalings.ABC(a, b, 0.0)
    shifts = np.linspace(-0.5, 0.75, depth + 1)
    own = wf.scalings.ABC(
        tuple(a + shifts), tuple(b - shifts), tuple(-2 * shifts)
    )  # its own shift in every layer
    architecture = mlp(depth, 16, "tanh", bias_std=0.2)
    losses = []
    for exponents in (plain, plain.shifted(0.5), own):
        net = wf.Deep.init(3, architecture, 5, exponents)
        losses.append(wf.train(net, DATA, wf.GradientDescent(0.2), steps=15).table.loss.values)
    assert_allclose(losses[1], losses[0], rtol=1e-9)
    assert_allclose(losses[2], losses[0], rtol=1e-9)


def test_seeds_run_together_and_flow_follows_small_steps():
    nets = [wf.Deep.init(k, mlp(2, 16, "tanh"), 5, "mean-field") for k in range(3)]
    together = wf.train(nets, DATA, wf.GradientDescent(0.05), steps=10)
    alone = wf.train(nets[2], DATA, wf.GradientDescent(0.05), steps=10)
    assert_allclose(together.table.loss.values[2], alone.table.loss.values, rtol=1e-12)
    flow = wf.train(nets[0], DATA, wf.GradientFlow(), time=0.5)
    errors = []
    for rate in (1e-3, 5e-4):
        steps = wf.train(nets[0], DATA, wf.GradientDescent(rate), time=0.5, every=10**6)
        errors.append(float(steps.table.loss[-1] - flow.table.loss[-1]))
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.1)  # descent is of first order


def test_float32_and_several_outputs():
    net = wf.Deep.init(0, mlp(2, 16, outputs=3), 5)
    targets = np.random.default_rng(0).normal(size=(7, 3))
    run = wf.train(
        net, wf.Dataset(DATA.inputs, targets), wf.SGD(0.1, batch=3), steps=5, precision="float32"
    )
    assert run.model.weight_1.dtype == jnp.float32
    assert run.model.outputs(DATA.inputs).shape == (7, 3)


def test_a_deeper_network_has_the_same_first_layers():
    two, three = (wf.Deep.init(5, mlp(depth, 8), 5) for depth in (2, 3))
    assert_allclose(two.weight_2, three.weight_2)
    wide = wf.Deep.init(5, with_width(mlp(2, 8), 16), 5)
    assert wide.weight_2.shape == (16, 16)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wf.Deep.init(0, "mlp", 5), "`architecture` must be layers"),
        (lambda: wf.Deep.init(0, mlp(1, 4), 0), "`features` must be a whole number"),
        (lambda: wf.Deep.init(0, Conv(4, (3, 3)), 5), "needs inputs of 2 spatial axes"),
        (
            lambda: wf.Deep(mlp(1, 4), 5, [np.ones((5, 4))]),
            "one entry for each of the 2 weight layers",
        ),
        (
            lambda: wf.Deep(mlp(1, 4), 5, [np.ones((4, 5)), np.ones((4, 1))]),
            r"must have shape \(5, 4\)",
        ),
        (lambda: wf.Deep(Dense(1), 2, [np.ones((2, 1))], [np.ones(1)]), "its layer has no bias"),
        (
            lambda: wf.Deep.init(0, mlp(1, 4), 5).outputs(np.ones((3, 4))),
            "`inputs` must have shape",
        ),
        (lambda: wf.Deep.init(0, mlp(1, 4), 5).outputs(np.ones(5)), "call the model itself"),
        (lambda: wf.Deep.init(0, Dense(3, trained=False), 5).trained, "no trained layer"),
        (lambda: wf.Deep.init(0, mlp(1, 4), 5, "xavier"), "`parametrisation` must be"),
    ],
)
def test_wrong_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_rescaled_is_the_same_kernel_with_less_movement():
    net = wf.Deep.init(0, mlp(2, 32, "tanh"), 5)
    lazy = wf.rescaled(net, alpha=1e4, centred=True)
    assert_allclose(
        wf.observables.tangent_gram(lazy, DATA.inputs),
        wf.observables.tangent_gram(net, DATA.inputs),
        rtol=1e-10,
    )
    # alpha -> infinity: outputs follow u' = -Theta (u - y) exactly; the next order is 1/alpha
    steps, rate = 30, 0.05
    run = wf.train(lazy, DATA, wf.GradientDescent(rate), steps=steps)
    gram = np.asarray(wf.observables.tangent_gram(net, DATA.inputs))
    residual = np.linalg.matrix_power(np.eye(7) - rate * gram, steps) @ -DATA.targets
    assert_allclose(lazy.outputs(DATA.inputs), 0, atol=1e-12)
    assert_allclose(run.model.outputs(DATA.inputs), DATA.targets + residual, atol=1e-3)
    rich = wf.rescaled(net, richness=2.0)
    assert_allclose(rich.outputs(DATA.inputs), 0.5 * net.outputs(DATA.inputs), rtol=1e-12)
    gradient = lambda m: wf.train(m, DATA, wf.GradientDescent(0.1), steps=1).model.weight_1
    inner, pull = net.pullback(jnp.asarray(DATA.inputs))
    expected = net.weight_1 - 0.1 * 4 * 0.5 * pull(0.5 * inner - DATA.targets)["weight_1"]
    assert_allclose(gradient(rich), expected, rtol=1e-12)


def test_rescaled_wants_one_knob():
    net = wf.Deep.init(0, mlp(1, 4), 5)
    with pytest.raises(ValueError, match="exactly one of `alpha` and `richness`"):
        wf.rescaled(net, alpha=1.0, richness=1.0)
    with pytest.raises(ValueError, match=r"Use `wideflow\.wrap` first"):
        wf.rescaled(lambda x: x, alpha=1.0)
