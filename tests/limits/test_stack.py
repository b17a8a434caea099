"""The limit of a mean-field stack: exact paths, descent of the network of all nodes, and the law of
large numbers.
"""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.limits.stack import stack_limit
from wideflow.models.mean_field_stack import MeanFieldStack

KEY = jax.random.key(3)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(10, 3))
Y = np.sin(2 * X[:, :1])


@pytest.fixture(scope="module")
def law():
    return MeanFieldStack.init(KEY, dimensions=(3, 2, 1), widths=(12, 9), activation="tanh")


def layers(net):
    return list(zip(net.outers, net.inners, strict=True))


def test_two_linear_nodes_by_hand():
    # f = (1/2)(a_1 w_1 + a_2 w_2) x at x = 1, y = 0; from a = w = 1 and 0 the first node has a' =
    # -f w, so that a = w = u with u' = -u^3 / 2 and u(t) = (1 + t)^(-1/2), the second one rests
    path = stack_limit([([[1.0, 0.0]], [[1.0], [0.0]])], [[1.0]], [[0.0]], [0.0, 3.0], "linear")
    assert_allclose(path.outers[0][-1], [[0.5, 0.0]], rtol=1e-7, atol=1e-12)
    assert_allclose(path.outputs[:, 0, 0], [0.5, 0.125], rtol=1e-7)
    assert_allclose(path.losses, [0.125, 0.125**2 / 2], rtol=1e-7)


def test_the_network_of_all_nodes_is_its_own_limit(law):
    # autodiff of the measure form here, back-propagation by hand and factors 1/p there; unequal
    # weights as well
    p = RNG.dirichlet(np.full(12, 5.0))
    weighted = MeanFieldStack(layers(law), "tanh", weights=[p, None])
    for net, masses in ((law, None), (weighted, [p, None])):
        path = stack_limit(layers(net), X, Y, [0.0, 2.0], "tanh", weights=masses, rate=0.1)
        run = wf.train(
            net,
            wf.data.Dataset(X, Y, "sine"),
            wf.GradientDescent(0.1),
            steps=20,
            every=20,
            loss=wf.losses.HalfMeanSquares(),
        )
        assert_allclose(path.losses, run.table.loss.values, rtol=1e-11)
        for l in range(2):
            assert_allclose(path.outers[l][-1], run.model.outers[l], rtol=1e-9, atol=1e-12)
            assert_allclose(path.inners[l][-1], run.model.inners[l], rtol=1e-9, atol=1e-12)
        rows = [np.arange(12), np.arange(9)]
        distance = path.coupled_distance(run.model.outers, run.model.inners, rows)
        assert_allclose(distance, 0, atol=1e-12)


def test_the_flow_is_the_limit_of_its_euler_steps(law):
    exact = stack_limit(layers(law), X, Y, [2.0], "tanh").losses[0]
    errors = [
        stack_limit(layers(law), X, Y, [2.0], "tanh", rate=rate).losses[0] - exact
        for rate in (0.1, 0.05)
    ]
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.15)


def test_a_coupled_distance_by_hand():
    path = stack_limit([([[1.0, 2.0]], [[0.0], [1.0]])], [[1.0]], [[0.0]], [0.0], "linear")
    # neurons drawn: node 1 twice; the second one is off by (3, 4)
    distance = path.coupled_distance([[[2.0, 5.0]]], [[[1.0], [5.0]]], [[1, 1]])
    assert_allclose(distance, [np.sqrt(25 / 2)])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stack_limit([], X, Y, 1.0), "`layers`"),
        (lambda: stack_limit([(np.ones((1, 2)), np.ones((2, 4)))], X, Y, 1.0), "`inputs`"),
        (lambda: stack_limit([(np.ones((2, 2)), np.ones((2, 3)))], X, Y, 1.0), "`targets`"),
        (lambda: stack_limit([(np.ones((1, 2)), np.ones((2, 3)))], X, Y, [2.0, 1.0]), "`times`"),
        (
            lambda: stack_limit(
                [(np.ones((1, 2)), np.ones((2, 3)))], X, Y, 1.0, weights=[[0.5, 0.6]]
            ),
            "`weights",
        ),
        (lambda: stack_limit([(np.ones((1, 2)), np.ones((2, 3)))], X, Y, 1.0, rate=0.0), "`rate`"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
