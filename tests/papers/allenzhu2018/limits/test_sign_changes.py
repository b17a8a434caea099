"""Asymptotic counts against greedy ones on sampled layers."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from wideflow.papers.allenzhu2018.limits import sign_changes as sc


def preactivations(rng, m, biased=True):
    std = np.where(rng.random(m) < 0.5, 1.0, math.sqrt(3)) if biased else np.ones(m)
    return std * rng.normal(size=m) / math.sqrt(m)


def test_constants():
    assert_allclose(sc.BIASED_AT_ZERO, 0.314636, rtol=1e-5)
    assert_allclose(sc.first_layer_flips(1.0, 1), 0.9526, rtol=2e-4)
    assert_allclose(
        [sc.second_layer_flips(1.0, 1, biased=b) for b in (False, True)],
        [1.2407, 1.0591],
        rtol=1e-4,
    )
    assert_allclose(
        [sc.second_layer_change(1.0, 1, biased=b) for b in (False, True)], [0.552, 0.510], rtol=1e-3
    )
    assert_allclose(sc.noise_flip_fraction(4000**-0.99, 4000), 0.00434, rtol=0.01)


def test_first_layer_count():
    rng, m = np.random.default_rng(0), 20_000
    radius = m**-0.75
    counts = [sc.greedy_flips(preactivations(rng, m), radius, 4.0) for _ in range(20)]
    assert_allclose(np.mean(counts), sc.first_layer_flips(radius, m), rtol=0.05)


@pytest.mark.parametrize("biased", [False, True])
def test_second_layer_count_and_change(biased):
    rng, m, delta = np.random.default_rng(1), 40_000, 0.03
    z = [preactivations(rng, m, biased) for _ in range(10)]
    assert_allclose(
        np.mean([sc.greedy_flips(v, delta, 2.0) for v in z]),
        sc.second_layer_flips(delta, m, biased=biased),
        rtol=0.05,
    )
    # flip |g_j| < c / 2 with a shift of size c: the budget fixes c, the change is sum (c - |g_j|)
    changes = []
    for v in z:
        size = np.sort(np.abs(v))
        count = np.arange(1, m + 1)
        c = 2 * size[np.argmax(count * (2 * size) ** 2 > delta**2)]
        changes.append(np.sum(c - size[size < c / 2]))
    assert_allclose(np.mean(changes), sc.second_layer_change(delta, m, biased=biased), rtol=0.08)


def test_uniform_moves():
    rng, m, radius = np.random.default_rng(2), 200_000, 2e-5
    z = preactivations(rng, m)
    fraction = np.mean(np.abs(z) < radius)
    assert_allclose(fraction, sc.uniform_flip_fraction(radius, m), atol=4 * math.sqrt(fraction / m))
    a = np.abs(rng.normal(size=m))
    error = np.sum(a * np.maximum(radius - np.abs(z), 0))
    assert_allclose(error, sc.uniform_coupling_error(radius, m, math.sqrt(2 / math.pi)), rtol=0.1)


def test_noise_flips_by_sampling():
    rng, m, std = np.random.default_rng(3), 500_000, 1e-3
    z = preactivations(rng, m)
    flipped = np.mean((z >= 0) != (z + std * rng.normal(size=m) >= 0))
    expected = sc.noise_flip_fraction(std, m)
    assert_allclose(flipped, expected, atol=4 * math.sqrt(expected / m))
