"""A flow in place of descent: same times, curves that differ by the error of descent alone, and
clear refusals.
"""

import jax
import numpy as np
import pytest

import wideflow as wf
from wideflow.experiments.registry import experiment
from wideflow.runs import FileCheckpointer
from wideflow.runs.runner import perform
from wideflow.runs.store import Store
from wideflow.training.session import Session


def _problem(activation="tanh"):
    rng = np.random.default_rng(0)
    data = wf.Dataset(rng.standard_normal((6, 3)), rng.standard_normal(6))
    return wf.Shallow.init(jax.random.key(1), features=3, width=12, activation=activation), data


def test_descent_differs_from_its_flow_by_an_error_of_first_order_in_the_rate():
    net, data = _problem()
    gaps = []
    for rate in (0.1, 0.05, 0.025):
        descend = lambda session, rate=rate: wf.train(
            net, data, wf.GradientDescent(rate), time=20.0, every=round(1 / rate), session=session
        )
        session = Session(flow=True)
        descent, flow = descend(None), descend(session)
        assert session.counts.flows == 1
        assert isinstance(flow.dynamics, wf.GradientFlow)
        np.testing.assert_array_equal(flow.table.step, descent.table.step)
        np.testing.assert_allclose(flow.table.time, descent.table.time, rtol=1e-12)
        assert "GradientFlow" in flow.table.dynamics
        assert "GradientDescent" in flow.table.instead_of
        gaps.append(np.max(np.abs(flow.table.loss.values - descent.table.loss.values)))
    ratios = np.array(gaps[:-1]) / np.array(gaps[1:])
    assert np.all((ratios > 1.8) & (ratios < 2.2)), gaps


def test_an_experiment_that_descends_has_a_flow_version(tmp_path):
    # Figure 1 at its smallest, ReLU: the curves differ by the error of descent, which halves with
    # the rate; it is largest at the beginning
    chosen, gaps = experiment("caron2023-figure1"), []
    asked = {"gammas": (1.0, 0.5), "alphas": (0.7, 0.7), "seeds": 1, "records": 5}
    asked |= {"samples": 15, "width": 100}
    for rate, steps in ((2.0, 10), (1.0, 20)):
        both = [
            perform(
                chosen,
                Store(tmp_path),
                size="smoke",
                flow=flow,
                overrides=asked | {"rate": rate, "steps": steps},
            ).record
            for flow in (False, True)
        ]
        descent, flow = (record.table for record in both)
        np.testing.assert_allclose(flow.time, descent.time, rtol=1e-12)
        gaps.append(float(np.abs(np.log(flow.risk / descent.risk)).max()))
    assert both[1].settings["flow"] is True
    assert both[1].command.endswith("--flow")
    assert both[0].address != both[1].address
    assert 1.8 < gaps[0] / gaps[1] < 2.2, gaps


def test_other_dynamics_are_named():
    net, data = _problem()
    session = Session(flow=True)
    with pytest.raises(ValueError, match="this run's dynamics is `SGD`"):
        wf.train(net, data, wf.SGD(0.1, batch=2), steps=3, session=session)
    rates = [wf.GradientDescent(rate) for rate in (0.1, 0.2)]
    with pytest.raises(ValueError, match="one `rate` for all that run together"):
        wf.train([net, net], data, rates, steps=3, session=session)


def test_an_experiment_that_descends_nowhere_refuses(tmp_path):
    with pytest.raises(ValueError, match="uses no gradient descent"):
        perform(experiment("caron2023-first-step"), Store(tmp_path), size="smoke", flow=True)


@pytest.mark.parametrize("method", ["gram", "tsit5"])
def test_a_flow_stops_where_the_loss_crosses_the_level(method):
    # a linear network with one sample: r(t) = r(0) exp(-|phi|^2 t), so L crosses at log(L(0) /
    # level) / (2 |phi|^2)
    net = wf.Shallow([[1.0, 0.0]], [1.0], activation="linear")
    data = wf.Dataset([[2.0, 0.0]], [-1.0])
    square = 2.0  # |x|^2 / 2
    first = float((np.sqrt(2.0) + 1) ** 2 / 2)
    run = wf.train(
        net,
        data,
        wf.GradientFlow(1e-9, method=method),
        time=50.0,
        every=10.0,
        stop_below=np.float64(0.01),
    )
    assert run.status is wf.Status.BELOW
    assert run.table.sizes["step"] == 2
    np.testing.assert_allclose(run.table.time[-1], np.log(first / 0.01) / (2 * square), rtol=1e-6)
    assert 0.01 * (1 - 2e-6) < float(run.table.loss[-1]) < 0.01
    assert run.table.stopped.startswith("the loss fell below 0.01 at time 1.4")


def test_a_flow_that_stopped_says_so_again_when_it_is_resumed(tmp_path):
    net = wf.Shallow([[1.0, 0.0]], [1.0], activation="linear")
    data = wf.Dataset([[2.0, 0.0]], [-1.0])

    def run():
        session = Session(checkpointer=FileCheckpointer(tmp_path, every=0.0))
        return wf.train(
            net, data, wf.GradientFlow(), time=50.0, every=10.0, stop_below=0.01, session=session
        )

    first, again = run(), run()
    assert again.table.stopped == first.table.stopped
    assert again.status is wf.Status.BELOW


def test_a_training_that_only_measures_descends_inside_a_flow():
    net, data = _problem()
    session = Session(flow=True)
    train = lambda session: wf.train(net, data, wf.GradientDescent(0.1), steps=3, session=session)
    inner = train(session.descending())
    assert session.counts.flows == 0
    outer = train(session)
    assert "GradientDescent" in inner.table.dynamics
    assert "GradientFlow" in outer.table.dynamics
    assert session.counts.flows == 1
