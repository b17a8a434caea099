"""Pseudo networks: identities (36), (271)-(273), exact cross moments, couplings."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow import observables as obs
from wideflow._core.trees import with_parameters


def network(outputs=None, m=9, seed=0, move=0.4):
    k = jax.random.split(jax.random.key(seed), 3)
    net = wf.BiasedThreeLayer.init(
        k[0], features=4, width=m, second_width=m + 2, output_std=0.8, outputs=outputs
    )
    moved = {
        "first_increment": move * jax.random.normal(k[1], (m, 4)),
        "second_increment": move * jax.random.normal(k[2], (m + 2, m)),
    }
    return net, with_parameters(net, moved), wf.data.padded_sphere(jax.random.key(seed + 7), 6, 3)


@pytest.mark.parametrize("outputs", [None, 2])
def test_at_its_own_signs_the_pseudo_network_is_the_network(outputs):
    _, model, x = network(outputs)
    assert_allclose(
        obs.pseudo_outputs(model, x, obs.signs(model, x)), model.outputs(x), rtol=1e-12, atol=1e-13
    )


def test_pseudo_networks_by_their_formulas():
    start, model, x = network()
    frozen = obs.signs(start, x)
    w, v = (
        np.asarray(model.first + model.first_increment),
        np.asarray(model.second + model.second_increment),
    )
    for i, point in enumerate(np.asarray(x)):
        dw, dv = (
            np.diag(np.asarray(frozen.first[i], float)),
            np.diag(np.asarray(frozen.second[i], float)),
        )
        a, b1, b2 = (np.asarray(q) for q in (model.output, model.first_bias, model.second_bias))
        expected = {
            "both": a @ dv @ (v @ dw @ (w @ point + b1) + b2),
            "first": a @ dv @ v @ dw @ (w @ point + b1),
            "none": a @ dv @ v @ dw @ w @ point,
        }
        for biases, value in expected.items():
            assert_allclose(
                obs.pseudo_outputs(model, x, frozen, biases=biases)[i],
                value,
                rtol=1e-11,
                atol=1e-13,
            )


def test_two_layer_pseudo_network():
    net = wf.BiasedTwoLayer(
        [[1.0, 0.0], [0.0, -1.0]], [0.0, 0.5], [1.0, 2.0], increment=[[-2.0, 0.0], [0.0, 0.0]]
    )
    start = with_parameters(net, {"increment": jnp.zeros((2, 2))})
    x = jnp.array([[1.0, 0.2]])
    # start: z = (1, 0.3), both active; now w = (-1, ..), so f drops the first neuron and g keeps it
    # at -1
    assert_allclose(net.outputs(x), [0.6])
    assert_allclose(obs.pseudo_outputs(net, x, obs.signs(start, x)), [-0.4])
    assert_allclose(obs.coupling_error(net, start, x), [1.0])
    assert_allclose(obs.pseudo_outputs(net, x, obs.signs(start, x), biases="none"), [-1.4])
    assert_allclose(obs.sign_changes(net, start, x)["first"], 0.5)


@pytest.mark.parametrize("outputs", [None, 3])
def test_decomposition_and_exact_cross_moments(outputs):
    _, model, x = network(outputs, m=6)
    frozen, eta = obs.signs(model, x), 0.3
    rng = np.random.default_rng(0)
    w2, v2 = rng.normal(size=(6, 4)), rng.normal(size=(8, 6))
    c = obs.cross_coefficients(model, x, frozen, w2, v2)
    base = obs.pseudo_outputs(model, x, frozen)
    quadratic = eta**2 * obs.pseudo_outputs(model, x, frozen, first=w2, second=v2, biases="none")
    crosses = []
    for bits in range(64):  # every sign vector
        s = np.array([1.0 if bits >> k & 1 else -1.0 for k in range(6)])
        moved = obs.pseudo_outputs(obs.signed_move(model, w2, v2, s, eta), x, frozen)
        assert_allclose(moved, base + quadratic + eta * c @ s, rtol=1e-11, atol=1e-12)
        crosses.append(moved - base - quadratic)
    assert_allclose(np.mean(crosses, axis=0), 0.0, atol=1e-12)
    assert_allclose(
        np.var(crosses, axis=0), obs.cross_variance(model, x, frozen, w2, v2, eta), rtol=1e-11
    )


def test_smoothed_pair_error_is_quadratic():
    _, model, x = network(m=30, move=0.0)
    rng = np.random.default_rng(1)
    w2, v2 = rng.normal(size=(30, 4)) / 30, rng.normal(size=(32, 30)) / 30
    ratios = []
    pair = eqx.filter_jit(obs.smoothed_pair)
    for eta in (0.3, 0.1, 0.03):
        errors = []
        for draw in range(60):
            noise = np.random.default_rng(draw)
            first, second = noise.normal(size=(30, 4)) * 0.1, noise.normal(size=(32, 30)) * 0.1
            p, q = pair(model, x, first, second, w2, v2, noise.choice([-1.0, 1.0], size=30), eta)
            errors.append(np.mean(np.abs(p - q)))
        ratios.append(np.mean(errors) / eta**2)
    assert max(ratios) / min(ratios) <= 1.5  # linear in eta would give 10


def test_coupled_main_part():
    model, _, x = network(m=6)
    rng = np.random.default_rng(2)
    w1, v1 = 1e-3 * rng.normal(size=(6, 4)), 1e-3 * rng.normal(size=(8, 6))
    main = obs.coupled_main_part(model, x, w1, v1)
    frozen = obs.signs(model, x)
    # the mean over all signs of the frozen network is exactly the main part
    every = [[1.0 if bits >> k & 1 else -1.0 for k in range(6)] for bits in range(64)]
    mean = np.mean(
        [obs.pseudo_outputs(obs.signed_move(model, w1, v1, np.array(s)), x, frozen) for s in every],
        axis=0,
    )
    assert_allclose(mean, main, rtol=1e-10, atol=1e-13)


def test_observables_record_along_a_run():
    start, _, x = network()
    data = wf.Dataset(x, np.sin(np.asarray(x[:, 0])))
    record = [
        obs.SignChange("first"),
        obs.SignChange("second"),
        obs.CouplingError(),
        obs.IncrementNorm("first_increment", 4.0),
    ]
    run = wf.train(
        start, data, wf.SGD(0.3, batch=2), steps=40, every=20, loss=wf.losses.Huber(), record=record
    )
    last = run.table.isel(step=-1)
    assert_allclose(
        last.coupling_error,
        np.sqrt(np.mean(np.asarray(obs.coupling_error(run.model, start, x)) ** 2)),
        rtol=1e-10,
    )
    changed = obs.sign_changes(run.model, start, x)
    assert_allclose(
        [last.sign_change_first, last.sign_change_second], [changed["first"], changed["second"]]
    )
    norms = np.linalg.norm(np.asarray(run.model.first_increment), axis=1)
    assert_allclose(last.first_increment_norm_4, np.sum(norms**4) ** 0.25, rtol=1e-10)
    assert float(run.table.sign_change_first[0]) == 0.0


def test_row_norm():
    w = [[3.0, 4.0], [0.0, 1.0]]
    assert_allclose(
        [obs.row_norm(w, p) for p in (1.0, 2.0, 4.0, np.inf)], [6.0, np.sqrt(26), 626**0.25, 5.0]
    )
    assert_allclose(obs.row_norm(np.zeros((2, 2)), 4.0), 0.0)
