"""Hard families and the kernels' floor against enumeration, Monte Carlo and exact least squares."""

import math

import jax
import numpy as np
import pytest
from mpmath import asin, binomial, mp, mpf, pi, sqrt
from numpy.testing import assert_allclose

from wideflow.papers.li2020.limits import hermite
from wideflow.papers.li2020.limits.kernel_floor import (
    block_directions,
    block_energy,
    block_signs,
    degree_floor,
    feature_loss,
    floor_constant,
    fourier_coefficient,
    hard_family,
    kernel_floor,
    largest_size,
    union_bound_size,
)


@pytest.mark.parametrize("r", [2, 4, 8, 16])
def test_floor_constant_with_fifty_digits(r):
    with mp.workdps(50):
        k = lambda x: 2 / pi * (sqrt(1 - x * x) + x * asin(x))
        exact = (
            mpf(r)
            / 2**r
            * sum((-1) ** s * binomial(r, s) * k(1 - mpf(2 * s) / r) for s in range(r + 1))
        )
    assert_allclose(floor_constant(r), float(exact), rtol=1e-9)


def test_floor_constant_is_the_energy_of_psi():
    # psi(x) = E_tau |sum x tau| prod tau, Monte Carlo over x
    x = np.random.default_rng(0).normal(size=(20_000, 4))
    tau = np.array(np.meshgrid(*[[1, -1]] * 4)).reshape(4, -1).T
    squares = (np.abs(x @ tau.T) @ np.prod(tau, axis=1) / 16) ** 2
    assert abs(squares.mean() - floor_constant(4)) < 4 * squares.std() / math.sqrt(len(x))


def test_directions_are_orthonormal_and_depend_on_the_partition():
    one, two = (
        block_directions(b) for b in ([[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 5, 2, 7], [4, 1, 6, 3]])
    )
    assert_allclose(one @ one.T, np.eye(8), atol=1e-15)
    assert_allclose(two @ two.T, np.eye(8), atol=1e-15)
    assert abs(one - two).max() > 0.4
    assert_allclose(two[0], np.array([1, 0, 1, 0, 0, 1, 0, 1]) / 2)


@pytest.mark.parametrize("r", [2, 4])
def test_fourier_coefficients_live_on_blocks_with_the_stated_energy(r):
    blocks = [[0, 1, 2, 3], [4, 5, 6, 7]] if r == 4 else [[0, 1], [2, 3], [4, 5], [6, 7]]
    directions = block_directions(blocks)
    rng = np.random.default_rng(1)
    a = rng.uniform(1, 2, 8)
    x = rng.normal(size=(800, 8))
    assert_allclose(fourier_coefficient(x[:3], [0, 4, 5, 6][:r], a, directions), 0, atol=1e-14)
    squares = fourier_coefficient(x, blocks[0], a, directions) ** 2
    assert abs(squares.mean() - block_energy(a, r)[0]) < 4 * squares.std() / math.sqrt(len(x))


def test_energies_at_equal_coefficients():
    assert_allclose(block_energy(np.full(8, 1 / 8), 4).sum(), floor_constant(4) / 8, rtol=1e-12)
    assert_allclose(block_energy(np.full(8, 1 / 8), 2), 0, atol=1e-18)
    assert block_signs(2).tolist() == [1, -1]
    assert block_signs(8).tolist() == [1] * 8


def test_family_sizes():
    assert largest_size(32, 4) == math.comb(31, 3) == 4495
    # H^2 (d/r)^2 (r/d)^r < 1 strictly: d = 16, r = 4 gives H < 4
    assert union_bound_size(16, 4) == 3
    assert union_bound_size(40, 4) == 9
    family = hard_family(12, 4, 20)
    blocks = [block for partition in family for block in partition]
    assert len(set(blocks)) == len(blocks) == 60


def test_no_features_beat_the_floor():
    # all 35 splits of 8 coordinates, random |.| features: the mean best loss, exactly, against (1 -
    # N/H) C_4 / d
    rng, a = np.random.default_rng(0), np.full(8, 1 / 8)
    targets = [block_directions(blocks) for blocks in hard_family(8, 4)]
    units = rng.normal(size=(34, 8))
    for n in (0, 5, 20, 34):
        mean = np.mean([feature_loss(units[:n], a, v) for v in targets])
        assert mean >= kernel_floor(8, 4, n, 35)


def test_feature_loss_is_a_least_squares_residual():
    units = np.random.default_rng(2).normal(size=(3, 4))
    a = np.full(4, 0.25)
    assert_allclose(feature_loss(np.eye(4), a), 0, atol=1e-15)
    # any network with these neurons does worse
    w = units / np.linalg.norm(units, axis=1, keepdims=True)
    assert feature_loss(units, a) < float(hermite.population_loss(w, a))


def test_degree_floors_are_tails_of_the_hermite_coefficients():
    c = np.asarray(hermite.coefficients(6))
    for p in (2, 4, 6):
        assert_allclose(degree_floor([0.5, 0.5], p), 0.5 * (1 - c[: p + 1].sum()), rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: floor_constant(3), "block"),
        (lambda: floor_constant(32), "block"),
        (lambda: kernel_floor(8, 2, 3), "block"),
        (lambda: largest_size(9, 4), "block"),
        (lambda: block_directions([[0, 1], [1, 2]]), "blocks"),
        (lambda: hard_family(12, 4), "size"),
        (lambda: hard_family(8, 4, 36), "size"),
        (lambda: fourier_coefficient(np.ones((1, 20)), [0], np.ones(20), np.eye(20)), "inputs"),
        (lambda: block_energy(np.ones(5), 4), "coefficients"),
    ],
)
def test_errors_name_the_argument(call, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        call()


def test_a_gradient_is_refused_in_a_sentence():
    # the floor is computed by NumPy: the error spoke of a method `__array__` of a traced array
    for call in (
        lambda a: feature_loss(np.eye(4), a),
        lambda a: degree_floor(a, 2),
        lambda a: block_energy(a, 2).sum(),
    ):
        with pytest.raises(TypeError, match=r"`coefficients` of `\w+` must hold numbers"):
            jax.grad(call)(np.full(4, 0.25))
