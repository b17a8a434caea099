"""The clipped field against a loop over samples, and the flow against autodiff and hand steps."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.data.objective import gradient_by_autodiff
from wideflow.papers.ren2023.clipped_flow import ClippedFlow
from wideflow.papers.ren2023.depth_separator import DepthSeparator
from wideflow.papers.ren2023.laws.bessel import BesselLaw
from wideflow.papers.ren2023.laws.thresholds import Thresholds
from wideflow.papers.ren2023.population import Radial
from wideflow.papers.ren2023.separator.samples import sample_field

RNG = np.random.default_rng(3)
FIRST = RNG.normal(size=(5, 3)) / 2
W, B = np.array([-0.7, 0.4, -1.1]), np.array([0.6, -0.1, 0.9])
X = np.concatenate([RNG.normal(size=(6, 3)), RNG.normal(size=(3, 3)) * 20])
Y = np.maximum(1 - np.linalg.norm(X, axis=1), 0)
TIGHT = Thresholds(0.8, 0.5, 0.3)


def net():
    return DepthSeparator(FIRST, W, B)


def by_loops(clip):
    """Equation (4) read literally: one sample, one neuron, project, then average."""

    def ball(v, bound):
        size = np.linalg.norm(v)
        return v if size <= bound else v * (bound / size)

    first, w, b, counts = np.zeros_like(FIRST), np.zeros(3), np.zeros(3), np.zeros(3)
    for x, y in zip(X, Y, strict=True):
        layer = np.mean([np.linalg.norm(v) * max(v @ x, 0) for v in FIRST])
        z = W * layer + B
        e = y - np.mean(np.maximum(z, 0))
        s = e * np.mean(np.where(z > 0, W, 0))
        for i, v in enumerate(FIRST):
            n, on = np.linalg.norm(v), v @ x > 0
            g = s * (v / n * max(v @ x, 0) + n * on * x)
            first[i] += ball(g, clip.first) / len(X)
            counts[0] += np.linalg.norm(g) > clip.first
        for j in range(3):
            gw, gb = e * layer * (z[j] > 0), e * (z[j] > 0)
            w[j] += np.clip(gw, -clip.weight, clip.weight) / len(X)
            b[j] += np.clip(gb, -clip.bias, clip.bias) / len(X)
            counts[1] += abs(gw) > clip.weight
            counts[2] += abs(gb) > clip.bias
    return first, w, b, counts


@pytest.mark.parametrize(
    "clip", [Thresholds(), TIGHT, Thresholds(first=5.0)], ids=["free", "tight", "first"]
)
def test_field_is_the_mean_of_projected_gradients(clip):
    first, w, b, counts = by_loops(clip)
    found = sample_field(
        net().first, net().second_weight, net().second_bias, jnp.asarray(X), jnp.asarray(Y), clip
    )
    assert_allclose(found.first, first, rtol=1e-11, atol=1e-14)
    assert_allclose(found.weight, w, rtol=1e-11, atol=1e-14)
    assert_allclose(found.bias, b, rtol=1e-11, atol=1e-14)
    assert_allclose(found.pairs, counts)
    assert_allclose(found.share, counts / [45, 27, 27])
    if clip is TIGHT:
        assert np.all(counts > 0)


def test_without_projection_it_is_mean_field_descent():
    # the plain gradient of the half mean of squares, times m1, m2, m2
    data = wf.Dataset(X, Y)
    objective = data.objective(wf.losses.HalfMeanSquares(), net())
    _, gradient = gradient_by_autodiff(objective, net())
    inf = float("inf")
    run = wf.train(
        net(), data, ClippedFlow(0.01, inf, inf, inf), steps=1, loss=wf.losses.HalfMeanSquares()
    )
    factors = {"first": 5, "second_weight": 3, "second_bias": 3}
    for name, factor in factors.items():
        expected = getattr(net(), name) - 0.01 * factor * gradient[name]
        assert_allclose(getattr(run.model, name), expected, rtol=1e-11)
    assert run.table.time.values[-1] == pytest.approx(0.01)


def test_counters_add_up_and_steps_follow_the_field():
    run = wf.train(net(), wf.Dataset(X, Y), ClippedFlow(0.1, *TIGHT), steps=2)
    first, w, b, counts = by_loops(TIGHT)
    one = wf.train(net(), wf.Dataset(X, Y), ClippedFlow(0.1, *TIGHT), steps=1)
    assert_allclose(one.model.first, FIRST + 0.1 * first, rtol=1e-11)
    assert_allclose(one.model.second_weight, W + 0.1 * w, rtol=1e-11)
    assert_allclose(one.model.second_bias, B + 0.1 * b, rtol=1e-11)
    assert_allclose(one.state.held, counts)
    assert np.all(np.asarray(run.state.held) >= counts)
    assert np.all(np.asarray(run.state.held_steps) == 2)


def test_order_of_the_two_step_methods():
    # a short path on which no neuron switches: Euler is of first order, Heun of second
    inf = float("inf")
    start = DepthSeparator(FIRST, -np.abs(W), np.abs(B))
    data = wf.Dataset(X[:3] / 10, Y[:3] + 0.5)

    def end(rate, heun):
        flow = ClippedFlow(rate, inf, inf, inf, heun=heun)
        return wf.train(
            start, data, flow, steps=round(0.25 / rate), every=round(0.25 / rate)
        ).model.second_bias

    exact = end(1 / 1024, True)
    errors = {
        heun: [float(jnp.abs(end(h, heun) - exact).max()) for h in (1 / 8, 1 / 16)]
        for heun in (False, True)
    }
    assert 1.7 < errors[False][0] / errors[False][1] < 2.3
    assert 3.4 < errors[True][0] / errors[True][1] < 4.6


def test_step_size_rules():
    law = BesselLaw(3)
    start = DepthSeparator(FIRST, [-0.5, -0.6, -0.4], [0.5, 0.6, 0.4])
    population = Radial.on(law, X)
    inf = float("inf")
    run = wf.train(
        start, population, ClippedFlow(50.0, inf, inf, inf, adaptive=True), steps=1, every=1
    )
    rho = 0.5 / (0.5 * float(start.alpha))
    m0, _, m2 = (float(m) for m in law.moments(rho))
    bound = m0 + (float(start.alpha) ** 2 + 4 * law.gain * 0.25 * float(start.alpha)) * m2
    assert run.table.time.values[-1] == pytest.approx(0.5 / bound, rel=1e-9)
    with pytest.raises(ValueError, match="`time`"):
        wf.train(start, population, ClippedFlow(0.5, adaptive=True), time=1.0)
    resolved = wf.train(start, population, ClippedFlow(50.0, resolve=True), steps=1, every=1)
    assert resolved.table.time.values[-1] < 50.0


def test_energy_balance_is_conserved_by_the_field_on_any_batch():
    # d/dt (mean |w1|^2 - 2 mean w2^2) = 2 mean <w1, v1'> - 4 mean w2 w2' = 0
    field = sample_field(
        net().first,
        net().second_weight,
        net().second_bias,
        jnp.asarray(X),
        jnp.asarray(Y),
        Thresholds(),
    )
    balance = 2 * np.mean(np.sum(FIRST * field.first, axis=1)) - 4 * np.mean(W * field.weight)
    assert abs(balance) < 1e-12 * np.mean(np.abs(W * field.weight))


def test_float32_training_stays_float32():
    run = wf.train(
        net(),
        Radial.fresh(BesselLaw(3), 32, evaluation=32),
        ClippedFlow(0.1),
        steps=3,
        precision="float32",
    )
    assert run.model.first.dtype == jnp.float32
    assert run.status.good


def test_same_key_same_path():
    population = Radial.fresh(BesselLaw(3), 16, evaluation=16)
    ends = [
        wf.train(net(), population, ClippedFlow(0.1), steps=3, key=k).model.first for k in (1, 1, 2)
    ]
    assert np.array_equal(ends[0], ends[1])
    assert not np.array_equal(ends[0], ends[2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ClippedFlow(-1.0), "`rate`"),
        (lambda: ClippedFlow(0.1, first=0.0), "`first`"),
        (
            lambda: wf.train(net(), wf.Dataset(X, Y), ClippedFlow(0.1, adaptive=True), steps=1),
            "`adaptive`",
        ),
        (
            lambda: wf.train(
                net(), Radial.fresh(BesselLaw(3), 8, evaluation=8), wf.GradientDescent(0.1), steps=1
            ),
            "ClippedFlow",
        ),
        (
            lambda: wf.train(
                net(), Radial.fresh(BesselLaw(4), 8, evaluation=8), ClippedFlow(0.1), steps=1
            ),
            "dimension",
        ),
        (
            lambda: wf.train(
                wf.Shallow(FIRST, W[[0, 1, 2, 0, 1]]), wf.Dataset(X, Y), ClippedFlow(0.1), steps=1
            ),
            "DepthSeparator",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
