"""Stage lemmas of li2020 on short runs and on made-up curves that must be told apart."""

import math

import jax
import numpy as np
import pytest

from wideflow.papers.li2020 import theorems as li2020
from wideflow.papers.li2020.limits.symmetric_cloud import SymmetricCloud, evolve
from wideflow.theorems import Outcome


@pytest.fixture(scope="module")
def cloud_run():
    """kappa = 2: half the coordinates at 0.5/d, half at 1.5/d; d = 16, the symmetrised cloud to
    tau = 40.
    """
    d = 16
    a = np.repeat([0.5, 1.5], d // 2) / d
    cloud = SymmetricCloud.init(jax.random.key(1), features=d, particles=32, signs="hadamard")
    _, run = evolve(cloud, a, 0.25, 160, every=4)
    return a, run


def test_moment_decay_and_range(cloud_run):
    a, run = cloud_run
    moments = np.mean(run.representatives**2, axis=1)
    verdict = li2020.MomentDecay()(run.times, moments - a, moments.sum(axis=1) - 1)
    assert verdict.holds, verdict
    assert li2020.SecondMomentRange()(moments, a).holds
    never = li2020.MomentDecay()(run.times, moments - a + 1.0, moments.sum(axis=1) - 1)
    assert never.outcome is Outcome.VIOLATED


def test_coordinates_scale_with_the_square_root(cloud_run):
    a, run = cloud_run
    late = int(np.searchsorted(run.times, len(a)))  # tau = d
    verdict = li2020.CoordinateScaling()(run.representatives[0], run.representatives[late], a)
    assert verdict.holds, verdict
    assert verdict.numbers["printed_error"] > 0.2  # the printed (a_i d) is far off


def test_lottery_tells_good_predictions_from_bad():
    rng = np.random.default_rng(0)
    initial = rng.normal(size=(60, 8))
    shares = initial**2 / np.sum(initial**2, axis=1, keepdims=True)
    winners = shares.max(axis=1) > np.quantile(shares.max(axis=1), 0.7)
    final = np.where(winners[:, None], np.eye(8)[shares.argmax(axis=1)], initial)
    assert li2020.Lottery()(initial, final).holds
    assert li2020.Lottery()(rng.normal(size=(60, 8)), final).outcome is Outcome.VIOLATED
    assert li2020.Lottery()(initial, initial).outcome is Outcome.NOT_APPLICABLE


def test_losses_against_the_floor():
    a = np.full(10, 0.1)
    floor = (1 - 3 / math.pi) / 10
    for theorem in (li2020.FiniteConvergence(), li2020.InfiniteWidthConvergence()):
        assert theorem(0.04 * floor, a).holds
        assert theorem(0.9 * floor, a).outcome is Outcome.VIOLATED
        assert theorem(math.nan, a).outcome is Outcome.VIOLATED
    on_target = math.sqrt(10 * 0.1) * np.eye(10)
    assert li2020.WarmStart()(on_target, a).holds
    assert (
        li2020.WarmStart()(np.random.default_rng(0).normal(size=(40, 10)), a).outcome
        is Outcome.VIOLATED
    )


def test_slopes():
    t = np.array([100.0, 1000.0, 2000.0, 4000.0])
    assert li2020.LateDecay()(t, 3 * t**-2.1, start=1000).holds
    assert li2020.LateDecay()(t, 3 * t**-1.0, start=1000).outcome is Outcome.VIOLATED
    m = np.array([32, 128, 512])
    assert li2020.ErrorPropagation()(m, 2 / m).holds
    assert li2020.ErrorPropagation()(m, m**-0.3).outcome is Outcome.VIOLATED
    assert li2020.ErrorPropagation()([32, 64], [1.0, 0.5]).outcome is Outcome.NOT_APPLICABLE


def test_every_theorem_has_a_citation_and_a_statement():
    classes = [value for value in vars(li2020).values() if isinstance(value, type)]
    assert len(classes) >= 16
    for theorem in classes:
        assert theorem.citation.key == "li2020"
        assert theorem.citation.locator
        assert len(theorem.__doc__) > 80
