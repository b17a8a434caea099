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


def test_a_kink_at_which_neurons_stick_bounds_no_slope():
    # f >= 0 for |z| with positive output weights: the loss on y = -0.02 stays at y^2/2, whatever
    # a rate says
    data = wf.Dataset([[1.0]], [-0.02])
    hidden = np.where(np.arange(100) % 2, 1e-3, -1e-3)[:, None]
    net = wf.Shallow(hidden, 20 * np.ones(100), OURS, "abs")
    run = wf.train(
        net, data, wf.GradientDescent(1e-5), steps=600, every=300, record=ch.record((-1.0, 1.0))
    )
    assert run.table["sum_loss"].values[-1] > 2e-4
    for verdict in (
        ch.Certificate()(net, data, interval=(-1.0, 1.0)),
        ch.Certificate()(run, interval=(-1.0, 1.0)),
        ch.PolyakLojasiewicz()(run),
    ):
        assert verdict.outcome is wf.Outcome.NOT_APPLICABLE
        assert "not bounded away from 0" in verdict.message


def test_unequal_node_scales_count_with_the_least():
    # -dL/dt >= lambda_min(G) sum_j lambda_j |sigma'_j r|^2, in which no node may stand for all
    data = wf.data.random_labels(jax.random.key(3), samples=3, features=5)
    net = wf.Shallow.init(
        1, features=5, width=60, activation="tanh", scaling=wf.scalings.Zipf(0.0, 0.4)
    )
    run = wf.train(net, data, wf.GradientDescent(0.2), steps=4, every=2, record=ch.record())
    assert ch.MonotoneLoss()(run).outcome is wf.Outcome.HOLDS


def test_records_on_another_interval_are_not_judged(run):
    net, data, table = run
    assert ch.Lemma1()(net, data, table, interval=(-2.0, 2.0)).outcome is not wf.Outcome.VIOLATED
    verdict = ch.Lemma1()(net, data, table, interval=(-0.5, 0.7))
    assert verdict.outcome is wf.Outcome.NOT_APPLICABLE
    assert "recorded with other settings" in verdict.message


def test_targets_of_zero_meet_no_width():
    for theorem in (ch.Theorem1(), ch.Corollary1()):
        verdict = theorem(wide(), wf.Dataset([[0.2]], [0.0]), **OPTIONS)
        assert verdict.outcome is wf.Outcome.VACUOUS
        assert verdict.numbers["width_for_loss"] == np.inf


def test_movement_is_that_of_one_network():
    net, data = wide(), DATA
    other = wf.Shallow(net.hidden, -net.output, OURS, "linear")
    assert ch.MovementBound()(net, net, data.inputs).outcome is wf.Outcome.HOLDS
    verdict = ch.MovementBound()(net, other, data.inputs)
    assert verdict.outcome is wf.Outcome.NOT_APPLICABLE
    assert "one network" in verdict.message


def test_a_pruned_network_has_no_random_start():
    net = wf.Shallow.init(1, features=5, width=400, activation="tanh", scaling=OURS)
    data = wf.data.random_labels(jax.random.key(3), samples=3, features=5)
    verdict = ch.Lemma3()(wf.prune(net, keep=390), data, exact=True, interval=(-2.0, 2.0))
    assert verdict.outcome is wf.Outcome.NOT_APPLICABLE
    assert "pruned" in verdict.message


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("dynamics", [wf.GradientFlow(1e-3), wf.GradientDescent(1.0)])
def test_an_equality_is_judged_to_the_accuracy_of_the_run(precision, dynamics):
    # linear, one sample: L = L_0 exp(-2 c^2 G t), where the inequality (16) is an equality
    data = wf.Dataset([[0.6, 0.3]], [1.0])
    net = wf.Shallow.init(1, features=2, width=50, activation="linear", scaling=OURS)
    length = {"time": 60.0} if isinstance(dynamics, wf.GradientFlow) else {"steps": 60}
    run = wf.train(net, data, dynamics, **length, record=ch.record(), precision=precision)
    for theorem in (ch.PolyakLojasiewicz(), ch.MonotoneLoss(), ch.Lemma1Steps()):
        assert theorem(run).outcome is wf.Outcome.HOLDS, theorem(run)
    faster = run.table.assign_coords(time=1.2 * run.table["time"])  # a loss too large for its time
    verdict = ch.PolyakLojasiewicz().evaluate(run.start, data, faster)
    assert verdict.outcome is wf.Outcome.VIOLATED


def test_a_start_without_active_neurons_is_not_advised_to_grow_its_output():
    # two neurons: at some of the samples none starts in the middle third, so that beta is infinite
    # whatever c is
    data = wf.data.random_labels(jax.random.key(0), samples=4, features=9)
    net = wf.Shallow.init(
        0, features=9, width=2, activation="tanh", scaling=wf.scalings.MeanField()
    )
    verdict = ch.Certificate()(net, data)
    assert verdict.numbers["beta"] == np.inf
    assert "times larger output weights" not in verdict.message
    assert "no neuron starts in the middle third" in verdict.message
