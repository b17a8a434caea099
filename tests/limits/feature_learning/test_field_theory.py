"""The field theory against finite networks, the tangent kernel, the shallow mean field and the
exact linear case.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow._core.activations import activation
from wideflow._core.architecture import mlp
from wideflow.limits.feature_learning.arguments import half_square
from wideflow.limits.feature_learning.draws import first_sources
from wideflow.limits.feature_learning.loss_estimate import loss_of_mean
from wideflow.limits.feature_learning.solve import Problem, _march_all
from wideflow.papers.bordelon2022.networks import trained_networks

INPUTS = np.random.default_rng(0).normal(size=(4, 5))
TARGETS = np.array([1.0, -1.0, 0.5, -0.5])
KEY = jax.random.key(0)


@pytest.mark.parametrize("depth", [1, 3])
def test_linear_networks_come_out_exactly_by_both_routes(depth):
    # Draws with exact second moments leave no Monte Carlo error in a theory that is linear in its
    # sources; one route marches over samples, the other substitutes matrices over the whole
    # history.
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
    runs = trained_networks(KEY, INPUTS, TARGETS, **networks, **settings)[1]
    error = runs.std(axis=0, ddof=1).max() / np.sqrt(seeds)
    # Four standard errors of the worst entry, and the finite width's own bias of order 1/width.
    assert_allclose(runs.mean(axis=0), exact.outputs, atol=4 * error + 5 / width)


@pytest.fixture(scope="module")
def rich():
    return wf.limits.field_theory(
        KEY,
        INPUTS,
        TARGETS,
        2,
        rate=0.15,
        steps=12,
        richness=2.0,
        samples=2048,
        repeats=2,
        neurons=64,
    )


def test_finite_networks_approach_the_theory_where_features_move(rich):
    seeds, settings = 4, {"depth": 2, "rate": 0.15, "steps": 12, "richness": 2.0}
    networks = {"activation": "tanh", "width": 1000, "seeds": seeds}
    _, outputs, kernels = trained_networks(KEY, INPUTS, TARGETS, **networks, **settings)
    network_features = kernels[:, 0].mean(axis=0)
    assert rich.status.good
    # The networks' standard error and the theory's (from two repeats only, hence the factor) at the
    # worst entry.
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
    # With a slope that jumps the response is a density at the kink, of which derivatives along a
    # path know nothing.
    seeds, settings = 4, {"rate": 0.15, "steps": 6, "richness": 2.0, "activation": "relu"}
    theory = wf.limits.field_theory(KEY, INPUTS, TARGETS, 2, samples=4096, repeats=2, **settings)
    _, outputs, _ = trained_networks(
        KEY, INPUTS, TARGETS, depth=2, width=1000, seeds=seeds, **settings
    )
    error = outputs.std(axis=0, ddof=1).max() / np.sqrt(seeds) + float(theory.outputs_error.max())
    assert error < 0.05
    assert_allclose(outputs.mean(axis=0), theory.outputs, atol=4 * error)


def test_responses_are_causal(rich):
    forward, backward = np.asarray(rich.forward_responses), np.asarray(rich.backward_responses)
    for k in range(13):
        assert_allclose(forward[:, k, :, k:], 0.0)  # phi(h(k)) knows r of earlier steps alone
        assert_allclose(backward[:, k, :, k + 1 :], 0.0)


@pytest.mark.parametrize("name", ["linear", "relu"])
def test_the_first_responses_by_hand(name):
    # One input of |x|^2/D = s^2: h(1) = u + c phi'(u) r with c = rate richness s^2 y, hence
    # A(1, 0) = c P(h(1) and u are active), times the factor of r, <phi'^2>^(1/2). For relu that
    # probability is a quadrant's; r has variance 1/2. Linear: B(1, 0) = rate richness y.
    rate, richness, s, y = 0.2, 2.0, 1.2, 0.8
    settings = {"rate": rate, "steps": 1, "richness": richness, "samples": 2**15, "repeats": 4}
    theory = wf.limits.field_theory(KEY, [[s]], [y], 2, activation=name, **settings)
    c = rate * richness * s**2 * y
    forward = float(theory.forward_responses[0, 1, 0, 0, 0])
    if name == "linear":
        assert forward == pytest.approx(c, abs=1e-12)
        backward = float(theory.backward_responses[0, 1, 0, 0, 0])
        assert backward == pytest.approx(rate * richness * y * s, abs=1e-12)
    else:
        active = 0.25 + np.arcsin(s / np.hypot(s, c / np.sqrt(2))) / (2 * np.pi)
        # 4 x 8192 independent draws of a product with deviation below one half: four standard
        # errors
        assert forward == pytest.approx(c * active / np.sqrt(2), abs=4 * 0.5 / np.sqrt(4 * 8192))


def test_a_kernel_that_outgrows_the_rate_is_told():
    # linear, one input: theta(0) = 3 s^4 for depth two with G = 1 and Phi = s^2 = 1; one step makes
    # f, and with it the kernel, larger
    settings = {"activation": "linear", "steps": 1, "richness": 2.0, "samples": 64, "repeats": 2}
    calm = wf.limits.field_theory(KEY, [[1.0]], [0.8], 2, rate=0.1, **settings)
    assert calm.sharpness[0] == pytest.approx(0.3, abs=1e-12)
    assert_allclose(calm.sharpness, 0.1 * np.asarray(calm.kernels)[:, 0, 0], rtol=1e-12)
    with pytest.warns(UserWarning, match=r"rises from 1.2 to .* at step 1: from 2 on"):
        wf.limits.field_theory(KEY, [[1.0]], [0.8], 2, rate=0.4, **settings)


def test_single_neurons_are_shown(rich):
    assert rich.preactivations.shape == (2, 13, 4, 64)
    second = np.mean(np.asarray(rich.preactivations)[0, 0] ** 2, axis=-1)
    start = np.sum(INPUTS**2, axis=1) / 5
    assert_allclose(second, start, rtol=4 * np.sqrt(2 / 64))  # 64 draws


def test_small_richness_is_descent_on_the_tangent_kernel():
    x, y, rate, steps = INPUTS[:2], TARGETS[:2], 0.2, 5
    theory = wf.limits.field_theory(
        KEY,
        x,
        y,
        2,
        activation="erf",
        rate=rate,
        steps=steps,
        richness=1e-3,
        samples=2**15,
        repeats=4,
    )
    kernel = np.asarray(wf.limits.kernels(mlp(2, activation="erf")).ntk(x))
    outputs, path = np.zeros(2), []
    for _ in range(steps + 1):
        path.append(outputs)
        outputs = outputs + rate * kernel @ (y - outputs)
    # What is left: Monte Carlo, and richness^2 = 1e-6.
    assert 4 * float(theory.outputs_error.max()) < 1e-3
    assert_allclose(theory.outputs, np.stack(path), atol=1e-3)
    assert_allclose(theory.kernels[0], kernel, atol=2e-3 * np.abs(kernel).max())


@pytest.mark.parametrize("name", ["tanh", "relu"])
def test_one_hidden_layer_with_frozen_signs_is_the_shallow_mean_field(name):
    # `mean_field` at magnitude 1 is the flow of h alone with c = +-1; its neuron factor N is
    # richness 1 here.
    x, y, time = INPUTS[:2], TARGETS[:2], 1.0
    flow = wf.limits.mean_field(x @ x.T / 5, y, name, [time], spacing=0.1).outputs[0]
    ends = []
    for steps in (4, 8, 16):
        path = wf.limits.field_theory(
            KEY,
            x,
            y,
            1,
            activation=name,
            rate=time / steps,
            steps=steps,
            samples=2**14,
            repeats=4,
            readout="frozen signs",
        )
        ends.append(np.asarray(path.outputs)[-1])
    # The draws are the same, so first and second order in the rate can be taken off without adding
    # noise.
    extrapolated = (ends[0] - 6 * ends[1] + 8 * ends[2]) / 3
    assert 4 * float(path.outputs_error[-1].max()) < 1e-3
    assert_allclose(extrapolated, flow, atol=1e-3)


def descent_by_quadrature(x, y, rate, steps, richness, nodes=32):
    """Losses of one hidden layer of tanh: its neurons obey closed equations, so means over (u, r)
    are three-fold integrals.
    """
    t, weights = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(t, t, t, indexing="ij"), -1).reshape(-1, 3)
    weights = np.prod(np.meshgrid(weights, weights, weights, indexing="ij"), axis=0).ravel()
    weights /= weights.sum()
    gram = x @ x.T / x.shape[1]
    h, z, losses = grid[:, :2] @ np.linalg.cholesky(gram).T, grid[:, 2], []
    for _ in range(steps + 1):
        phi = np.tanh(h)
        errors = y - weights @ (z[:, None] * phi) / richness
        losses.append(0.5 * errors @ errors)
        force = rate * richness * errors
        h, z = h + (z[:, None] * (1 - phi**2) * force) @ gram, z + phi @ force
    return np.array(losses)


def test_error_bars_of_the_loss_cover_at_their_rate():
    # From a first loss of 1 down to 1e-5. Sixty independent theories of four repeats each, solved
    # in one program; four repeats leave three degrees of freedom.
    x, y, trials, samples, steps = INPUTS[:2], np.array([1.0, -1.0]), 60, 256, 16
    rate, richness = 0.6, 1.5
    truth = descent_by_quadrature(x, y, rate, steps, richness)
    assert truth[-1] < 1e-5
    problem = Problem(1, activation("tanh"), steps, samples, "trained", half_square, 0)
    keys = jax.random.split(KEY, 4 * trials)
    first = np.stack([first_sources(key, 2, 1, samples // 2) for key in keys])
    paths = _march_all(keys, first, x @ x.T / 5, jnp.asarray(y), rate, richness, problem)
    groups = paths["outputs"].reshape(trials, 4, steps + 1, 2)
    losses, errors = jax.vmap(lambda f: loss_of_mean(half_square, f, jnp.asarray(y)))(groups)
    away = np.abs(np.asarray(losses) - truth)[:, 1:] / np.asarray(errors)[:, 1:]
    for level, quantile in ((0.5, 0.765), (0.95, 3.182)):  # Student's t with three degrees
        covered = (away < quantile).mean(axis=0)
        # Four binomial deviations either way at every step.
        assert np.abs(covered - level).max() < 4 * np.sqrt(level * (1 - level) / trials)


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
        ({"samples": -5}, "`samples` must be a whole number"),
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
