"""Theorems of ren2023 on cases where they must hold, cannot apply, or must fail."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from wideflow.papers.ren2023 import theorems as ren2023
from wideflow.papers.ren2023.depth_separator import DepthSeparator
from wideflow.papers.ren2023.laws.base import sphere
from wideflow.papers.ren2023.laws.bessel import BesselLaw
from wideflow.papers.ren2023.laws.regular import UniformRadius
from wideflow.papers.ren2023.limits.flow import alpha_of_norm, reduced_flow
from wideflow.papers.ren2023.theorems import symmetry
from wideflow.theorems import Outcome

LAW = BesselLaw(10)
KEY = jax.random.key(0)


def net(d=6, width=25, seed=1):
    rng = np.random.default_rng(seed)
    return DepthSeparator(
        rng.normal(size=(width, d)) / d**0.5, -rng.uniform(0.3, 0.9, 4), rng.uniform(0.4, 0.9, 4)
    )


def batch(d=6, samples=60, seed=2):
    x = np.random.default_rng(seed).normal(size=(samples, d)) * 0.6
    return x, np.maximum(1 - np.linalg.norm(x, axis=1), 0)


def test_symmetric_moments_hold_on_symmetric_inputs_only():
    x = UniformRadius(6, 2.0).inputs(KEY, 20_000, antithetic=True)
    theorem = ren2023.Lemma31()
    assert theorem(net(), x, lambda r: jnp.exp(-r)).holds
    skew = x * jnp.array([3.0, 1, 1, 1, 1, 1])
    assert theorem(net(), skew, lambda r: jnp.exp(-r)).outcome is Outcome.VIOLATED


@pytest.mark.parametrize("clip", [None, (0.3, 0.3, 0.3)])
def test_infinite_width_turns_no_neuron(clip):
    verdict = ren2023.InfiniteWidthSymmetry()(
        UniformRadius(5, 2.0), 1.0, [-0.8, -0.5], [0.6, 0.4], clip=clip, width=400
    )
    assert verdict.holds, verdict


def test_exact_identities_of_the_flow():
    model, (x, y) = net(), batch()
    assert ren2023.LemmaD3()(model, x, y).holds
    assert ren2023.LemmaD4()(model, x, y, batch(seed=5, samples=7)[0]).holds
    assert ren2023.LemmaD5()(model, x, y).holds


def test_projections_are_inactive_where_the_bounds_say_so():
    model = DepthSeparator(sphere(KEY, 200, 10), np.full(3, -0.5), np.full(3, 0.5))
    x = LAW.inputs(KEY, 500)
    assert ren2023.Lemma41()(model, (100, 1000, 10), x, spread=0.5).holds
    assert ren2023.Lemma41()(model, (1e-3, 1000, 10)).outcome is Outcome.NOT_APPLICABLE
    positive = DepthSeparator(model.first, [0.1, -0.5, -0.5], np.full(3, 0.5))
    assert ren2023.Lemma41()(positive, (100, 1000, 10)).outcome is Outcome.NOT_APPLICABLE


def test_stage_one_lemmas():
    shrinking = np.array([[1.0, -1.0], [0.8, -1.1], [0.5, -1.3]])
    assert ren2023.LemmaC5()([0.0, 1.0, 2.0], shrinking, 2.0).holds
    assert (
        ren2023.LemmaC5()([0.0, 1.0, 2.0], shrinking * [[1], [2], [3]], 2.0).outcome
        is Outcome.VIOLATED
    )
    bias = ren2023.LemmaC7()(LAW, alpha_of_norm(10, 10**-0.5), clip=(100, 1000, 10))
    assert bias.holds
    assert bias.numbers["low_end"] == pytest.approx(0.24, abs=0.01)
    assert bias.numbers["high_end"] == pytest.approx(-0.48, abs=0.01)
    times = np.array([6.509, 6.502, 6.493]) / (np.array([10, 20, 40]) ** 1.5 * np.log([10, 20, 40]))
    assert ren2023.LemmaC10()([10, 20, 40], times).holds
    assert ren2023.LemmaC10()([10, 20, 40], 0.01 * times[[0, 0, 0]]).outcome is Outcome.VIOLATED
    assert ren2023.LemmaC17()(LAW, 0.0129, -1e-3, 0.4).holds
    assert (
        ren2023.LemmaC17()(LAW, 0.0129, 1e-3, 0.4, clip=(100, 1000, 10)).outcome
        is Outcome.NOT_APPLICABLE
    )


def test_stage_one_ends_as_stated():
    verdict = ren2023.Lemma42()(
        LAW,
        alpha_of_norm(10, 10**-0.5),
        [2e-6, -1e-6],
        [0.3, 0.3],
        clip=(100, 1000, 10),
        horizon=10.0,
    )
    assert verdict.holds, verdict


def test_neuron_lemmas():
    # printed example: (v2, r2) = (-0.7, 0.3) has its kink at F = 3/7
    verdict = ren2023.LemmaC11()([-0.7, -0.69], [0.3, 0.3])
    assert verdict.holds
    assert ren2023.LemmaC13()(LAW, 0.2, [-0.8, -0.7], [0.5, 0.55]).holds
    model = net()
    start = DepthSeparator(sphere(KEY, 40, 6), model.second_weight, model.second_bias)
    turned = np.asarray(start.first) + 0.02 * np.random.default_rng(0).normal(size=(40, 6))
    moved = DepthSeparator(turned, start.second_weight, start.second_bias)
    assert ren2023.LemmaC14()(moved, start, sphere(jax.random.key(3), 200, 6)).holds
    assert ren2023.LemmaC14()(moved, model, sphere(KEY, 5, 6)).outcome is Outcome.NOT_APPLICABLE


@pytest.fixture(scope="module")
def path():
    return reduced_flow(LAW, 0.2, -0.8, 0.5, np.linspace(0.5, 200.0, 400))


def test_convergence_rate(path):
    verdict = ren2023.Lemma43()(LAW, path)
    assert verdict.holds, verdict
    assert 1.0 < verdict.numbers["smallest_ratio"] < 1.1
    # down to losses of 1e-10 in another dimension, where the ratio is 1 to within the rounding of
    # the loss
    law = UniformRadius(3, 2.0)
    late = reduced_flow(law, alpha_of_norm(3, 1.0), -0.01, 0.3, np.linspace(1.0, 250.0, 250))
    assert float(late.loss[-1]) < 1e-9
    assert ren2023.Lemma43()(law, late).holds
    assert ren2023.Lemma43()(law, late, floor=1e-12).holds
    assert ren2023.TimeToLoss()(10, 1e-2, 108.5).holds
    assert ren2023.TimeToLoss()(10, 1e-2, 1e6).outcome is Outcome.VIOLATED


def test_step_size(path):
    for i in (0, 100, 399):
        verdict = ren2023.StepSize()(LAW, float(path.alpha[i]), float(path.w[i]), float(path.b[i]))
        assert verdict.holds, verdict
    assert ren2023.StepSize()(LAW, 0.2, -0.8, 0.5, rate=50.0).outcome is Outcome.VIOLATED


def test_stage_two_lemmas(path):
    x = 0.9 * UniformRadius(6, 1.0).inputs(KEY, 400)
    model = DepthSeparator(0.8 * sphere(KEY, 300, 6), [-0.6, -0.8, -0.7], [0.9, 0.8, 0.7])
    assert ren2023.LemmaD14()(model, x).holds
    assert (
        ren2023.LemmaD14()(DepthSeparator(model.first, [-9.0, -0.8], [0.1, 0.8]), x).outcome
        is Outcome.NOT_APPLICABLE
    )
    assert ren2023.LemmaD11()(model, x, x[:5]).holds
    assert ren2023.LemmaD12()(net()).holds
    for i in (0, 50, 300):
        at = float(path.alpha[i]), float(path.w[i]), float(path.b[i])
        verdict = ren2023.LemmaD15()(LAW, *at, constant=0.05)
        assert verdict.holds
        assert verdict.numbers["constant"] <= 0.0113  # the largest along such a path, tabulated
        assert ren2023.LemmaD16()(LAW, *at).holds
    assert ren2023.LemmaD15()(LAW, 0.2, 0.8, 0.5).outcome is Outcome.NOT_APPLICABLE
    # at the minimum alpha w = -1, b = 1 rounding decides whether the neuron is active: such states
    # are left out
    alpha, w, b = (
        np.append(x, end) for x, end in ((path.alpha, 0.5), (path.w, -2.0), (path.b, 1 - 1e-9))
    )
    assert ren2023.LemmaD15()(LAW, alpha, w, b, constant=0.05).holds
    assert ren2023.LemmaD15()(LAW, [0.5], [-2.0], [0.9]).outcome is Outcome.NOT_APPLICABLE
    assert ren2023.LemmaD18()(LAW, path.alpha, path.w).holds
    # a path that does not conserve alpha - 2 C w^2 / sqrt d breaks the bound 1.57 of d = 10
    assert ren2023.LemmaD18()(LAW, [0.5, 0.1], [-0.5, -3.0]).outcome is Outcome.VIOLATED
    assert ren2023.LemmaD18()(LAW, 0.1, -3.0).outcome is Outcome.NOT_APPLICABLE
    size, alpha = ren2023.fixed_point(BesselLaw(100))
    assert (size, alpha) == (pytest.approx(2.3209, abs=1e-4), pytest.approx(0.43087, abs=1e-5))


@pytest.mark.parametrize(("d", "expected"), [(3, 0.320), (10, 0.504), (100, 1.111)])
def test_density_bound_grows_with_the_dimension(d, expected):
    assert ren2023.sup_radius_density(BesselLaw(d)) == pytest.approx(expected, abs=2e-3)


def test_public_names():
    assert wf.theorems.ren2023.Lemma31.citation.key == "ren2023"


def test_the_standard_error_of_lemma_31_is_that_of_a_sample():
    # differences 0 and 2: mean 1, sample deviation sqrt(2), standard error 1
    assert symmetry._deviation(np.array([[0.0], [2.0]])) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="`inputs` must have at least two rows"):
        ren2023.Lemma31()(net(2, 3), [[1.0, 2.0]], abs)
