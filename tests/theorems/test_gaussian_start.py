"""Starts drawn as the theorems assume pass, at the stated size; others are turned away with the
reason.
"""

import jax
import numpy as np
import pytest

import wideflow as wf
from wideflow.theorems.gaussian_start import SIZE, normal_fault, signs_fault, start_fault

RNG = np.random.default_rng(7)


def test_draws_as_assumed_pass():
    # the size is 1e-6, so that 600 draws of each law all pass with probability above 0.999
    for count in (1, 2, 7, 50, 3000):
        for _ in range(120):
            assert not normal_fault(RNG.normal(size=count))
            assert not signs_fault(RNG.choice([-1.0, 1.0], size=count))


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (100 * RNG.normal(size=30), "deviation"),
        (np.sqrt(2) * RNG.normal(size=400), "deviation 1."),
        (0.9 * RNG.normal(size=3000), "deviation 0."),
        (RNG.normal(size=500) + 0.4, "mean 0."),
        (RNG.choice([-1.0, 1.0], size=100), "not Gaussian"),
        (RNG.uniform(-np.sqrt(3), np.sqrt(3), size=5000), "not Gaussian"),
        (np.array([0.3, np.nan]), "not finite"),
    ],
)
def test_other_laws_are_told(weights, words):
    assert words in normal_fault(weights)


def test_the_size_of_the_chi_square_part_is_the_stated_one():
    # two numbers (a, -a): mean 0, and 2 Pr(chi^2_2 > 2 a^2) = 2 exp(-a^2) is SIZE/4 at a^2 =
    # log(8/SIZE)
    edge = np.sqrt(np.log(8 / SIZE))
    assert not normal_fault(np.array([edge, -edge]) * 0.999)
    assert "deviation" in normal_fault(np.array([edge, -edge]) * 1.001)


def test_signs():
    assert "30 of 30" in signs_fault(np.ones(30))
    assert not signs_fault(np.ones(15))  # 2^-14 is no rarer than the size allows
    assert "output weights are positive" in signs_fault(np.sign(RNG.normal(size=4000) + 0.2))


def test_a_symmetric_start_is_not_independent():
    net = wf.Shallow.init(jax.random.key(0), features=4, width=20, symmetric=True)
    assert "symmetric" in start_fault(net)
    assert not start_fault(wf.Shallow.init(jax.random.key(0), features=4, width=20))
