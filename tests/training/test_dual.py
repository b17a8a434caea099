"""Both engines against plain numpy descent, for the three scalings of chen2022's Table 1."""

import time

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.training.dual import from_dual, to_dual

RNG = np.random.default_rng(0)
N, D_IN, M = 4, 3, 6
X, Y = RNG.normal(size=(N, D_IN)), RNG.normal(size=N)
XT, YT = RNG.normal(size=(5, D_IN)), RNG.normal(size=5)
EMBEDDING = wf.embeddings.RandomFeatures(RNG.normal(size=(9, D_IN)), "tanh")
W0, C = RNG.normal(size=(M, 9)), np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0])

# scaling: output prefactor, hidden prefactor, learning-rate factor, at width m and D features
# (chen2022, Table 1)
TABLE = {
    "ours": (wf.scalings.MeanField(), lambda m, D: (1 / m, D**-0.5, m)),
    "NTK": (wf.scalings.NTK(), lambda m, D: (m**-0.5, D**-0.5, 1.0)),
    "MF": (wf.scalings.MeanField(hidden=1.0), lambda m, D: (1 / m, 1 / D, m * D)),
}
ACTIVATIONS = {
    "tanh": (np.tanh, lambda h: 1 - np.tanh(h) ** 2),
    "relu": (lambda h: np.maximum(h, 0), lambda h: (h > 0).astype(float)),
}


def numpy_descent(phi, y, c, w, factors, act, rate, steps, mean):
    """Algorithm A1 of the paper's appendix, line by line; losses and final weights."""
    po, ph, lr = factors
    sigma, slope = act
    losses = []
    for _ in range(steps + 1):
        h = ph * w @ phi.T
        r = po * c @ sigma(h) - y
        losses.append(0.5 * np.sum(r**2) / (len(y) if mean else 1))
        g = po * ph * (c[:, None] * slope(h) * r) @ phi / (len(y) if mean else 1)
        last, w = w, w - lr * rate * g
    return np.array(losses), last


@pytest.mark.parametrize("engine", ["weights", "function"])
@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("act", ["tanh", "relu"])
@pytest.mark.parametrize("name", list(TABLE))
def test_three_scalings_against_numpy(name, act, mean, engine):
    scaling, factors = TABLE[name]
    net = wf.Shallow(W0, C, scaling, act, EMBEDDING)
    loss = wf.losses.HalfMeanSquares() if mean else wf.losses.HalfSumSquares()
    run = wf.train(
        net, wf.Dataset(X, Y), wf.GradientDescent(0.3), steps=20, every=1, loss=loss, engine=engine
    )
    phi = np.asarray(EMBEDDING.embed(X))
    losses, w = numpy_descent(phi, Y, C, W0, factors(M, 9), ACTIVATIONS[act], 0.3, 20, mean)
    assert run.table.attrs["engine"] == engine
    assert_allclose(run.table.loss, losses, rtol=1e-11)
    assert_allclose(run.model.hidden, w, atol=1e-11)


def test_test_points_are_carried_along():
    net = wf.Shallow(W0, C, wf.scalings.MeanField(), "tanh", EMBEDDING)
    record = [
        wf.observables.TestRisk(),
        wf.observables.FeatureMovement(),
        wf.observables.KernelMinEigenvalue(),
    ]
    runs = [
        wf.train(
            net,
            wf.Dataset(X, Y),
            wf.GradientDescent(0.2),
            steps=30,
            record=record,
            test=wf.Dataset(XT, YT),
            engine=e,
        )
        for e in ("weights", "function")
    ]
    for name in ("test_risk", "feature_movement", "kernel_gap"):
        assert_allclose(runs[0].table[name], runs[1].table[name], atol=1e-12)


def test_flow_closes_too():
    net = wf.Shallow(W0, C, wf.scalings.MeanField(), "tanh", EMBEDDING)
    runs = [
        wf.train(
            net, wf.Dataset(X, Y), wf.GradientFlow(1e-11, "dopri8"), time=3.0, every=1.0, engine=e
        )
        for e in ("weights", "function")
    ]
    assert_allclose(runs[0].table.loss, runs[1].table.loss, rtol=1e-8)


def test_several_outputs_and_several_members():
    targets = np.stack([Y, -Y[::-1]], axis=1)
    nets = [
        wf.Shallow.init(
            jax.random.key(s),
            features=D_IN,
            width=8,
            outputs=2,
            embedding=wf.embeddings.Quadratic(),
            activation="tanh",
        )
        for s in range(3)
    ]
    runs = [
        wf.train(nets, wf.Dataset(X, targets), wf.GradientDescent(0.2), steps=12, engine=e)
        for e in ("weights", "function")
    ]
    assert runs[1].table.loss.dims == ("seed", "step")
    assert_allclose(runs[0].table.loss, runs[1].table.loss, rtol=1e-11)
    assert_allclose(runs[0].model[2].hidden, runs[1].model[2].hidden, atol=1e-12)


def test_to_the_dual_and_back_is_the_same_network():
    net = wf.Shallow(W0, C, wf.scalings.NTK(), "relu", EMBEDDING)
    objective = wf.Dataset(X, Y).objective(wf.losses.HalfSumSquares(), net)
    dual, inner = to_dual(net, objective)
    assert_allclose(dual.respond(inner.features), net.outputs(X), atol=1e-14)
    assert_allclose(from_dual(dual, net, objective).hidden, W0)
    with pytest.raises(ValueError, match="`inputs`"):
        dual.embed(X)


def test_a_singular_gram_matrix_is_no_exception():
    # more samples than features: D = 3 < n = 4
    net = wf.Shallow(W0[:, :3], C, wf.scalings.MeanField(), "tanh")
    runs = [
        wf.train(net, wf.Dataset(X, Y), wf.GradientDescent(0.2), steps=25, engine=e)
        for e in ("weights", "function")
    ]
    assert_allclose(runs[0].table.loss, runs[1].table.loss, rtol=1e-11)


def test_auto_takes_the_cheaper_engine_and_says_so():
    net = wf.Shallow.init(
        jax.random.key(0),
        features=800,
        width=64,
        scaling=wf.scalings.MeanField(),
        activation="tanh",
    )
    data = wf.data.random_labels(jax.random.key(1), samples=8, features=800)
    long = wf.train(net, data, wf.GradientDescent(0.1), steps=4000, every=4000)
    assert long.table.attrs["engine"] == "function"
    short = wf.train(net, data, wf.GradientDescent(0.1), steps=4)
    assert short.table.attrs["engine"] == "weights"


def test_dynamics_that_do_not_close_are_refused():
    net = wf.Shallow(W0, C, wf.scalings.NTK(), "tanh", EMBEDDING)
    with pytest.raises(ValueError, match="`engine`"):
        wf.train(net, wf.Dataset(X, Y), wf.SGD(rate=0.1, batch=2), steps=2, engine="function")
    with pytest.raises(ValueError, match="closes on the samples by itself"):
        wf.train(net, wf.Dataset(X, Y), wf.GradientFlow(), time=1.0, engine="function")
    with pytest.raises(ValueError, match="`engine`"):
        wf.train(net, wf.Dataset(X, Y), wf.GradientDescent(0.1), steps=2, engine="fast")


@pytest.mark.slow
def test_function_space_is_five_times_faster():
    data = wf.data.random_labels(jax.random.key(1), samples=40, features=400)
    net = wf.Shallow.init(
        jax.random.key(0),
        features=400,
        width=1024,
        scaling=wf.scalings.MeanField(),
        activation="relu",
    )
    seconds = {}
    for engine in ("weights", "function"):
        wf.train(net, data, wf.GradientDescent(0.1), steps=20, every=20, engine=engine)  # compiles
        began = time.perf_counter()
        wf.train(net, data, wf.GradientDescent(0.1), steps=2000, every=2000, engine=engine)
        seconds[engine] = time.perf_counter() - began
    assert seconds["weights"] > 5 * seconds["function"], seconds
