"""What training has learnt by a time, from products alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from wideflow.limits.infinite_width.learnt_part import apply_learnt, learnt_part

RNG = np.random.default_rng(7)
VALUES = 300.0 / np.arange(1, 401) ** 1.5  # a kernel's spectrum: few large, many small
TURN = np.linalg.qr(RNG.standard_normal((400, 400)))[0]
MATRIX = TURN @ np.diag(VALUES) @ TURN.T
B = np.stack([RNG.standard_normal(400), np.zeros(400), TURN[:, 3]], axis=1)
TIMES = np.array([0.0, 0.02, 1.0])


@pytest.mark.parametrize("rate", [None, 0.005])
def test_lanczos_against_the_spectrum(rate):
    products = []

    def product(vectors):
        products.append(1)
        return MATRIX @ vectors

    result = apply_learnt(product, B, TIMES, rate=rate, tolerance=1e-11, max_steps=200)
    if rate is None:
        learnt = (1 - np.exp(-VALUES * TIMES[:, None])) / VALUES
    else:
        learnt = (1 - (1 - rate * VALUES) ** np.round(TIMES[:, None] / rate)) / VALUES
    expected = np.einsum("se,te,ec->tsc", TURN, learnt, TURN.T @ B)
    assert_allclose(result, expected, atol=1e-10 * np.abs(expected).max())
    assert len(products) < 150  # far fewer than the 400 of the whole space


def test_descent_keeps_the_digits_of_small_eigenvalues():
    # sum_{j<k} (1 - x)^j = k - k(k-1)/2 x + ..., whose next term is below 1e-16
    x, k = 1e-12, 1000
    result = learnt_part(np.array([x, 1.5]), np.array([2.0 * k]), 2.0, np)[0]
    x = 2 * x  # rate times eigenvalue
    assert_allclose(result[0], 2 * (k - k * (k - 1) / 2 * x), rtol=1e-15)
    # beyond rate times eigenvalue = 1 the sign alternates: at 3/2 one step leaves -1/2
    assert_allclose(learnt_part(np.array([0.75]), np.array([2.0]), 2.0, np), [[2.0]], rtol=1e-15)


def test_too_few_steps_and_too_fast_descent_are_refused():
    product = lambda vectors: MATRIX @ vectors
    with pytest.raises(ValueError, match=r"still changes by .* after 16 products"):
        apply_learnt(product, B, TIMES, tolerance=1e-11, max_steps=16)
    with pytest.raises(ValueError, match="`rate` must be below 2/300"):
        apply_learnt(product, B, TIMES, rate=0.01, tolerance=1e-11, max_steps=200)
