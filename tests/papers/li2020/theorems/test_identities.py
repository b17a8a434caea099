"""Statements of li2020 that are identities or inequalities on given weights."""

import math

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.papers.li2020 import theorems as li2020
from wideflow.papers.li2020.limits import hermite
from wideflow.papers.li2020.limits.kernel_floor import block_directions, feature_loss, hard_family
from wideflow.theorems import Outcome


def draw(width=4, features=3, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.uniform(0.5, 1.5, features)
    return rng.normal(size=(width, features)) / math.sqrt(features), a / a.sum()


@pytest.mark.parametrize("variant", ["abs", "relu1", "relu2"])
def test_expansion(variant):
    verdict = li2020.HermiteExpansion()(*draw(), variant=variant)
    assert verdict.holds
    assert verdict.numbers["relative_error"] < 1e-13
    cut = li2020.HermiteExpansion()(*draw(), variant=variant, through=6)
    assert cut.outcome is Outcome.VIOLATED  # too short a sum is told


@pytest.mark.parametrize(("order", "printed"), [(4, 0.94), (6, 1.87), (8, 2.83)])
def test_order_gradients_and_the_printed_constants(order, printed):
    verdict = li2020.OrderGradients()(*draw(), order)
    assert verdict.holds
    assert (
        verdict.numbers["printed_error"] > 0.02
    )  # the size depends on the direction probed; it is never small
    c = float(hermite.coefficients(order)[order])
    assert_allclose(
        [verdict.numbers["b"], verdict.numbers["b_prime"]], [4 * c, (2 * order - 4) * c]
    )


def test_symmetry():
    w, a = draw()
    assert li2020.SymmetryPreserved()(w, a, cap=1.0, steps=20).holds
    assert li2020.SymmetricGradient()(w, a).holds


def test_forms_on_many_random_instances():
    rng = np.random.default_rng(0)
    for half in (2, 3):
        for _ in range(20):
            w, xi = rng.normal(size=(2, 6, 4))
            assert li2020.ErrorForms()(w, xi, half).holds


@pytest.mark.parametrize("half", [2, 3, 4])
def test_sixteen_terms(half):
    rng = np.random.default_rng(1)
    w, xi = rng.normal(size=(2, 5, 4))
    v, xv = rng.normal(size=(2, 4))
    assert li2020.SixteenTerms()(v, xv, w, xi, rng.uniform(size=4), half).holds


def test_kernel_lower_bound_on_exact_features():
    a, units = np.full(8, 1 / 8), np.random.default_rng(0).normal(size=(10, 8))
    losses = [feature_loss(units, a, block_directions(b)) for b in hard_family(8, 4)]
    verdict = li2020.KernelLowerBound()(losses, 10, 8)
    assert verdict.holds
    assert verdict.numbers["family"] == 35
    assert li2020.KernelLowerBound()(losses, 40, 8).outcome is Outcome.VACUOUS
    assert li2020.KernelLowerBound()([1e-6], 10, 8).outcome is Outcome.VIOLATED


def test_finite_width_loss_and_gradient():
    d, rng, a = 10, np.random.default_rng(0), np.full(10, 0.1)
    widths, seeds = (20, 80, 320), 30
    nets = [[rng.normal(size=(m, d)) / math.sqrt(d) for _ in range(seeds)] for m in widths]
    losses = [[float(hermite.population_loss(w, a)) for w in row] for row in nets]
    verdict = li2020.FiniteWidthLoss()(widths, losses, a)
    assert verdict.holds, verdict
    assert_allclose(verdict.numbers["constant"], 0.53, atol=0.005)
    theorem = li2020.FiniteWidthGradient()
    errors = [
        np.mean([theorem.width_error(w, hermite.population_gradient(w, a), a) for w in row[:6]])
        for row in nets
    ]
    gradient = theorem(widths, errors)
    assert gradient.holds
    assert 0.5 < gradient.numbers["constant"] < 1.6
    assert li2020.FiniteWidthLoss()([10], [[1.0]], a).outcome is Outcome.NOT_APPLICABLE


def test_sample_gradients_concentrate_like_one_over_root_n():
    # d = 10: the mean-field gradient of N samples is off by 0.50 to 0.58 over sqrt(N) per neuron
    # for wide networks; the error is proportional to the root of the loss, L_inf + 0.53/m, which
    # makes it 1.17 times that at m = 400
    d, m = 10, 400
    a = np.full(d, 0.1)
    teacher = wf.populations.GaussianAbsTeacher(a)
    net = wf.Homogeneous.init(jax.random.key(0), features=d, width=m)
    exact = np.asarray(hermite.population_gradient(net.weights, a))
    counts, errors = (500, 4000), []
    for n in counts:
        gaps = []
        for seed in range(4):
            data = teacher.sample(jax.random.key(seed), n)
            gradient = m * np.asarray(
                data.objective(wf.losses.MeanSquares(), net).gradient(net)[1]["weights"]
            )
            gaps.append(np.mean(np.sum((gradient - exact) ** 2, axis=1)))
        errors.append(math.sqrt(np.mean(gaps)))
    verdict = li2020.FiniteWidthGradient()(counts, errors)
    assert verdict.holds, verdict
    assert 0.5 < verdict.numbers["constant"] < 0.75


def test_rate_equations_on_a_synthetic_population():
    # half the mass on basis neurons, half on typical ones
    d, rng = 20, np.random.default_rng(0)
    a = np.full(d, 1 / d)
    typical = rng.normal(size=(2000, d)) / math.sqrt(d)
    typical *= np.sqrt(0.5 / np.mean(np.sum(typical**2, axis=1)))
    basis = np.repeat(np.eye(d), 10, axis=0)
    m = len(typical) + len(basis)
    w = np.concatenate([typical * math.sqrt(m / len(typical)), basis * math.sqrt(0.5 * m / d / 10)])
    verdict = li2020.RateEquations()(w, a)
    assert verdict.holds, verdict
    assert li2020.RateEquations()(typical, a).outcome is Outcome.NOT_APPLICABLE
