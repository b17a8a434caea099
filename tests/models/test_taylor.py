"""Taylor twins: exact for polynomials, of the right order elsewhere, trained like the linear model
that they are.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow._core.architecture import mlp
from wideflow._core.trees import parameters, with_parameters

RNG = np.random.default_rng(0)
DATA = wf.Dataset(RNG.normal(size=(6, 5)), RNG.normal(size=6))
NET = wf.Deep.init(0, mlp(2, 8, "tanh"), 5)


def moved(model, size):
    shift = {
        name: size * np.random.default_rng(1).normal(size=array.shape)
        for name, array in parameters(NET).items()
    }
    return with_parameters(
        model, {name: array + shift[name] for name, array in parameters(model).items()}
    )


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_error_is_of_the_next_order(order):
    twin = wf.taylor(NET, order)
    sizes = (1e-2, 5e-3)
    errors = [
        np.max(np.abs(moved(twin, h).outputs(DATA.inputs) - moved(NET, h).outputs(DATA.inputs)))
        for h in sizes
    ]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order + 1, abs=0.2)


def test_a_product_of_two_layers_is_its_own_second_order():
    net = wf.Deep.init(0, mlp(1, 4, "linear"), 5)
    shift = {name: RNG.normal(size=array.shape) for name, array in parameters(net).items()}
    both = [
        with_parameters(m, {n: a + shift[n] for n, a in parameters(m).items()})
        for m in (net, wf.taylor(net, 2))
    ]
    assert_allclose(both[1].outputs(DATA.inputs), both[0].outputs(DATA.inputs), rtol=1e-10)


def test_the_linearised_twin_descends_a_quadratic():
    # r <- (I - eta Theta) r with the tangent kernel of the start
    gram = np.asarray(wf.observables.tangent_gram(NET, DATA.inputs))
    steps, rate = 20, 0.1
    run = wf.train(wf.taylor(NET), DATA, wf.GradientDescent(rate), steps=steps)
    residual = np.asarray(NET.outputs(DATA.inputs)) - DATA.targets
    residual = np.linalg.matrix_power(np.eye(6) - rate * gram, steps) @ residual
    assert_allclose(run.model.outputs(DATA.inputs) - DATA.targets, residual, rtol=1e-9)
    assert_allclose(wf.observables.tangent_gram(run.model, DATA.inputs), gram, rtol=1e-9)


def test_wrong_input():
    with pytest.raises(ValueError, match="`order` must be a whole number"):
        wf.taylor(NET, 0)
    with pytest.raises(ValueError, match=r"Use `wideflow\.wrap` first"):
        wf.taylor(lambda x: x)
