"""One step by hand, lengths on the sphere, and a simulation against the equations."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from wideflow._core.randomness import named_key

N = np.random.default_rng(2)


def test_a_step_is_the_printed_one():
    d, rate = 5, 0.4
    population = wf.populations.MultiIndex("erf", np.eye(1, d), noise=0.5)
    net = wf.Shallow(N.normal(size=(2, d)), [1.0, -0.5], activation="erf")
    run = wf.train(net, population, wf.OnlineSGD(rate, decay=0.3), steps=1, key=7)
    key = jax.random.fold_in(named_key(jax.random.key(7), "samples"), 0)
    x, y = population.objective().draw(key, 1, np.float64)
    x, w = np.asarray(x)[0], np.asarray(net.hidden)
    preactivations = w @ x / np.sqrt(d)
    slope = 2 / np.sqrt(np.pi) * np.exp(-(preactivations**2))
    e = float(net(x) - y[0])
    move = rate / np.sqrt(d) * 2**-0.5 * np.array([1.0, -0.5]) * slope * e
    expected = w - move[:, None] * x - rate * 0.3 / d * w
    np.testing.assert_allclose(run.model.hidden, expected, atol=1e-13)


def test_simulations_follow_the_equations():
    """12 seeds from one start at d = 300: means within three standard errors, and 3/d for what the
    limit leaves out.
    """
    d, width, seeds, tau, rate = 300, 2, 12, 3, 0.5
    v = np.eye(2, d)
    weights = N.normal(size=(width, d))
    net = wf.Shallow(weights, [1.0, 1.0], activation="erf")
    population = wf.populations.MultiIndex("erf", v, noise=0.1)
    run = wf.train(
        [net] * seeds,
        population,
        wf.OnlineSGD(rate),
        steps=tau * d,
        every=tau * d,
        key=list(range(seeds)),
        record=[
            wf.observables.TeacherOverlap(),
            wf.observables.StudentOverlap(),
            wf.observables.GeneralisationError(),
        ],
    )
    start = wf.limits.Overlaps.of_weights(weights / np.sqrt(d), v, [1.0, 1.0])
    equations = wf.limits.OnlineEquations("erf", "erf", rate=rate, scale=2**-0.5, noise=0.1)
    path = wf.limits.order_parameters(equations, start, [float(tau)])
    first = run.table.isel(step=0)
    np.testing.assert_allclose(first.teacher_overlap.values[0], start.M, atol=1e-12)
    np.testing.assert_allclose(first.generalisation_error.values, float(equations.error(start)))
    end = run.table.isel(step=-1)
    predictions = {
        "teacher_overlap": path.M,
        "student_overlap": path.Q,
        "generalisation_error": path.error,
    }
    for name, predicted in predictions.items():
        sample = end[name].values
        error = sample.std(axis=0, ddof=1) / np.sqrt(seeds)
        assert np.all(np.abs(sample.mean(axis=0) - predicted[-1]) < 3 * error + 3 / d), name


def test_a_step_does_the_work_of_its_bare_products():
    """At most 1.3 times, counted by the compiler: samples that are drawn for each of their uses are
    1.48 times.
    """
    d, width, batch, rate, noise = 1000, 16, 16, 0.5, 0.01
    net = wf.Shallow(N.normal(size=(width, d)), np.ones(width), activation="erf")
    population = wf.populations.MultiIndex("erf", np.eye(width, d), noise=noise)
    dynamics, objective, key = wf.OnlineSGD(rate, batch), population.objective(), jax.random.key(0)
    arrays, static = eqx.partition(
        (net, dynamics.init(net, objective, key), objective), eqx.is_array
    )

    def step(arrays):
        model, state, objective = eqx.combine(arrays, static)
        return eqx.filter(dynamics.step(model, state, objective), eqx.is_array)

    def bare(weights, directions, count):
        erf, draw = jax.scipy.special.erf, jax.random.fold_in(key, count)
        x = jax.random.normal(draw, (batch, d))
        h = x @ weights * d**-0.5
        y = jnp.sum(erf(x @ directions.T), axis=1) + noise**0.5 * jax.random.normal(draw, (batch,))
        e = jnp.sum(erf(h), axis=1) * width**-0.5 - y
        pull = (2 / jnp.pi**0.5) * jnp.exp(-(h**2)) * e[:, None]
        return weights - rate * (d * width) ** -0.5 / batch * (x.T @ pull)

    work = lambda f, *values: jax.jit(f).lower(*values).compile().cost_analysis()["flops"]
    count = arrays[1].count
    assert work(step, arrays) < 1.3 * work(bare, net.weights, population.directions, count)


def test_neurons_on_the_sphere_keep_their_length():
    net = wf.Shallow(N.normal(size=(2, 6)), [1.0, 1.0], activation="erf")
    population = wf.populations.MultiIndex("erf", np.eye(1, 6))
    end = wf.train(net, population, wf.OnlineSGD(0.5, 3, spherical=True), steps=5).model
    lengths = lambda model: np.linalg.norm(np.asarray(model.hidden), axis=1)
    np.testing.assert_allclose(lengths(end), lengths(net), rtol=1e-13)
    assert np.abs(np.asarray(end.hidden) - np.asarray(net.hidden)).max() > 1e-3


def test_a_dataset_has_no_fresh_samples():
    with pytest.raises(ValueError, match="OnlineSGD"):
        wf.train(
            wf.Shallow(np.eye(2), [1.0, 1.0]),
            wf.Dataset(np.eye(2), [0.0, 1.0]),
            wf.OnlineSGD(0.1),
            steps=1,
        )
