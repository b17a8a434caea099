"""Lemma 1, the certificate, PL and the identities along real runs, with the counterexamples to the
printed forms.
"""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import expm
from scipy.stats import norm

import wideflow as wf
from wideflow._core.activations import leaky_relu
from wideflow.papers.chen2022 import theorems as ch

OURS = wf.scalings.MeanField()


def flow(net, data, time, interval=None, every=None):
    method = "auto" if net.activation.kinks else "tsit5"  # the quickest to compile
    return wf.train(
        net,
        data,
        wf.GradientFlow(1e-11, method),
        time=time,
        every=every or wf.Logarithmic(12, time / 1e4),
        record=ch.record(interval),
    )


@pytest.fixture(scope="module")
def public():
    """One input, G = 1, tanh, 100 Gaussian-quantile neurons with c = +20 and with c = -20, y =
    0.3.
    """
    quantiles = norm.ppf((np.arange(100) + 0.5) / 100)
    hidden = np.concatenate([quantiles, quantiles])[:, None]
    net = wf.Shallow(hidden, np.repeat([20.0, -20.0], 100), OURS, "tanh")
    data = wf.Dataset([[1.0]], [0.3])
    run = flow(net, data, 0.01, (-1.0, 1.0), [0.001, 0.002, 0.005, 0.01])
    return net, data, run.table


def test_the_public_example(public):
    net, data, table = public
    verdict = ch.Certificate()(net, data, table, interval=(-1.0, 1.0), variant="corrected")
    assert_allclose(table.loss, [0.045, 0.0310358, 0.0214051, 0.0070229, 0.0010964], atol=1e-7)
    assert_allclose(table.eta, 0.68)
    expected = {
        "eta_tilde": 0.26,
        "kappa": 7.5766,
        "beta": 0.6062,
        "certified_eta": 0.1397,
        "certified_rate": 19.71,
    }
    for name, value in expected.items():
        assert verdict.numbers[name] == pytest.approx(value, rel=3e-4), name
    assert verdict.outcome is wf.Outcome.HOLDS


def test_lemma_1_holds_along_the_public_example(public):
    net, data, table = public
    for variant in ("corrected", "sharp"):
        verdict = ch.Lemma1()(net, data, table, interval=(-1.0, 1.0), variant=variant)
        assert verdict.outcome is wf.Outcome.HOLDS
        assert verdict.numbers["share_not_vacuous"] == 1.0


def test_the_printed_kappa_is_false_and_the_corrected_one_is_not():
    # n = 1, G = 1, linear, y = 1, I = (-0.005, 0.005), 64 neurons near 0: eta reaches 0 while the
    # printed right side is 0.9998
    spread = np.linspace(-0.001, 0.001, 32)
    net = wf.Shallow(
        np.concatenate([spread, spread])[:, None], np.repeat([1.0, -1.0], 32), OURS, "linear"
    )
    data = wf.Dataset([[1.0]], [1.0])
    interval = (-0.005, 0.005)
    run = flow(net, data, 0.02, interval, 0.0005)
    assert run.table.eta.values[-1] == 0.0
    assert (
        ch.Lemma1()(net, data, run.table, interval=interval, variant="printed").outcome
        is wf.Outcome.VIOLATED
    )
    for variant in ("corrected", "sharp"):
        verdict = ch.Lemma1()(net, data, run.table, interval=interval, variant=variant)
        assert verdict.outcome is not wf.Outcome.VIOLATED
        assert verdict.margin >= 0


@pytest.mark.parametrize("act", ["tanh", "relu"])
def test_all_steps_hold_on_gaussian_data(act):
    data = wf.data.random_labels(jax.random.key(1), samples=4, features=8)
    net = wf.Shallow.init(
        jax.random.key(0), features=8, width=100, scaling=OURS, activation=act, output_scale=3.0
    )
    check = ch.full_check(net, data, time=3.0)
    for name in ("MonotoneLoss", "MovementBound", "Lemma1Steps"):
        assert check.verdicts[name].outcome is wf.Outcome.HOLDS, (name, str(check))
    for name in ("Lemma1", "Lemma1 sharp"):
        assert check.verdicts[name].outcome in (wf.Outcome.HOLDS, wf.Outcome.VACUOUS)
    assert check.verdicts["Theorem1"].outcome is wf.Outcome.NOT_APPLICABLE
    assert "MonotoneLoss" in str(check)


def test_pl_inequality_for_a_leaky_network_and_not_for_tanh():
    data = wf.data.random_labels(jax.random.key(2), samples=3, features=6)
    net = wf.Shallow.init(
        jax.random.key(0), features=6, width=40, scaling=OURS, activation=leaky_relu(0.3)
    )
    rate = wf.observables.safe_rate(net, data, 0.05)
    run = wf.train(net, data, wf.GradientDescent(rate), steps=400, record=ch.record())
    verdict = ch.PolyakLojasiewicz()(net, data, run.table)
    assert verdict.outcome is wf.Outcome.HOLDS
    gram = np.asarray(data.inputs @ data.inputs.T) / 6
    assert verdict.numbers["rate"] == pytest.approx(2 * np.linalg.eigvalsh(gram)[0] * 0.09)
    tanh = wf.Shallow(net.hidden, net.output, OURS, "tanh")
    assert ch.PolyakLojasiewicz()(tanh, data, run.table).outcome is wf.Outcome.NOT_APPLICABLE


def test_a_linear_network_decays_as_the_exponential_of_its_gram_matrix():
    data = wf.data.random_labels(jax.random.key(3), samples=3, features=5)
    net = wf.Shallow.init(
        jax.random.key(1), features=5, width=7, scaling=OURS, activation="linear", output_scale=1.5
    )
    run = flow(net, data, 2.0, every=[0.5, 2.0])
    gram = np.asarray(data.inputs @ data.inputs.T) / 5
    start = np.asarray(net.outputs(data.inputs) - data.targets)
    for i, t in enumerate([0.0, 0.5, 2.0]):
        assert_allclose(
            run.table.loss[i], 0.5 * np.sum((expm(-2.25 * gram * t) @ start) ** 2), rtol=1e-8
        )
    assert ch.PolyakLojasiewicz()(net, data, run.table).outcome is wf.Outcome.HOLDS


def test_a_rising_loss_is_seen():
    data = wf.data.random_labels(jax.random.key(3), samples=3, features=5)
    net = wf.Shallow.init(jax.random.key(1), features=5, width=7, scaling=OURS, activation="linear")
    table = flow(net, data, 1.0).table
    table["sum_loss"] = table.sum_loss[::-1].drop_vars(["step", "time"])
    assert ch.PolyakLojasiewicz()(net, data, table).outcome is wf.Outcome.VIOLATED
    assert ch.MonotoneLoss()(net, data, table).outcome is wf.Outcome.VIOLATED


@pytest.mark.parametrize("scaling", [OURS, wf.scalings.NTK(), wf.scalings.MeanField(hidden=1.0)])
def test_learning_needs_movement_in_every_scaling(scaling):
    data = wf.data.random_labels(jax.random.key(4), samples=4, features=6)
    net = wf.Shallow.init(
        jax.random.key(1), features=6, width=30, scaling=scaling, activation="tanh"
    )
    run = wf.train(net, data, wf.GradientDescent(0.2), steps=40)
    verdict = ch.MovementBound()(net, run.model, np.random.default_rng(0).normal(size=(20, 6)))
    assert verdict.outcome is wf.Outcome.HOLDS
    assert verdict.numbers["largest_ratio"] > 1e-3


def test_the_mean_loss_is_read_in_the_time_of_the_sum(public):
    data = wf.data.random_labels(jax.random.key(2), samples=3, features=6)
    net = wf.Shallow.init(
        jax.random.key(0), features=6, width=40, scaling=OURS, activation="linear"
    )
    both = [
        wf.train(
            net,
            data,
            wf.GradientFlow(1e-10, "tsit5"),
            time=t,
            every=t,
            record=ch.record(),
            loss=loss,
        ).table
        for t, loss in ((1.0, wf.losses.HalfSumSquares()), (3.0, wf.losses.HalfMeanSquares()))
    ]
    rates = [ch.PolyakLojasiewicz()(net, data, table).numbers["measured_rate"] for table in both]
    assert rates[0] == pytest.approx(rates[1], rel=1e-6)


def test_other_scalings_and_singular_grams_are_not_applicable(public):
    _, _, table = public
    data = wf.data.random_labels(jax.random.key(2), samples=3, features=6)
    ntk = wf.Shallow.init(jax.random.key(0), features=6, width=10, activation="tanh")
    verdict = ch.Lemma1().evaluate(ntk, data, table)
    assert verdict.outcome is wf.Outcome.NOT_APPLICABLE
    assert "wf.maps" in verdict.message
    crowded = wf.data.random_labels(jax.random.key(2), samples=9, features=6)
    net = wf.Shallow.init(jax.random.key(0), features=6, width=10, scaling=OURS, activation="tanh")
    assert "singular" in ch.Certificate()(net, crowded).message


def test_a_table_without_the_records_is_refused(public):
    net, data, _ = public
    table = wf.train(net, data, wf.GradientDescent(0.001), steps=2).table
    with pytest.raises(ValueError, match="`table`"):
        ch.Lemma1()(net, data, table)
