"""Assumptions 1 and 3 on the drawn numbers, the law of the frozen layer, and runs or activations of
which nothing is known.
"""

import jax
import numpy as np
import pytest

import wideflow as wf
from wideflow.theorems import chen2022 as ch

OURS = wf.scalings.MeanField()
OPTIONS = {"interval": (-3.0, 3.0), "exact": True, "variant": "sharp"}
DATA = wf.Dataset([[0.2]], [0.01])


def wide(deviation=1.0, **options):
    """One input, linear, sizes at which Theorem 1 speaks: it asks for chat >= 0.06 and a width
    of 688.
    """
    return wf.Shallow.init(
        jax.random.key(3),
        features=1,
        width=1000,
        scaling=OURS,
        activation="linear",
        output_scale=0.2,
        weight_std=deviation,
        **options,
    )


def test_theorem_1_speaks_of_standard_normal_weights_alone():
    assert ch.Theorem1()(wide(), DATA, **OPTIONS).outcome is wf.Outcome.HOLDS
    for deviation in (0.1, 100.0):
        verdict = ch.Theorem1()(wide(deviation), DATA, **OPTIONS)
        assert verdict.outcome is wf.Outcome.NOT_APPLICABLE
        assert "deviation" in verdict.message
        assert verdict.numbers["needed_chat"] > 0  # what it asks for is told all the same
    for lemma in (ch.Lemma2(), ch.Lemma3()):
        for key in (None, jax.random.key(0)):
            verdict = lemma(wide(100.0), DATA, key=key, draws=3)
            assert verdict.outcome is wf.Outcome.NOT_APPLICABLE
            assert "deviation" in verdict.message
    assert ch.Corollary1()(wide(100.0), DATA, **OPTIONS).outcome is wf.Outcome.NOT_APPLICABLE


def test_fair_signs_are_asked_for():
    net = wide()
    plus = wf.Shallow(net.hidden, np.abs(net.output), OURS, "linear")
    verdict = ch.Theorem1()(plus, DATA, **OPTIONS)
    assert verdict.outcome is wf.Outcome.NOT_APPLICABLE
    assert "output weights are positive" in verdict.message


def test_the_older_mean_field_start_is_too_small_after_the_map():
    data = wf.data.random_labels(jax.random.key(0), samples=3, features=30)
    net = wf.Shallow.init(
        jax.random.key(1), features=30, width=60, scaling=wf.scalings.MeanField(hidden=1.0)
    )
    mapped = wf.maps.older_as_mean_field(net, 1.0).model
    assert "deviation 0.19" in ch.Lemma3()(mapped, data).message  # about 30^-1/2
    assert "wf.maps" in ch.Lemma3()(net, data).message


def test_lemma_4_is_about_gaussian_frozen_weights():
    data = wf.data.random_labels(jax.random.key(0), samples=3, features=5)
    rng = np.random.default_rng(0)
    for weights, words in (
        (rng.choice([-1.0, 1.0], size=(200, 5)), "not Gaussian"),
        (3 * rng.normal(size=(200, 5)), "deviation"),
    ):
        embedding = wf.embeddings.RandomFeatures(weights, "tanh")
        net = wf.Shallow.init(
            jax.random.key(1),
            features=5,
            width=50,
            scaling=OURS,
            activation="tanh",
            embedding=embedding,
        )
        for verdict in (ch.Lemma4()(net, data), ch.Theorem3()(net, data, empirical=True)):
            assert verdict.outcome is wf.Outcome.NOT_APPLICABLE
            assert "frozen weights z" in verdict.message
            assert words in verdict.message


@pytest.fixture(scope="module")
def run():
    data = wf.data.random_labels(jax.random.key(3), samples=3, features=5)
    net = wf.Shallow.init(jax.random.key(1), features=5, width=7, scaling=OURS, activation="linear")
    table = wf.train(
        net,
        data,
        wf.GradientFlow(method="tsit5"),
        time=0.1,
        every=0.05,
        record=ch.record((-2.0, 2.0)),
    ).table
    return net, data, table


@pytest.mark.parametrize(
    "theorem",
    [ch.Lemma1(), ch.Lemma1Steps(), ch.MonotoneLoss(), ch.PolyakLojasiewicz(), ch.Certificate()],
)
def test_a_run_that_diverged_refutes_nothing(theorem, run):
    net, data, table = run
    lost = table.copy(deep=True)
    for name in ("sum_loss", "eta", "loss_slope"):
        lost[name][-1] = np.nan
    verdict = theorem(net, data, lost)
    assert verdict.outcome is wf.Outcome.NOT_APPLICABLE
    assert "nan" not in verdict.message


def test_a_network_of_nan_did_not_learn_without_moving(run):
    import equinox as eqx

    net, data, _ = run
    lost = eqx.tree_at(lambda m: m.weights, net, np.nan * net.weights)
    assert ch.MovementBound()(net, lost, data.inputs).outcome is wf.Outcome.NOT_APPLICABLE


def test_a_network_of_signs_has_no_bound_on_its_outputs():
    # sign jumps, so outputs may change however little the pre-activations move
    import equinox as eqx

    act, inputs = wf.activations.sign(), np.random.default_rng(0).normal(size=(5, 6))
    scaling = wf.scalings.MeanField()
    net = wf.Shallow.init(0, features=6, width=30, scaling=scaling, activation=act)
    moved = eqx.tree_at(lambda m: m.weights, net, 1.5 * net.weights)
    assert ch.MovementBound()(net, moved, inputs).outcome is wf.Outcome.NOT_APPLICABLE
    random = wf.embeddings.RandomFeatures.init(0, 6, 30, act)
    net = wf.Shallow.init(0, features=6, width=30, scaling=scaling, embedding=random)
    verdict = ch.Lemma4()(net, wf.Dataset(inputs, np.ones(5)))
    assert verdict.outcome is wf.Outcome.NOT_APPLICABLE


def test_unknown_slopes_are_not_said_to_vanish(run):
    _, data, table = run
    own = wf.Shallow.init(
        jax.random.key(1),
        features=5,
        width=7,
        scaling=OURS,
        activation=lambda z: z + 0.1 * jax.numpy.sin(z),
    )
    verdict = ch.PolyakLojasiewicz().evaluate(own, data, table)
    assert verdict.outcome is wf.Outcome.NOT_APPLICABLE
    assert "unknown" in verdict.message
    assert "not bounded away" not in verdict.message
