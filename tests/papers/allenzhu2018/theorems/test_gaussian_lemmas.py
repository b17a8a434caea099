"""Appendix A: exact statements hold, printed errors are caught, hypotheses are looked at."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from wideflow.papers.allenzhu2018.theorems.gaussian_lemmas import (
    ClaimB1,
    LemmaA1,
    LemmaA2,
    LemmaA4,
    LemmaA5,
    LemmaA6,
    LemmaA7,
    LemmaA8,
)
from wideflow.theorems import Outcome


def test_lemma_a1_tail():
    rng, m, draws = np.random.default_rng(0), 200, 4000
    a, n = rng.normal(size=(2, draws, m))
    sums = np.sum(
        a**2 * (n >= 0) * np.sign(n - 1), axis=1
    )  # h(alpha) = sign(alpha - 1) with alpha = n
    # P[n > 1] - P[0 <= n <= 1] = (1/2 - 0.34134) - 0.34134
    mean = m * (0.5 - 2 * 0.3413447)
    verdict = LemmaA1()(sums, width=m, deviation=2.0, mean=mean)
    assert verdict.holds
    assert LemmaA1()(sums + 500, width=m, deviation=2.0, mean=mean).outcome is Outcome.VIOLATED


def test_lemma_a1_printed_constant():
    # exact tails 6.7e-8 against 6.1e-8 at B = 6, 5.6e-13 against 5.1e-14 at B = 8; the constant is
    # fine for small B
    assert LemmaA1.printed_fails(10**6, 6.0)
    assert LemmaA1.printed_fails(10**6, 8.0)
    assert not LemmaA1.printed_fails(10**6, 4.0)


def test_lemma_a2_tail():
    rng, m, draws = np.random.default_rng(1), 100, 4000
    a, v = rng.normal(size=(2, draws, m))
    assert LemmaA2()(np.sum(a * np.tanh(v), axis=1), width=m, deviation=2.0).holds


def test_a_tail_bounded_by_more_than_one_says_nothing():
    # 4 exp(-B^2/2) < 1 from B = sqrt(2 log 4) = 1.67 on; before that no sums could have failed
    for statement in (LemmaA1(), LemmaA2()):
        verdict = statement(np.full(100, 1e6), width=10, deviation=1.5)
        assert verdict.outcome is Outcome.VACUOUS
        # 0.943 and three standard errors of 100 draws are more than one, of 10,000 they are not
        assert statement(np.full(100, 1e6), width=10, deviation=1.7).outcome is Outcome.VACUOUS
        assert statement(np.full(10_000, 1e6), width=10, deviation=1.7).outcome is Outcome.VIOLATED


@pytest.mark.parametrize("y", [0.0, 0.003, 0.1, -1.0])
def test_lemma_a4(y):
    assert LemmaA4()(0.01, y).holds
    # rounding of the masses, 1e-16 of one, is 1e-8 of tau here
    assert LemmaA4()(1e-8, y).holds


def test_lemma_a5_and_b1():
    assert LemmaA5()(25).holds
    assert LemmaA5()(119).holds
    assert (
        LemmaA5()(120).outcome is Outcome.NOT_APPLICABLE
    )  # the rule has 120 nodes, zeros of He_120
    for i in range(1, 12):
        assert ClaimB1()(i).holds
    assert ClaimB1()(4, constant=lambda i: 1e-9).outcome is Outcome.VIOLATED


@pytest.mark.parametrize("degree", [1, 2, 5])
def test_lemma_a6(degree):
    assert LemmaA6()(degree, 0.7, -0.4).holds
    assert LemmaA6()(degree, 0.7, 1.0).outcome is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize("degree", range(7))
@pytest.mark.parametrize("b", [-0.5, 0.0, 1.3])
def test_lemma_a7(degree, b):
    assert LemmaA7()(degree, b).holds


def test_lemma_a7_printed_formula_fails_for_odd_degrees():
    # (99) at i = 3, b = 0.6: 2!! N(-b) + n(b) sum over odd j <= 2 of (2!!/j!!) b^j = 0.948, the
    # truth is 0.786
    printed = (
        2 * 0.5 * math.erfc(0.6 / math.sqrt(2)) + math.exp(-0.18) / math.sqrt(2 * math.pi) * 2 * 0.6
    )
    assert_allclose(printed, 0.948, atol=1e-3)
    assert_allclose(LemmaA7()(3, 0.6).numbers["exact"], 0.786, atol=1e-3)


def test_lemma_a8_on_random_quadratics():
    rng = np.random.default_rng(2)
    seen = set()
    for _ in range(200):
        h = rng.normal(size=(4, 4))
        x = rng.normal(size=(3, 4))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        verdict = LemmaA8()(
            rng.normal(size=4) * 0.3, h + h.T, rng.normal(size=4), np.concatenate([x, -x])
        )
        seen.add(verdict.outcome)
        assert verdict.outcome is not Outcome.VIOLATED
    assert seen == {Outcome.HOLDS, Outcome.NOT_APPLICABLE}
    # one dimension at the edge: f' = 0, f'' = -2 eps gives decrease eps, and lambda_min = -2 eps <=
    # -eps
    assert LemmaA8()([0.0], [[-0.2]], [1.0], [[1.0], [-1.0]]).numbers["decrease"] == pytest.approx(
        0.1
    )
    assert LemmaA8()([1.0], [[-0.2]], [0.0], [[1.0], [-1.0]]).holds  # x1 = 0: curvature alone
