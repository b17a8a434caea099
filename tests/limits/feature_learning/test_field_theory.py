"""The field theory against finite networks, the tangent kernel, the shallow mean field and the exact linear case."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow._core.architecture import mlp
from wideflow.papers.bordelon2022.networks import trained_networks

INPUTS = np.random.default_rng(0).normal(size=(4, 5))
TARGETS = np.array([1.0, -1.0, 0.5, -0.5])
KEY = jax.random.key(0)


@pytest.mark.parametrize("depth", [1, 3])
def test_linear_networks_come_out_exactly_by_both_routes(depth):
    # Draws with exact second moments leave no Monte Carlo error in a theory that is linear in its sources;
    # one route marches over samples, the other substitutes matrices over the whole history.
    settings = {"rate": 0.1, "steps": 4, "richness": 1.5, "test": INPUTS[3:]}
    exact = wf.limits.linear_field_theory(INPUTS[:3], TARGETS[:3], depth=depth, **settings)
    sampled = wf.limits.field_theory(
        KEY,
        INPUTS[:3],
        TARGETS[:3],
        mlp(depth, activation="linear"),
        samples=80,
        repeats=2,
        **settings,
    )
    assert exact.converged
    assert_allclose(sampled.outputs, exact.outputs, atol=1e-10)
    assert_allclose(sampled.features, exact.features, atol=1e-8)
    assert_allclose(sampled.gradients, exact.gradients, atol=1e-8)
    assert (
        float(np.abs(exact.features[-1, -1] - exact.features[-1, 0]).max()) > 0.1
    )  # features moved


def test_the_linear_theory_is_the_limit_of_linear_networks():
    width, seeds, settings = 1000, 4, {"depth": 2, "rate": 0.15, "steps": 6, "richness": 2.0}
    exact = wf.limits.linear_field_theory(INPUTS, TARGETS, **settings)
    networks = {"activation": "linear", "width": width, "seeds": seeds}
    runs = np.asarray(trained_networks(KEY, INPUTS, TARGETS, **networks, **settings)[1])
    error = runs.std(axis=0, ddof=1).max() / np.sqrt(seeds)
    # Four standard errors of the worst entry, and the finite width's own bias of order 1/width.
    assert_allclose(runs.mean(axis=0), exact.outputs, atol=4 * error + 5 / width)


@pytest.fixture(scope="module")
def rich():
    return wf.limits.field_theory(
        KEY, INPUTS, TARGETS, 2, rate=0.15, steps=12, richness=2.0, samples=2048, repeats=2, neurons=64
    )  # fmt: skip


def test_finite_networks_approach_the_theory_where_features_move(rich):
    seeds, settings = 4, {"depth": 2, "rate": 0.15, "steps": 12, "richness": 2.0}
    networks = {"activation": "tanh", "width": 1000, "seeds": seeds}
    _, outputs, grams = trained_networks(KEY, INPUTS, TARGETS, **networks, **settings)
    outputs, network_features = np.asarray(outputs), np.asarray(grams).mean(axis=0)
    assert rich.status.good
    # The networks' standard error and the theory's (from two repeats only, hence the factor) at the worst entry.
    error = outputs.std(axis=0, ddof=1).max() / np.sqrt(seeds) + float(rich.outputs_error.max())
    assert_allclose(outputs.mean(axis=0), rich.outputs, atol=4 * error)
    for layer in range(2):
        theory = np.asarray(rich.features)[layer, -1, :, -1, :]
        network, start = network_features[layer], np.asarray(rich.features)[layer, 0, :, 0, :]
        gap = np.linalg.norm(network - theory) / np.linalg.norm(theory)
        assert (
            gap < 0.06
        )  # 1/sqrt(4 x 1000) and 1/sqrt(2 x 2048) at relative deviations of order one, four times
        assert np.linalg.norm(network - start) > 0.3 * np.linalg.norm(start)  # far from lazy


def test_kinks_are_answered_for():
    # With a slope that jumps the response is a density at the kink, of which derivatives along a path know nothing.
    seeds, settings = 4, {"rate": 0.15, "steps": 6, "richness": 2.0, "activation": "relu"}
    theory = wf.limits.field_theory(KEY, INPUTS, TARGETS, 2, samples=4096, repeats=2, **settings)
    _, outputs, _ = trained_networks(
        KEY, INPUTS, TARGETS, depth=2, width=1000, seeds=seeds, **settings
    )
    outputs = np.asarray(outputs)
    error = outputs.std(axis=0, ddof=1).max() / np.sqrt(seeds) + float(theory.outputs_error.max())
    assert error < 0.05
    assert_allclose(outputs.mean(axis=0), theory.outputs, atol=4 * error)
    assert np.abs(np.asarray(theory.backward_responses)[0, -1, :, -1].diagonal()).max() > 0.1


def test_responses_are_causal_and_at_equal_times_not_zero(rich):
    forward, backward = np.asarray(rich.forward_responses), np.asarray(rich.backward_responses)
    for k in range(13):
        assert_allclose(forward[:, k, :, k:], 0.0)  # phi(h(k)) knows r of earlier steps alone
        assert_allclose(backward[:, k, :, k + 1 :], 0.0)
    # <phi''(h) z> at equal times: what a flow shows as a delta function; without it the test above fails.
    assert np.abs(backward[0, -1, :, -1].diagonal()).min() > 0.1


def test_single_neurons_are_shown(rich):
    assert rich.preactivations.shape == (2, 13, 4, 64)
    second = np.mean(np.asarray(rich.preactivations)[0, 0] ** 2, axis=-1)
    start = np.sum(INPUTS**2, axis=1) / 5
    assert_allclose(
        second, start, rtol=4 * np.sqrt(2 / 16)
    )  # 16 independent draws, four signs each


def test_small_richness_is_descent_on_the_tangent_kernel():
    x, y, rate, steps = INPUTS[:2], TARGETS[:2], 0.2, 5
    theory = wf.limits.field_theory(
        KEY, x, y, 2, activation="erf", rate=rate, steps=steps, richness=1e-3, samples=40_000, repeats=2
    )  # fmt: skip
    # Two layers of erf: the tangent kernel by its recursion, K1 = G o S(G) + Phi1, K2 = K1 o S(Phi1) + Phi2.
    gram = x @ x.T / 5
    first = wf.limits.hidden_gram(x, "erf", depth=1)
    kernel = gram * wf.limits.slope_gram(gram, "erf") + first
    kernel = kernel * wf.limits.slope_gram(first, "erf") + wf.limits.hidden_gram(x, "erf", depth=2)
    outputs, path = np.zeros(2), []
    for _ in range(steps + 1):
        path.append(outputs)
        outputs = outputs + rate * kernel @ (y - outputs)
    atol = 5 * float(theory.outputs_error.max()) + 1e-4  # and what richness 1e-3 moves
    assert (
        atol < 0.03
    )  # 5 deviations of order one over the root of 2 x 40,000 draws; the path itself is of order one
    assert_allclose(theory.outputs, np.stack(path), atol=atol)
    assert_allclose(theory.kernels[0], kernel, rtol=2e-2)


def test_one_hidden_layer_with_frozen_signs_is_the_shallow_mean_field():
    # `mean_field` at magnitude 1 is the flow of h alone with c = +-1; its neuron factor N is richness 1 here.
    x, y, time = INPUTS[:2], TARGETS[:2], 1.0
    flow = wf.limits.mean_field(x @ x.T / 5, y, "tanh", [time], spacing=0.1).outputs[0]
    ends = []
    for steps in (4, 8):
        path = wf.limits.field_theory(
            KEY, x, y, 1, rate=time / steps, steps=steps, samples=8000, repeats=4, readout="frozen signs"
        )  # fmt: skip
        ends.append(np.asarray(path.outputs)[-1])
    extrapolated = 2 * ends[1] - ends[0]  # descent differs from the flow in first order of the rate
    # Independent errors would add to sqrt(5) of one; four standard errors, and the second order in a rate of 1/8.
    error = np.sqrt(5) * float(path.outputs_error[-1].max())
    assert error < 5e-3
    assert_allclose(extrapolated, flow, atol=4 * error + 2e-3)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rate": 50.0}, "`rate` must be below"),
        ({"samples": 20}, "`samples` must be a multiple of 4 and at least 48"),
        ({"memory": "100K"}, "`memory` allows"),
        ({"activation": jnp.sign}, "`activation` must be continuous"),
        ({"activation": jax.nn.relu}, "`activation` must declare its kinks"),
        ({"richness": 0.0}, "`richness` must be positive"),
        ({"repeats": 1}, "`repeats` must be a whole number of at least 2"),
        ({"architecture": mlp(2, bias_std=0.1)}, "`architecture` must be a multilayer perceptron"),
    ],
)
def test_bad_input_is_one_sentence(changes, sentence):
    given = {"architecture": 2, "steps": 2, "samples": 400} | changes
    with pytest.raises(ValueError, match="^" + sentence.replace("(", r"\(")):
        wf.limits.field_theory(KEY, INPUTS, TARGETS, **given)


def test_another_loss_is_descended():
    # A loss twice as large at half the rate is the same path.
    settings = {"steps": 2, "samples": 48, "repeats": 2}
    plain = wf.limits.field_theory(KEY, INPUTS, TARGETS, 1, rate=0.1, **settings)
    double = wf.limits.field_theory(
        KEY, INPUTS, TARGETS, 1, rate=0.05, loss=lambda f, y: (f - y) ** 2, **settings
    )
    assert_allclose(plain.outputs, double.outputs, atol=1e-12)
    assert_allclose(2 * plain.losses, double.losses, atol=1e-12)
