"""Kinked flows by descent whose steps are checked by steps of half the size."""

import math

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.dynamics import flow as flow_module


def _sliding():
    # One neuron, two samples. x_1 is pushed off by both sides: Filippov's solution keeps z_1 = 0
    # and moves w orthogonally to x_1, so that r_2' = -|phi_2 minus its part along phi_1|^2 r_2 =
    # -(0.8^2 / 2) r_2 with phi = x / sqrt(2).
    data = wf.Dataset([[1.0, 0.0], [0.6, 0.8]], [-2.0, 2.0])
    second = 0.5 / (0.8 / math.sqrt(2))
    net = wf.Shallow([[0.0, second]], [1.0], activation="relu")
    return net, data, lambda time: 2.0 + (1.5 * np.exp(-0.32 * time)) ** 2 / 2


@pytest.mark.parametrize("tolerance", [1e-3, 1e-5])
def test_it_slides_along_a_kink_within_its_tolerance(tolerance):
    net, data, exact = _sliding()
    dynamics = wf.GradientFlow(tolerance, method="descent")
    run = wf.train(net, data, dynamics, time=8.0, every=[2.0, 4.0, 8.0])
    assert run.status is wf.Status.FINISHED
    # the two paths differ by the error of the finer one, a record at a time
    assert_allclose(run.table.loss, exact(run.table.time.values), rtol=10 * tolerance)
    assert np.all(np.diff(run.table.loss) < 0)


def test_the_error_follows_the_tolerance_and_the_steps_its_inverse():
    # one linear sample: r(t) = r(0) exp(-2 t), and Euler's error is of first order in its step
    net = wf.Shallow([[1.0, 0.0]], [1.0], activation="linear")
    data = wf.Dataset([[2.0, 0.0]], [-1.0])
    first = (math.sqrt(2) + 1) ** 2 / 2
    errors, steps = [], []
    for tolerance in (1e-2, 1e-3, 1e-4):
        dynamics = wf.GradientFlow(tolerance, method="descent")
        run = wf.train(net, data, dynamics, time=1.0, every=[1.0])
        errors.append(abs(float(run.table.loss[-1]) / (first * math.exp(-4)) - 1))
        steps.append(int(run.state.steps))
    assert np.all(np.array(errors) <= [2e-2, 2e-3, 2e-4]), errors
    # steps are halved as often as it takes: a factor 10 up to 2
    ratios = np.array(steps[1:]) / np.array(steps[:-1])
    assert np.all((ratios >= 5) & (ratios <= 20)), steps


def test_too_few_steps_are_a_stall():
    net, data, _ = _sliding()
    run = wf.train(net, data, wf.GradientFlow(method="descent", max_steps=2), time=8.0, every=[8.0])
    assert run.status is wf.Status.STALLED


def test_a_network_at_rest_is_stationary():
    net = wf.Shallow([[-1.0, -1.0], [-2.0, -1.0]], [1.0, -1.0], activation="relu")
    data = wf.Dataset([[1.0, 0.5], [0.3, 1.0]], [1.0, -1.0])
    run = wf.train(net, data, wf.GradientFlow(method="descent"), time=5.0, every=[1.0])
    assert run.status is wf.Status.STATIONARY


@pytest.mark.parametrize(("operations", "method"), [(1e11, "descent"), (0.0, "exponential")])
def test_auto_descends_where_that_is_affordable(monkeypatch, operations, method):
    monkeypatch.setattr(flow_module, "DESCENT_OPERATIONS", operations)
    net, data, exact = _sliding()
    # a tolerance of its own a case, for programs are compiled once for all
    dynamics = wf.GradientFlow(2e-3 if operations else 3e-3)
    run = wf.train(net, data, dynamics, time=8.0, every=2.0)
    steps = {
        "descent": int(run.state.descent.steps),
        "exponential": int(run.state.exponential.steps),
    }
    assert steps.pop(method) > 0
    assert list(steps.values()) == [0]
    assert_allclose(run.table.loss, exact(run.table.time.values), rtol=2e-2)


def test_descent_goes_on_where_the_exponential_flow_gives_up():
    net, data, exact = _sliding()
    objective = data.objective(wf.losses.HalfSumSquares(), net)
    # one step of the exponential flow does not reach the record, and a run to time 1e12 cannot be
    # walked; the interval can
    dynamics = wf.GradientFlow(1e-3, max_steps=1)
    state = dynamics.init(net, objective, jax.random.key(0))
    moved, state = jax.jit(lambda: dynamics.advance(net, state, objective, 0.0, 4.0, 1e12))()
    assert not bool(state.failed)
    assert int(state.exponential.attempts) == 1
    assert int(state.descent.steps) > 0
    assert_allclose(float(objective.value(moved)), exact(4.0), rtol=1e-2)
