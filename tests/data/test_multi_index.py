"""The exact population of a multi-index teacher against autodiff, li2020's, and two routes to one
teacher.
"""

import jax
import numpy as np
import pytest

import wideflow as wf
from wideflow.data.objective import gradient_by_autodiff
from wideflow.papers.li2020.population import GaussianAbsTeacher

N = np.random.default_rng(1)
V = N.normal(size=(2, 4)) / 2
NET = {
    name: wf.Shallow(N.normal(size=(3, 4)), [1.0, -0.7, 0.4], activation=name)
    for name in ("erf", "relu", "tanh")
}


def test_gradient_is_that_of_the_value():
    objective = wf.populations.MultiIndex("erf", V, [0.5, 1.5]).objective()
    value, gradient = objective.gradient(NET["erf"])
    expected_value, expected = gradient_by_autodiff(objective, NET["erf"])
    np.testing.assert_allclose(value, expected_value, rtol=1e-13)
    np.testing.assert_allclose(gradient["weights"], expected["weights"], atol=1e-13)


def test_a_function_and_a_sum_of_activations_are_one_teacher():
    """Quadrature over the indices against pairs; the tanh student has quadrature in both."""
    erf = jax.scipy.special.erf
    by_pairs = wf.populations.MultiIndex("erf", V, [0.5, 1.5]).objective()
    whole = wf.populations.MultiIndex(lambda r: 0.5 * erf(r[0]) + 1.5 * erf(r[1]), V).objective()
    for one, two in zip(by_pairs.gradient(NET["erf"]), whole.gradient(NET["erf"]), strict=True):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-9), one, two)


def test_absolute_values_are_those_of_li2020():
    theirs = GaussianAbsTeacher([0.5, 1.5], V).objective(wf.losses.MeanSquares())
    ours = wf.populations.MultiIndex("abs", V, [0.5, 1.5]).objective(wf.losses.MeanSquares())
    for one, two in zip(theirs.gradient(NET["relu"]), ours.gradient(NET["relu"]), strict=True):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-13), one, two)


def test_value_is_the_mean_over_samples():
    population = wf.populations.MultiIndex(wf.activations.sign(), V, noise=0.25)
    data = population.sample(jax.random.key(0), 40_000)
    squares = 0.5 * (np.asarray(NET["erf"].outputs(data.inputs)) - data.targets) ** 2
    error = squares.std() / np.sqrt(len(squares))
    # the labels' noise adds half its variance
    assert abs(squares.mean() - 0.125 - float(population.objective().value(NET["erf"]))) < 3 * error


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: wf.populations.MultiIndex("erf", np.zeros((1, 3))), "directions"),
        (lambda: wf.populations.MultiIndex("erf", V, [1.0, 0.0]), "coefficients"),
        (lambda: wf.populations.MultiIndex("erf", V, noise=-1.0), "noise"),
        (lambda: wf.populations.MultiIndex(lambda r: r[0], np.ones((2, 3))), "independent"),
        (lambda: wf.populations.MultiIndex(lambda r: r[0], np.eye(4)), "at most 3"),
        (
            lambda: wf.populations.MultiIndex("erf", np.eye(3)).objective(None, NET["erf"]),
            "features",
        ),
        (lambda: wf.populations.MultiIndex("erf", V).objective(wf.losses.Huber()), "loss"),
    ],
)
def test_bad_input(call, word):
    with pytest.raises(ValueError, match=word):
        call()
