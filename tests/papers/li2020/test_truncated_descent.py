"""Algorithm 1 of li2020 against a loop written out in NumPy."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.dynamics.losses import MeanSquares
from wideflow.papers.li2020.limits import hermite
from wideflow.papers.li2020.population import GaussianAbsTeacher

A = np.array([0.2, 0.3, 0.5])


def start(width=8, seed=0):
    return np.random.default_rng(seed).normal(size=(width, 3)) / np.sqrt(3)


def loop(w, gradient, rate, stages, share=1.0):
    """Stages (lambda, steps); simultaneous update, the test before the step and inclusive."""
    for lam, steps in stages:
        for _ in range(steps):
            active = np.sum(w**2, axis=1, keepdims=True) <= share / lam
            w = w - rate * active * gradient(w)
    return w


def sample_gradient(w, x, y):
    r = np.linalg.norm(w, axis=1)
    z = x @ w.T
    e = np.abs(z) @ r / len(w) - y
    return (2 / len(y)) * (
        r[:, None] * ((np.sign(z) * e[:, None]).T @ x)
        + (w / r[:, None]) * (np.abs(z).T @ e)[:, None]
    )


@pytest.mark.parametrize(("threshold", "share"), [("1/lambda", 1.0), ("1/(2 lambda)", 0.5)])
def test_fifty_steps_on_the_population(threshold, share):
    dynamics = wf.TruncatedDescent(0.2, lambda_0=0.8, lambda_1=0.3, switch=30, threshold=threshold)
    run = wf.train(wf.Homogeneous(start()), GaussianAbsTeacher(A), dynamics, steps=50)
    expected = loop(
        start(),
        lambda w: np.asarray(hermite.population_gradient(w, A)),
        0.2,
        [(0.8, 30), (0.3, 20)],
        share,
    )
    assert_allclose(run.model.weights, expected, atol=1e-12)
    assert (np.sum(start() ** 2, axis=1) > share / 0.8).any()  # truncation was active
    assert_allclose(run.table.time[-1], 10.0)


def test_fifty_literal_steps_on_samples():
    teacher = GaussianAbsTeacher(A)
    data = teacher.sample(jax.random.key(0), 200)
    dynamics = wf.TruncatedDescent(
        0.2 * 8, lambda_0=0.8, lambda_1=0.3, switch=30, gradient_scaling="literal"
    )
    run = wf.train(wf.Homogeneous(start()), data, dynamics, steps=50, loss=MeanSquares())
    x, y = np.asarray(data.inputs), np.asarray(data.targets)
    expected = loop(start(), lambda w: sample_gradient(w, x, y), 0.2, [(0.8, 30), (0.3, 20)])
    assert_allclose(run.model.weights, expected, atol=1e-11)
    assert_allclose(run.table.time[-1], 10.0)  # mean-field time: eta_literal = m eta


def test_frozen_neurons_keep_still_until_the_stage_changes():
    w = np.array([[2.0, 0.0, 0.0], [0.3, 0.4, 0.5]])
    first = wf.train(
        wf.Homogeneous(w), GaussianAbsTeacher(A), wf.TruncatedDescent(0.01, lambda_0=0.5), steps=20
    )
    assert (first.model.weights[0] == w[0]).all()
    assert (first.model.weights[1] != w[1]).all()
    both = wf.TruncatedDescent(0.01, lambda_0=0.5, lambda_1=0.1, switch=20)
    second = wf.train(wf.Homogeneous(w), GaussianAbsTeacher(A), both, steps=21)
    assert second.model.weights[0, 0] < 2.0


def test_the_cap_is_inclusive():
    w = np.array([[2.0, 0.0, 0.0], [0.3, 0.4, 0.5]])
    run = wf.train(
        wf.Homogeneous(w), GaussianAbsTeacher(A), wf.TruncatedDescent(0.01, lambda_0=0.25), steps=1
    )
    assert run.model.weights[0, 0] != 2.0


def test_without_an_active_cap_it_is_gradient_descent():
    teacher, net = GaussianAbsTeacher(A), wf.Homogeneous(start())
    plain = wf.train(net, teacher, wf.GradientDescent(0.2), steps=25)
    capped = wf.train(net, teacher, wf.TruncatedDescent(0.2, lambda_0=1e-6), steps=25)
    assert_allclose(plain.model.weights, capped.model.weights, atol=1e-14)


def test_detected_switch():
    teacher, net = GaussianAbsTeacher(A), wf.Homogeneous(start())
    level = 0.05
    run = wf.train(
        net,
        teacher,
        wf.TruncatedDescent(0.05, 0.8, 0.01, switch=wf.LossBelow(level)),
        steps=200,
        every=1,
    )
    switch = int(np.flatnonzero(run.table.loss.values <= level)[0])
    given = wf.train(net, teacher, wf.TruncatedDescent(0.05, 0.8, 0.01, switch=switch), steps=200)
    assert_allclose(run.model.weights, given.model.weights, atol=1e-14)
    assert bool(run.state.second)


def test_shallow_networks_are_truncated_by_rows():
    net = wf.Shallow.init(
        jax.random.key(0), features=3, width=6, scaling=wf.scalings.Zipf(0.5, 0.5)
    )
    data = wf.Dataset(np.eye(3), np.ones(3))
    cap = float(np.median(np.sum(np.asarray(net.hidden) ** 2, axis=1)))
    run = wf.train(net, data, wf.TruncatedDescent(0.1, lambda_0=1 / cap), steps=1)
    frozen = np.sum(np.asarray(net.hidden) ** 2, axis=1) > cap
    still = (np.asarray(run.model.hidden) == np.asarray(net.hidden)).all(axis=1)
    assert still[frozen].all()
    assert not still[~frozen].all()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (dict(rate=-1.0, lambda_0=1.0), "rate"),
        (dict(rate=0.1, lambda_0=0.0), "lambda_0"),
        (dict(rate=0.1, lambda_0=1.0, lambda_1=0.1), "switch"),
        (dict(rate=0.1, lambda_0=1.0, lambda_1=2.0, switch=3), "lambda_1"),
        (dict(rate=0.1, lambda_0=1.0, lambda_1=0.5, switch=-3), "switch"),
        (dict(rate=0.1, lambda_0=1.0, threshold="2/lambda"), "threshold"),
        (dict(rate=0.1, lambda_0=1.0, gradient_scaling="half"), "gradient_scaling"),
    ],
)
def test_errors_name_the_argument(arguments, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        wf.TruncatedDescent(**arguments)


def test_detection_on_samples_needs_a_level():
    data = GaussianAbsTeacher(A).sample(jax.random.key(0), 20)
    with pytest.raises(ValueError, match="`switch`"):
        wf.train(
            wf.Homogeneous(start()),
            data,
            wf.TruncatedDescent(0.1, 1.0, 0.5, switch=wf.LossBelow()),
            steps=1,
        )


def test_practical_schedule_learns_the_target():
    # L below a twentieth of the degree-two floor after both stages (0.013 to 0.023 measured at d =
    # 10, m = 40)
    d = 10
    teacher = GaussianAbsTeacher(np.full(d, 1 / d))
    net = wf.Homogeneous.init(jax.random.key(0), features=d, width=4 * d)
    dynamics, steps = wf.TruncatedDescent.practical(net, teacher.coefficients)
    run = wf.train(net, teacher, dynamics, steps=steps, record=[wf.observables.CoveredDirections()])
    assert float(run.table.loss[-1]) < 0.05 * teacher.floor
    assert int(run.table.covered_directions[-1]) == d
    assert steps == dynamics.switch + round(6 * d * np.log(d) / 0.25 + 0.5)
