"""Starts of a mean-field stack, and networks drawn from it."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from wideflow.models.mean_field_stack import MeanFieldStack

KEY = jax.random.key(7)
X = np.random.default_rng(0).normal(size=(20, 3))


def start(width, correlation, activation="relu", dimensions=(3, 7), deviation=1.3):
    return MeanFieldStack.init(
        KEY,
        dimensions=dimensions,
        widths=(width,),
        activation=activation,
        weight_std=deviation,
        correlation=correlation,
    )


def test_correlated_factors_have_the_limit_of_steins_identity():
    # E a_i relu(w.x) = +- rho s^2 x_(i mod 3) / (2 sqrt 3), minus for i = 3, 4, 5; with w.x ~ N(0,
    # s^2 |x|^2 / 3) the variance of one neuron is at most sqrt(E a^4 E relu^4) = s^4 |x|^2 / sqrt 2
    width, rho, s = 40_000, 0.6, 1.3
    values = np.asarray(start(width, rho).features(X)[1])
    signs = np.array([1, 1, 1, -1, -1, -1, 1])
    expected = signs * rho * s**2 / (2 * np.sqrt(3)) * X[:, np.arange(7) % 3]
    spread = s**2 * np.linalg.norm(X, axis=1)[:, None] * 2**-0.25 / np.sqrt(width)
    assert np.all(np.abs(values - expected) < 5 * spread)


def test_entries_keep_their_law_whatever_the_correlation():
    for rho in (0.0, 0.6, 1.0):
        net = start(40_000, rho)
        assert_allclose(np.asarray(net.outers[0]).std(axis=1), 1.3, rtol=0.02)
        assert_allclose(np.asarray(net.inners[0]).std(axis=0), 1.3 / np.sqrt(3), rtol=0.02)


def test_independent_factors_vanish_with_the_width():
    size = lambda width, rho: np.sqrt(np.mean(np.square(start(width, rho).features(X)[1])))
    assert size(25_600, 0.0) / size(100, 0.0) == pytest.approx(1 / 16, rel=0.5)
    assert size(25_600, 0.5) / size(100, 0.5) == pytest.approx(1.0, rel=0.3)


def test_selected_neurons_are_those_that_were_drawn():
    law = MeanFieldStack.init(KEY, dimensions=(3, 2, 1), widths=(6, 5))
    rows = law.neurons(jax.random.key(1), (4, 8))
    net = law.select(rows)
    assert [len(r) for r in rows] == [4, 8]
    for l in range(2):
        assert_allclose(net.outers[l], np.asarray(law.outers[l])[:, rows[l]])
        assert_allclose(net.inners[l], np.asarray(law.inners[l])[rows[l]])
    again = law.resample(jax.random.key(1), (4, 8))
    assert_allclose(again.outputs(X), net.outputs(X), rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: start(4, 1.5), "`correlation`"),
        (lambda: start(4, 0.5).select([[0, 4]]), "`rows"),
        (lambda: start(4, 0.5).select([[0.5]]), "`rows"),
        (lambda: start(4, 0.5).select([[0], [0]]), "`rows`"),
        (lambda: start(4, 0.5).neurons(KEY, (3, 3)), "`widths`"),
        (lambda: start(4, 0.5).neurons(KEY, (0,)), "`widths`"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
