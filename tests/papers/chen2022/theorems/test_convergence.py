"""Lemmas 2-4, Theorems 1-3 and Corollary 1: constants by hand, probabilities by Monte Carlo."""

import math

import jax
import numpy as np
import pytest

import wideflow as wf
from wideflow.papers.chen2022 import theorems as ch

OURS = wf.scalings.MeanField()


def setting(samples=3, features=6, width=400, magnitude=1.0, act="tanh", seed=0):
    data = wf.data.random_labels(jax.random.key(seed), samples=samples, features=features)
    net = wf.Shallow.init(
        jax.random.key(seed + 1),
        features=features,
        width=width,
        scaling=OURS,
        activation=act,
        output_scale=magnitude,
    )
    return net, data


def test_theorem_1_constants_by_hand():
    net, data = setting()
    gram = np.asarray(data.inputs @ data.inputs.T) / 6
    values, diagonal = np.linalg.eigvalsh(gram), np.diag(gram)
    numbers = ch.Theorem1()(net, data, interval=(-1.0, 1.0), failure_probability=0.1).numbers
    floor = 1 / math.cosh(1) ** 2
    k3 = 2 / (6 * math.sqrt(2 * math.pi * diagonal.max())) * math.exp(-1 / (2 * diagonal.min()))
    y = float(np.linalg.norm(data.targets))
    c0 = 9 * math.sqrt(2) * y / (floor * 2 * k3**1.5)
    assert numbers["K3"] == pytest.approx(k3)
    assert numbers["c0"] == pytest.approx(c0)
    assert numbers["needed_chat"] == pytest.approx(c0 * values[-1] / values[0])
    assert numbers["r"] == pytest.approx(2 ** (1 / 3) * floor**2 * k3)
    assert numbers["width_for_activity"] == pytest.approx(math.log(60) / (2 * k3**2))
    assert numbers["width_for_loss"] == pytest.approx(
        2 * diagonal.sum() * math.log(120) / ((math.sqrt(2) - 1) ** 2 * y**2)
    )


def test_theorem_1_speaks_where_its_hypotheses_hold():
    # one input, chat far above what is asked; c_i = +-chat over a wide Gaussian start
    data = wf.Dataset([[1.0]], [2.0])
    net = wf.Shallow.init(
        jax.random.key(0),
        features=1,
        width=20_000,
        scaling=OURS,
        activation="tanh",
        output_scale=40.0,
    )
    asked = ch.Theorem1()(net, data, exact=True).numbers
    assert asked["needed_chat"] > 40
    scaled = 1.05 * asked["needed_chat"]
    width = int(1.05 * ch.width_for_loss([scaled**2], 2.0, 0.05))
    assert (
        width > 1e6
    )  # the width grows with chat^2: the theorem is honest only about enormous networks
    verdict = ch.Theorem1()(net, data, exact=True)
    assert verdict.outcome is wf.Outcome.NOT_APPLICABLE


def test_theorem_1_holds_along_a_run_when_the_targets_are_small_enough():
    # chat >= 2 kappa |y| / K3^1.5 is linear in |y| at fixed chat, but Lemma 2 then asks m ~
    # chat^2/|y|^2; n = 1, linear, wide interval
    data = wf.Dataset([[0.2]], [0.01])
    net = wf.Shallow.init(
        jax.random.key(3),
        features=1,
        width=60_000,
        scaling=OURS,
        activation="linear",
        output_scale=0.2,
    )
    options = {"interval": (-3.0, 3.0), "exact": True, "variant": "sharp"}
    numbers = ch.Theorem1()(net, data, **options).numbers
    magnitude = 1.01 * numbers["needed_chat"]
    width = int(ch.width_for_loss([magnitude**2 * 0.04], 0.01, 0.05)) + 1
    net = wf.Shallow.init(
        jax.random.key(3),
        features=1,
        width=width,
        scaling=OURS,
        activation="linear",
        output_scale=magnitude,
    )
    run = wf.train(
        net,
        data,
        wf.GradientFlow(1e-10, "tsit5"),
        time=5.0,
        record=ch.record((-3.0, 3.0)),
        every=0.5,
    )
    verdict = ch.Theorem1()(net, data, run.table, **options)
    assert verdict.outcome is wf.Outcome.HOLDS, verdict
    assert verdict.numbers["rate_ratio"] > 1
    assert ch.Corollary1()(net, data, run.table, **options).outcome is wf.Outcome.HOLDS


def test_corollary_1_asks_for_independent_inputs():
    net, data = setting(samples=8, features=6)
    verdict = ch.Corollary1()(net, data)
    assert verdict.outcome is wf.Outcome.NOT_APPLICABLE
    assert "rank" in verdict.message


def test_lemma_2_holds_by_monte_carlo_at_the_width_it_asks_for():
    net, data = setting(width=3000)
    needed = ch.Lemma2()(net, data).numbers["needed_width"]
    net, data = setting(width=math.ceil(needed))
    verdict = ch.Lemma2()(net, data, key=jax.random.key(5), draws=60)
    assert verdict.outcome is wf.Outcome.HOLDS
    assert ch.Lemma2()(net, data).outcome is wf.Outcome.HOLDS


def test_the_printed_lemma_2_is_false():
    # n = d = 400, |y| = 1, tanh, m = 64: the printed bound asks for 21 neurons, yet L^0 > |y|^2 at
    # every draw
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    data = wf.Dataset(rng.normal(size=(400, 400)), y / np.linalg.norm(y))
    losses = [
        ch.gather(
            wf.Shallow.init(
                jax.random.key(s), features=400, width=64, scaling=OURS, activation="tanh"
            ),
            data,
        ).initial_loss
        for s in range(10)
    ]
    assert min(losses) > 1.0
    assert np.mean(losses) == pytest.approx(1.74, rel=0.1)
    net = wf.Shallow.init(
        jax.random.key(0), features=400, width=64, scaling=OURS, activation="tanh"
    )
    assert ch.Lemma2()(net, data).outcome is wf.Outcome.NOT_APPLICABLE


@pytest.mark.parametrize("exact", [False, True])
def test_lemma_3_holds_by_monte_carlo_at_the_width_it_asks_for(exact):
    net, data = setting(width=10)
    needed = ch.Lemma3()(net, data, interval=(-1.0, 1.0), exact=exact).numbers["needed_width"]
    net, data = setting(width=math.ceil(needed))
    verdict = ch.Lemma3()(
        net, data, interval=(-1.0, 1.0), exact=exact, key=jax.random.key(1), draws=40
    )
    assert verdict.outcome is wf.Outcome.HOLDS


def three_layer(features, seed=0):
    data = wf.data.random_labels(jax.random.key(seed), samples=3, features=5)
    embedding = wf.embeddings.RandomFeatures.init(
        jax.random.key(seed + 1), 5, features, activation="tanh"
    )
    net = wf.Shallow.init(
        jax.random.key(2),
        features=5,
        width=50,
        scaling=OURS,
        activation="tanh",
        embedding=embedding,
    )
    return net, data


def test_lemma_4_counts_features_and_reports_the_distance():
    net, data = three_layer(20_000)
    verdict = ch.Lemma4()(net, data)
    n, p, u = 3, 0.1, verdict.numbers["limit_lambda_min"] / 2
    b = 8 / 3 * float(np.max(np.sum(np.asarray(data.inputs) ** 2, axis=1))) / 5
    assert verdict.numbers["needed_features"] == pytest.approx(
        (4 * b**2 * n**2 / u**2 + 2 * b * n / u) * math.log(2 * n**2 / p)
    )
    assert verdict.outcome in (wf.Outcome.NOT_APPLICABLE, wf.Outcome.VACUOUS)
    assert verdict.numbers["gram_distance"] < u  # the bound is pessimistic
    generous = ch.Lemma4()(net, data, distance=2.0)
    assert generous.outcome is wf.Outcome.HOLDS


def test_theorem_2_constants_and_its_event():
    net, data = three_layer(4000)
    limit = np.asarray(wf.limits.hidden_gram(data.inputs, "tanh"))
    numbers = ch.Theorem2()(net, data, limit, interval=(-1.0, 1.0)).numbers
    for name in ("keeps_lambda_min", "keeps_lambda_max", "keeps_G_min", "keeps_G_max"):
        assert numbers[name] == 1.0
    values, diagonal = np.linalg.eigvalsh(limit), np.diag(limit)
    floor = 1 / math.cosh(1) ** 2
    k = 2 / (6 * math.sqrt(2 * math.pi * 2 * diagonal.max())) * math.exp(-1 / diagonal.min())
    constant = 9 * values[-1] / (math.sqrt(2) * values[0] * floor * 2)
    assert numbers["K"] == pytest.approx(k)
    assert numbers["needed_chat"] == pytest.approx(
        8 * constant * float(np.linalg.norm(data.targets)) / k**1.5
    )
    assert numbers["r"] == pytest.approx(2 ** (-2 / 3) * floor**2 * k)
    small, _ = three_layer(4)
    assert "too small" in ch.Theorem2()(small, data, limit).message


def test_theorem_2_knows_the_limit_of_random_features():
    net, data = three_layer(4000)
    limit = np.asarray(wf.limits.hidden_gram(data.inputs, "tanh"))
    own, given = (ch.Theorem2()(net, data, *limits) for limits in ((), (limit,)))
    assert own.message == given.message
    assert own.numbers["K"] == given.numbers["K"]
    plain = wf.Shallow.init(0, features=5, width=20, scaling=wf.scalings.MeanField())
    verdict = ch.Theorem2()(plain, data)
    assert verdict.outcome is wf.Outcome.NOT_APPLICABLE
    assert "random embedding" in verdict.message


def test_theorem_3_says_which_hypothesis_fails():
    net, data = three_layer(500)
    verdict = ch.Theorem3()(net, data)
    assert verdict.outcome in (wf.Outcome.NOT_APPLICABLE, wf.Outcome.VACUOUS)
    assert "below the required" in verdict.message
    assert (
        "chat" in ch.Theorem3()(net, data, empirical=True).message
        or "too small" in ch.Theorem3()(net, data, empirical=True).message
    )
    plain, other = setting()
    assert ch.Theorem3()(plain, other).outcome is wf.Outcome.NOT_APPLICABLE


def test_a_wrong_probability_is_named():
    net, data = setting()
    with pytest.raises(ValueError, match="`failure_probability`"):
        ch.Theorem1()(net, data, failure_probability=1.5)
