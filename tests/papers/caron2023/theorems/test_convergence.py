"""Thresholds and bounds by hand, the instance where Theorem 4.2 says something, and the sizes where
Theorem 4.1 cannot.
"""

import math

import jax
import numpy as np
import pytest

import wideflow as wf
from wideflow.papers.caron2023 import theorems as caron2023
from wideflow.papers.caron2023.theorems.problem import Problem
from wideflow.theorems.base import Outcome

KEY = jax.random.key(0)


def orthonormal(width, gamma, seed=0):
    """First four rows of the identity in dimension 100, tanh(z/10)*10, |y| = 0.1: the Gram matrix
    is diagonal for all weights.
    """
    data = wf.Dataset(np.eye(100)[:4], 0.1 * np.array([1.0, -1.0, 1.0, -1.0]), "orthonormal")
    net = wf.Shallow.init(
        jax.random.key(seed),
        features=100,
        width=width,
        scaling=wf.scalings.Zipf(gamma, 0.7),
        activation=wf.activations.scaled_tanh(0.1),
    )
    return net, data


@pytest.mark.parametrize(
    ("gamma", "expected"), [(1.0, (88.7, 15.5, 1990)), (0.5, (88.7, 62.2, 7959))]
)
def test_thresholds_of_the_instance_that_is_not_vacuous(gamma, expected):
    net, data = orthonormal(100, gamma)
    verdict = caron2023.Theorem42()(net, data, failure_probability=0.5)
    assert (
        verdict.outcome is Outcome.NOT_APPLICABLE
    )  # 100 nodes are too few, but a wider network would do
    for name, value in zip(("T1", "T2", "T3"), expected, strict=True):
        assert verdict.numbers[name] == pytest.approx(value, rel=5e-3)
    assert verdict.numbers["kappa"] * 100 == pytest.approx(0.9998, abs=5e-5)
    assert verdict.numbers["C1"] == pytest.approx(0.009998, abs=5e-7)
    assert verdict.numbers["M"] == pytest.approx(0.07698, abs=5e-6)


def test_theorem_42_holds_on_a_real_trajectory():
    # gamma = 1/2 at the threshold width 7960; the specification reports worst ratios 0.125, 1 (at
    # t = 0), 0.010 and 6e-6.
    net, data = orthonormal(7960, 0.5)
    run = wf.train(net, data, wf.GradientDescent(5.0), steps=200, every=20, record=caron2023.RECORD)
    verdict = caron2023.Theorem42()(net, data, run.table, failure_probability=0.5)
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.margin > 0
    assert verdict.numbers["ratio_a"] == pytest.approx(0.125, rel=0.02)
    assert verdict.numbers["ratio_b"] < 1
    assert verdict.numbers["ratio_c"] < 0.05
    assert verdict.numbers["ratio_d"] < 1e-3
    for lemma in (
        caron2023.LemmaD1()(net, data, run.table),
        caron2023.LemmaD5()(net, data, run.table),
    ):
        assert lemma.outcome is Outcome.HOLDS, lemma
    assert caron2023.LemmaD4()(net, run.model, data).outcome is Outcome.HOLDS
    assert caron2023.PropositionC1()(net, data, failure_probability=0.5).outcome is Outcome.HOLDS


def test_a_false_trajectory_is_violated():
    net, data = orthonormal(2000, 1.0)
    run = wf.train(net, data, wf.GradientDescent(5.0), steps=40, every=20, record=caron2023.RECORD)
    assert (
        caron2023.Theorem42()(net, data, run.table, failure_probability=0.5).outcome
        is Outcome.HOLDS
    )
    slow = run.table.assign(loss=run.table["loss"][0] + 0.0 * run.table["loss"])
    verdict = caron2023.Theorem42()(net, data, slow, failure_probability=0.5)
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.margin < 0
    broken = run.table.assign(kernel_gap=np.nan * run.table["kernel_gap"])
    verdict = caron2023.Theorem42()(net, data, broken, failure_probability=0.5)
    assert verdict.outcome is Outcome.NOT_APPLICABLE  # NaN shows nothing, for or against
    assert "`kernel_gap` is not finite" in verdict.message


def test_theorem_41_is_vacuous_at_practical_sizes():
    # n = 100, d = 50, gamma = 1, |y| <= 1, delta = 0.1: T1 = 3.6e4, T2 = 3e25, T3 = 9e33, bound
    # (d) = 4e7.
    data = wf.data.sphere_sines(KEY, 100, 50, noise=0.0)
    data = wf.Dataset(data.inputs, np.asarray(data.targets) / np.abs(data.targets).max())
    net = wf.Shallow.init(KEY, features=50, width=2000)
    verdict = caron2023.Theorem41()(net, data, failure_probability=0.1)
    assert verdict.outcome is Outcome.VACUOUS
    assert math.isnan(verdict.margin)
    for name, value in (("T1", 3.6e4), ("T2", 3e25), ("T3", 9e33), ("bound_drift", 4e7)):
        assert verdict.numbers[name] == pytest.approx(value, rel=0.25)
    assert verdict.numbers["bound_trivial_drift"] == 2.0
    assert verdict.numbers["T2"] / verdict.numbers["T2_proof"] == 2.0


def test_the_least_width_of_theorem_41_over_all_datasets():
    # kappa <= 1/(2d) and D_0^2 >= 2/d give T3 >= 2^42 n^6/(gamma^2 delta^5) > 4.39e12, attained
    # here in the limit of one unit input.
    problem = Problem(
        1,
        3,
        10,
        1.0,
        1 / 6,
        True,
        0.0,
        1.0,
        np.full(10, 0.1),
        np.full(10, 0.1),
        1.0,
        math.nan,
        True,
        "",
    )
    third = caron2023.Theorem41.thresholds(problem, 1.0 - 1e-12)["T3"]
    assert third == pytest.approx(2.0**42, rel=1e-9)
    assert third > 4.39e12


def test_bounds_are_those_of_the_lemmas_with_the_constants_of_the_proof():
    # Theorem 4.1 takes c_j = sqrt(lambda_j) D, D = 512 n D_0/(gamma delta^{5/2} kappa sqrt d), and
    # |y-u_0|^2 < 2n(C^2+1/d)/delta = n D_0^2/delta: then (d) of Lemma D.3 is (n/d) D S + (2 sqrt 2
    # n/d) sqrt(D S), S = sum lambda^{3/2}, and (c) is R' = sqrt(n lambda/d) |y-u_0| 4/(gamma
    # kappa).
    n, d, g, k, bound, delta = 7, 4, 0.6, 0.03, 1.3, 0.2
    weights = np.asarray(wf.scalings.Zipf(g, 0.5).node_weights(9))
    problem = Problem(
        n, d, 9, g, k, True, bound, 1.0, weights, np.full(9, g / 9), 1.0, 0.4, True, ""
    )
    found = caron2023.Theorem41.bounds(problem, delta)
    root = math.sqrt(2 * bound**2 + 2 / d)
    scale = 512 * n * root / (g * delta**2.5 * k * math.sqrt(d))
    total = np.sum(weights**1.5) * scale
    assert found["drift"] == pytest.approx(
        n / d * total + 2 * math.sqrt(2) * n / d * math.sqrt(total), rel=1e-12
    )
    radius = math.sqrt(n / d) * math.sqrt(n * root**2 / delta) * 4 / (g * k)
    assert found["movement"] == pytest.approx(
        2 * radius, rel=1e-12
    )  # the theorem states R, twice the R' that the lemma proves
    # Theorem 4.2: c_j = 8R_j/delta with R_j the bound of (c), in (d) of Lemma D.5.
    smooth = caron2023.Theorem42.bounds(problem, delta, 0.1)
    c = 8 * smooth["movement"] * np.sqrt(weights) / delta
    lemma = n * 0.4**2 * delta**2 / (64 * d**2) * np.sum(weights * c**2) + n * 0.4 * delta / (
        2**1.5 * d**1.5
    ) * math.sqrt(np.sum(weights * c**2))
    assert smooth["drift"] == pytest.approx(lemma, rel=1e-12)


def test_lemma_d3_with_labels_near_the_start():
    # X = I_2, gamma = 1, delta = 1/2, y = u_0 + 1e-5 (.8, -.6): required m = 33890, weight ratio
    # 0.18 (specification).
    net = wf.Shallow.init(KEY, features=2, width=40_000)
    outputs = np.asarray(net.outputs(np.eye(2)))
    data = wf.Dataset(np.eye(2), outputs + 1e-5 * np.array([0.8, -0.6]))
    run = wf.train(net, data, wf.GradientDescent(1.0), steps=60, every=20, record=caron2023.RECORD)
    verdict = caron2023.LemmaD3()(net, data, run.table, failure_probability=0.5)
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.numbers["required"] == pytest.approx(33_890, abs=1)
    assert 1 / verdict.numbers["ratio_a"] == pytest.approx(3.99, abs=0.06)
    assert verdict.numbers["ratio_c"] == pytest.approx(0.18, abs=0.01)
    tight = caron2023.LemmaD3()(net, data, c=np.full(40_000, 1e-9), failure_probability=0.5)
    assert tight.outcome is Outcome.NOT_APPLICABLE
    assert "larger `c`" in tight.message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scaling": wf.scalings.Zipf(0.0, 0.4)}, "gamma is 0"),
        ({"activation": "tanh"}, "for ReLU"),
        ({"scaling": wf.scalings.MeanField()}, "no node scaling"),
    ],
)
def test_hypotheses_of_theorem_41(change, words):
    data = wf.data.sphere_sines(KEY, 5, 4)
    net = wf.Shallow.init(KEY, features=4, width=20, **change)
    verdict = caron2023.Theorem41()(net, data)
    assert verdict.outcome is Outcome.NOT_APPLICABLE
    assert words in verdict.message


@pytest.mark.parametrize(
    ("activation", "inputs", "words"),
    [
        ("gelu", np.eye(3), "reaches 1.129"),
        ("linear", np.eye(3), "polynomial"),
        ("tanh", np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]), "parallel"),
        ("tanh", 2 * np.eye(3), "norm 2 > 1"),
    ],
)
def test_hypotheses_of_theorem_42(activation, inputs, words):
    net = wf.Shallow.init(KEY, features=3, width=20, activation=activation)
    verdict = caron2023.Theorem42()(net, wf.Dataset(inputs, np.ones(len(inputs))))
    assert verdict.outcome is Outcome.NOT_APPLICABLE
    assert words in verdict.message


def test_errors():
    net, data = orthonormal(10, 1.0)
    with pytest.raises(ValueError, match="`failure_probability` must be a probability"):
        caron2023.Theorem42()(net, data, failure_probability=1.0)
    run = wf.train(net, data, wf.GradientDescent(1.0), steps=2)
    with pytest.raises(ValueError, match="KernelMinEigenvalue"):
        caron2023.Theorem42()(net, data, run.table)
    mean = wf.train(
        net,
        data,
        wf.GradientDescent(1.0),
        steps=2,
        record=caron2023.RECORD,
        loss=wf.losses.MeanSquares(),
    )
    with pytest.raises(ValueError, match="half sum of squares"):
        caron2023.LemmaD1()(net, data, mean.table)
