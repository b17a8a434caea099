"""Activity observables by hand counts, finite differences and their chain of inequalities."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.papers.chen2022.observables import activity

RNG = np.random.default_rng(2)
X, Y = RNG.normal(size=(3, 4)), RNG.normal(size=3)


def first_and_last(observables, net, steps=0, time=None, **more):
    if time is not None:
        return wf.train(
            net,
            wf.Dataset(X, Y),
            wf.GradientFlow(1e-11, "tsit5"),  # the quickest to compile
            time=time,
            every=time,
            record=observables,
            **more,
        ).table
    return wf.train(
        net, wf.Dataset(X, Y), wf.GradientDescent(0.1), steps=steps, record=observables, **more
    ).table


def test_eta_by_counting():
    # one input x = 1, D = 1: h = w = (-2, -0.9, -0.1, 0.2, 0.9, 1): inside (-1, 1) are 4 of 6
    # (open), inside the middle third 2
    net = wf.Shallow(
        [[-2.0], [-0.9], [-0.1], [0.2], [0.9], [1.0]], np.ones(6), wf.scalings.MeanField(), "tanh"
    )
    record = [
        activity.LeastActiveFraction((-1.0, 1.0)),
        activity.LeastActiveFraction((-1.0, 1.0), middle=True),
    ]
    table = wf.train(
        net, wf.Dataset([[1.0]], [0.0]), wf.GradientDescent(0.1), steps=0, record=record
    ).table
    assert table.eta.values[0] == pytest.approx(4 / 6)
    assert table.eta_tilde.values[0] == pytest.approx(2 / 6)


def test_eta_is_the_least_over_inputs():
    # h = (0.5, 3) at x = 1 and (1, 6) at x = 2: in (0, 2) half at both; in (0, 0.8) half and none
    net = wf.Shallow([[0.5], [3.0]], [1.0, -1.0], wf.scalings.MeanField(), "relu")
    data = wf.Dataset([[1.0], [2.0]], [0.0, 0.0])
    for high, expected in ((2.0, 0.5), (0.8, 0.0)):
        table = wf.train(
            net,
            data,
            wf.GradientDescent(0.1),
            steps=0,
            record=[activity.LeastActiveFraction((0.0, high))],
        ).table
        assert table.eta.values[0] == expected


@pytest.mark.parametrize(
    "scaling", [wf.scalings.MeanField(), wf.scalings.NTK(), wf.scalings.MeanField(hidden=1.0)]
)
def test_slope_and_speed_against_differences_of_a_flow(scaling):
    net = wf.Shallow.init(
        jax.random.key(0), features=4, width=20, scaling=scaling, activation="tanh"
    )
    record = [
        activity.LossSlope(),
        activity.PreactivationSpeed(),
        activity.PointMovement(),
        activity.SumLoss(),
    ]
    step = 1e-5
    table = first_and_last(record, net, time=step)
    slope = float(table.sum_loss[1] - table.sum_loss[0]) / step
    assert_allclose(slope, float(table.loss_slope[0]), rtol=1e-3)
    assert_allclose(table.point_movement[1] / step, table.preactivation_speed[0], rtol=1e-3)


def test_displaced_fraction_bounds_the_loss_of_active_neurons():
    net = wf.Shallow.init(
        jax.random.key(1), features=4, width=200, scaling=wf.scalings.MeanField(), activation="tanh"
    )
    interval = (-1.2, 1.2)
    record = [
        activity.LeastActiveFraction(interval),
        activity.LeastActiveFraction(interval, middle=True),
        activity.DisplacedFraction(interval),
    ]
    table = first_and_last(record, net, steps=100)
    assert np.all(table.eta.values >= table.eta_tilde.values[0] - table.displaced.values - 1e-12)
    assert table.displaced.values[-1] > 0


@pytest.mark.parametrize("act", ["tanh", "relu"])
def test_the_chain_descends(act):
    net = wf.Shallow.init(
        jax.random.key(2), features=4, width=50, scaling=wf.scalings.MeanField(), activation=act
    )
    chain = activity.kernel_chain(net, X)
    assert chain.kernel >= chain.slopes >= chain.active >= 0
    assert chain.kernel == pytest.approx(np.linalg.eigvalsh(wf.observables.tangent_gram(net, X))[0])


def test_chain_of_one_linear_input_is_exact():
    # linear, one input: K = G = x.x/D, all three equal
    net = wf.Shallow([[1.0, 2.0], [0.1, -0.2]], [1.0, -1.0], wf.scalings.MeanField(), "linear")
    chain = activity.kernel_chain(net, [[0.3, 0.1]], interval=(-5.0, 5.0), slope_floor=1.0)
    assert_allclose(chain, (0.05, 0.05, 0.05), rtol=1e-12)


def test_kernel_top_and_safe_rate():
    net = wf.Shallow.init(
        jax.random.key(3), features=4, width=30, scaling=wf.scalings.NTK(), activation="tanh"
    )
    top = np.linalg.eigvalsh(wf.observables.tangent_gram(net, X))[-1]
    assert_allclose(
        first_and_last([wf.observables.KernelMaxEigenvalue(400)], net).kernel_top[0], top, rtol=1e-8
    )
    assert activity.safe_rate(net, wf.Dataset(X, Y), 0.2) == pytest.approx(0.2 / top)
    assert activity.safe_rate(net, wf.Dataset(X, Y), 0.2, mean=True) == pytest.approx(0.6 / top)


@pytest.mark.filterwarnings("ignore:descent finished above its start")
def test_an_unstable_step_is_warned_of():
    # linear, one input of G = 1: K = 1, so rate 0.5 is stable and rate 3 is not
    net, data = (
        wf.Shallow([[1.0]], [1.0], wf.scalings.MeanField(), "linear"),
        wf.Dataset([[1.0]], [0.0]),
    )
    tables = [
        wf.train(
            net,
            data,
            wf.GradientDescent(rate),
            steps=3,
            record=[wf.observables.KernelMaxEigenvalue()],
        ).table
        for rate in (0.5, 3.0)
    ]
    assert activity.stability(tables[0], 1) == pytest.approx(0.5)
    with pytest.warns(UserWarning, match="unstable"):
        assert activity.stability(tables[1], 1) == pytest.approx(3.0)
    with pytest.raises(ValueError, match="`table`"):
        activity.stability(tables[0].drop_vars("kernel_top"), 1)


def test_dead_neurons_and_diversity():
    # relu at x = 1: w = -1 and -2 are dead; covariance of (1, -1, -2, 2) over neurons is its
    # variance 2.5
    net = wf.Shallow([[1.0], [-1.0], [-2.0], [2.0]], np.ones(4), wf.scalings.MeanField(), "relu")
    record = [activity.DeadFraction(), activity.Diversity()]
    table = wf.train(
        net, wf.Dataset([[1.0]], [0.0]), wf.GradientDescent(0.1), steps=0, record=record
    ).table
    assert table.dead.values[0] == 0.5
    assert_allclose(table.diversity.values[0], [2.5])


def test_scatter_shows_two_inputs():
    net = wf.Shallow.init(
        jax.random.key(4), features=4, width=6, scaling=wf.scalings.MeanField(), activation="relu"
    )
    table = first_and_last([activity.FeatureScatter(X[0], X[1])], net)
    assert_allclose(table.scatter[0], net.preactivations(X[:2]))


def test_path_integral_of_a_constant_slope():
    assert_allclose(activity.path_integral([0.0, 1.0, 3.0], [-4.0, -4.0, -4.0]), [0.0, 2.0, 6.0])


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: activity.LeastActiveFraction((1.0, 1.0)), "interval"),
        (lambda: activity.LeastActiveFraction((0.0, np.inf)), "interval"),
        (
            lambda: activity.safe_rate(wf.Shallow(X, Y, wf.scalings.NTK()), wf.Dataset(X, Y), 3.0),
            "fraction",
        ),
    ],
)
def test_wrong_input_is_named(call, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        call()
