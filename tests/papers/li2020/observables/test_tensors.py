"""Tensor and moment observables against the limit's derivation and hand-made networks."""

import math

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.dynamics.losses import MeanSquares
from wideflow.observables import LossTail, MomentError, OrderLosses, moment_errors
from wideflow.papers.li2020.limits import hermite
from wideflow.papers.li2020.population import GaussianAbsTeacher


def record(net, observables, teacher, data=None):
    if data is None:
        return wf.train(net, teacher, wf.GradientDescent(0.1), steps=1, record=observables).table
    return wf.train(
        net,
        data,
        wf.GradientDescent(0.1),
        steps=1,
        record=observables,
        test=teacher,
        loss=MeanSquares(),
    ).table


@pytest.mark.parametrize(
    ("variant", "learner"),
    [("abs", ("abs", 1.0)), ("relu1", ("relu", 1.0)), ("relu2", ("relu", 2.0))],
)
def test_orders_agree_with_the_limit(variant, learner):
    rng = np.random.default_rng(0)
    w, a = rng.normal(size=(6, 4)) / 2, np.array([0.1, 0.2, 0.3, 0.4])
    v = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    teacher = GaussianAbsTeacher(a, v)
    orders = (0, 1, 2, 4, 7, 8)
    names = ("raw", "weighted", "figure", "relative")
    kinds = [OrderLosses(orders, n, name=f"{n}_orders") for n in names]
    table = record(wf.Homogeneous(w, *learner), [*kinds, LossTail(8)], teacher)
    raw = np.asarray(hermite.order_losses(w, a, orders, v, variant))
    c = np.asarray(hermite.coefficients(8, variant))[list(orders)]
    assert_allclose(table.raw_orders[0], raw, rtol=1e-10, atol=1e-15)
    assert_allclose(table.weighted_orders[0], c * raw, rtol=1e-10, atol=1e-15)
    assert_allclose(table.figure_orders[0], 16 * c * raw, rtol=1e-10, atol=1e-14)
    size = np.where(np.array(orders) == 0, 1.0, 0.3)
    assert_allclose(table.relative_orders[0], raw / size, rtol=1e-10, atol=1e-14)
    assert_allclose(table.loss_tail[0], hermite.loss_tail(w, a, 8, v, variant), rtol=1e-9)


def test_orders_of_correlated_signed_directions_by_explicit_tensors():
    rng = np.random.default_rng(3)
    w, a, v = rng.normal(size=(5, 3)), np.array([0.6, -0.3, 0.8, 0.5]), rng.normal(size=(4, 3))
    r, length = np.linalg.norm(w, axis=1), np.linalg.norm(v, axis=1)
    u, units = w / r[:, None], v / length[:, None]
    learner = np.einsum("i,ia,ib,ic,id->abcd", r**2 / 5, u, u, u, u)
    target = np.einsum("i,ia,ib,ic,id->abcd", a * length, units, units, units, units)
    table = record(wf.Homogeneous(w), [OrderLosses((4,))], GaussianAbsTeacher(a, v))
    assert_allclose(table.order_losses[0, 0], np.sum((learner - target) ** 2), rtol=1e-12)


def test_the_axis_of_orders_carries_the_orders():
    net, teacher = wf.Homogeneous([[1.0, 0.2], [0.3, 1.0]]), GaussianAbsTeacher([0.5, 0.5])
    both = [OrderLosses((0, 2)), OrderLosses((4, 6, 8), "relative", name="high", axis="high_order")]
    table = record(net, both, teacher)
    assert table.order.values.tolist() == [0, 2]
    assert table.high_order.values.tolist() == [4, 6, 8]
    assert_allclose(
        table.order_losses.sel(order=2)[0], hermite.order_losses(net.weights, [0.5, 0.5], 2)[0]
    )


def test_two_observables_that_disagree_on_an_axis_are_refused_before_training():
    net, teacher = wf.Homogeneous([[1.0, 0.2], [0.3, 1.0]]), GaussianAbsTeacher([0.5, 0.5])
    steps = []
    for orders in ((0, 2, 4), (0, 6)):  # another length, other values
        with pytest.raises(ValueError, match="'order_losses' and 'other' on one axis 'order'"):
            wf.train(
                net,
                teacher,
                wf.GradientDescent(0.1),
                steps=3,
                record=[OrderLosses((0, 2)), OrderLosses(orders, name="other")],
                progress=lambda done, total, loss: steps.append(done),
            )
    assert steps == []


def test_on_samples_the_test_population_tells_the_target():
    teacher = GaussianAbsTeacher([0.5, 0.5])
    data = teacher.sample(jax.random.key(0), 50)
    table = record(
        wf.Homogeneous([[1.0, 0.2], [0.3, 1.0]]),
        [OrderLosses((2,)), wf.observables.TestLoss()],
        teacher,
        data,
    )
    assert_allclose(
        table.order_losses[0, 0],
        hermite.order_losses([[1.0, 0.2], [0.3, 1.0]], [0.5, 0.5], 2)[0],
        rtol=1e-12,
    )
    assert_allclose(
        table.test_loss[0],
        hermite.population_loss([[1.0, 0.2], [0.3, 1.0]], [0.5, 0.5]),
        rtol=1e-12,
    )
    with pytest.raises(ValueError, match="needs the target"):
        wf.train(
            wf.Homogeneous([[1.0, 0.2]]),
            data,
            wf.GradientDescent(0.1),
            steps=1,
            record=[OrderLosses()],
        )


def test_moments_by_hand():
    # rows sqrt(2) (1,0) and sqrt(2) (0,1): E ww^T = I; a = (1/4, 3/4): q = (3/4, 1/4), z = 1
    net = wf.Homogeneous(math.sqrt(2) * np.eye(2))
    errors = moment_errors(net, [0.25, 0.75], np.eye(2))
    assert_allclose(errors["second"], [0.75, 0.25])
    assert_allclose([errors["zeroth"], errors["spectral"]], [1.0, 0.75])
    assert_allclose(
        [errors["Delta_plus"], errors["Delta_minus"], errors["Delta"]],
        np.array([1, 0, 1]) * 8 / math.pi,
    )
    assert_allclose([errors["delta_plus"], errors["delta_minus"]], [3 / math.pi, 0])
    # relu1 carries half the mass
    halved = moment_errors(
        wf.Homogeneous(math.sqrt(2) * np.eye(2), "relu"), [0.25, 0.75], np.eye(2)
    )
    assert_allclose(halved["second"], [0.25, -0.25])
    table = record(
        net, [MomentError("second"), MomentError("Delta")], GaussianAbsTeacher([0.25, 0.75])
    )
    assert_allclose(table.second_moment_error[0], [0.75, 0.25])
    assert table.second_moment_error.dims == ("step", "direction")
    assert "Delta" in table


def test_errors_name_the_argument():
    for call, name in [
        (lambda: OrderLosses(normalisation="odd"), "normalisation"),
        (lambda: MomentError("third"), "which"),
    ]:
        with pytest.raises(ValueError, match=f"`{name}`"):
            call()
