"""Descent at an unstable rate that ends finite does not pass for a success.

A network of linear neurons with fixed outputs is linear in its weights: a step multiplies the
residual by exactly 1 - rate * Theta, so that a mode grows where rate * eigenvalue is above 2.
"""

import warnings

import jax
import numpy as np
import pytest

import wideflow as wf

DATA = wf.data.sphere_sines(jax.random.key(0), samples=6, features=4)
NET = wf.Shallow.init(0, features=4, width=30, activation="linear")
TOP = float(np.linalg.eigvalsh(wf.observables.tangent_gram(NET, DATA.inputs))[-1])


@pytest.mark.parametrize(
    ("loss", "unit"),
    # the gradient of the mean over six samples is 2/6 of that of the half sum
    [(wf.losses.HalfSumSquares(), 1.0), (wf.losses.MeanSquares(), 1 / 3)],
)
def test_a_loss_that_rose_is_told_with_the_rate_that_would_do(loss, unit):
    rate = 3.0 / (TOP * unit)
    with pytest.warns(UserWarning, match="descent finished above its start") as caught:
        run = wf.train(NET, DATA, wf.GradientDescent(rate), steps=8, loss=loss)
    assert run.status is wf.Status.FINISHED
    (message,) = (str(one.message) for one in caught)
    assert "kernel was 3 at the start" in message
    assert f"Take a `rate` below {2 / (TOP * unit):.2g}, or `GradientFlow()`" in message


def test_a_stable_rate_is_silent():
    run = wf.train(NET, DATA, wf.GradientDescent(1.9 / TOP), steps=8)  # warnings are errors here
    assert run.table.loss[-1] < run.table.loss[0]


def test_among_several_networks_the_one_that_rose_is_told_of():
    rates = [wf.GradientDescent(factor / TOP) for factor in (0.5, 4.0, 3.0)]
    with pytest.warns(UserWarning, match="kernel was 4 at the start") as caught:
        wf.train([NET] * 3, DATA, rates, steps=8)
    assert len(caught) == 1


def test_a_kernel_that_grew_on_the_way_is_said_to_need_a_smaller_rate():
    # one sample, one neuron of norm r: f = r |w.x| has the kernel 4 w^2 in one dimension, which
    # is 4 at w = 1; from there towards the target 9 it grows to 36
    net, data = wf.Homogeneous([[1.0]], "abs"), wf.Dataset([[1.0]], [9.0])
    with pytest.warns(UserWarning, match=r"was 1\.6 at the start.*Take a smaller `rate`"):
        run = wf.train(net, data, wf.GradientDescent(0.4), steps=1)
    assert run.table.loss[-1] > run.table.loss[0]


def test_only_the_descended_loss_of_descent_on_samples_counts():
    def loss(snapshot):  # an observable of one's own under this name
        return 1.0 * snapshot.step

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wf.train(NET, DATA, wf.GradientDescent(0.5 / TOP), steps=2, record=[loss])
        wf.train(NET, DATA, wf.SGD(3.0 / TOP, batch=6), steps=2)
