"""What the theorems may not be asked about: pruned networks, other activations, other starts, runs
that diverged.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from wideflow.theorems import caron2023
from wideflow.theorems.base import Outcome

KEY = jax.random.key(11)
DATA = wf.data.sphere_sines(KEY, 4, 6, noise=0.1)


def network(activation="relu", scaling=None, width=200, **options):
    scaling = scaling or wf.scalings.Zipf(0.5, 0.5)
    return wf.Shallow.init(
        KEY, features=6, width=width, scaling=scaling, activation=activation, **options
    )


def statements(net, data=DATA):
    """Every statement about a network on data, at movement zero."""
    return {
        "C1": caron2023.PropositionC1()(net, data),
        "41": caron2023.Theorem41()(net, data),
        "42": caron2023.Theorem42()(net, data),
        "D2": caron2023.LemmaD2()(net, net, data),
        "D3": caron2023.LemmaD3()(net, data),
        "D4": caron2023.LemmaD4()(net, net, data),
        "D5": caron2023.LemmaD5()(net, data),
    }


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("scaling", [wf.scalings.NTK(), wf.scalings.Zipf(0.5, 0.5)])
def test_a_pruned_network_is_not_the_one_the_theorems_speak_of(activation, scaling):
    net = network(activation, scaling)
    for verdict in statements(wf.prune(net, keep=20)).values():
        assert verdict.outcome is Outcome.NOT_APPLICABLE
        assert "pruned" in verdict.message
    deterministic = "D2" if activation == "relu" else "D4"
    assert statements(net)[deterministic].outcome is Outcome.HOLDS  # it never moved


def test_a_trained_pruned_network_is_judged_by_what_needs_no_node_law():
    net = wf.prune(network("tanh"), keep=20)
    certificate = wf.certify(net, DATA, train=True, time=5.0)
    assert not any("domain error" in p.message for p in certificate.promises)
    assert certificate.count(Outcome.VIOLATED) == 0
    decay = next(p for p in certificate.promises if p.theorem == "LemmaD1")
    assert decay.outcome is Outcome.HOLDS


def test_smooth_is_not_analytic():
    # half a parabola below height 1/2, straight above: one continuous derivative, |sigma'| <= 1 and
    # |sigma''| <= 1, but not analytic
    one = wf.activations.Activation(
        "half_huber",
        lambda z: jnp.where(z < 1, jnp.maximum(z, 0) ** 2 / 2, z - 0.5),
        lambda z: jnp.clip(z, 0, 1),
        lambda z: jnp.where((z > 0) & (z < 1), 1.0, 0.0),
        1.0,
        1.0,
        analytic=False,
    )
    net = network(one)
    for verdict in (*statements(net).values(), caron2023.Proposition31()(DATA.inputs, one)):
        assert verdict.outcome is Outcome.NOT_APPLICABLE
        assert "neither ReLU nor analytic" in verdict.message


@pytest.mark.parametrize("activation", ["leaky_relu", "abs"])
def test_statements_for_relu_are_for_relu_alone(activation):
    for verdict in statements(network(activation)).values():
        assert verdict.outcome is Outcome.NOT_APPLICABLE
        assert "neither ReLU nor analytic" in verdict.message
    assert caron2023.Proposition31()(DATA.inputs, activation).outcome is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize("deviation", [0.5, 2**0.5, 5.0, 20.0])
def test_the_deviation_of_the_start_is_checked(deviation):
    verdicts = statements(network(deviation=deviation))
    for name in ("C1", "41", "D2", "D3"):
        assert verdicts[name].outcome is Outcome.NOT_APPLICABLE
        assert "deviation" in verdicts[name].message
    smooth = statements(network("tanh", deviation=deviation))
    assert smooth["D4"].outcome is Outcome.HOLDS  # deterministic: any weights will do
    assert "deviation" in smooth["42"].message


def test_signs_are_checked():
    net = network()
    plus = wf.Shallow(net.hidden, np.ones(200), net.scaling)
    assert "200 of 200 output weights" in caron2023.PropositionC1()(plus, DATA).message


@pytest.mark.parametrize(
    "scaling",
    [
        wf.scalings.Weights((1.0,) + (0.0,) * 99),
        wf.scalings.Weights((0.1,) * 10 + (0.0,) * 90),
        wf.scalings.Weights(lambda j: 6 / (np.pi * j) ** 2),
    ],
)
def test_proposition_a2_accepts_sequences_with_zeros(scaling):
    assert caron2023.PropositionA2()(scaling, 100).outcome is Outcome.HOLDS


def test_proposition_a2_on_the_released_sequence_without_symmetric_part():
    # node 1 gets nothing and the sum falls short by the last value: no identity, and no crash
    verdict = caron2023.PropositionA2()(wf.scalings.Zipf(0.0, 0.5, released=True), 50)
    assert verdict.outcome is Outcome.VIOLATED


def test_lemma_d1_counts_the_neuron_factor():
    # mean field: s = 1/m, c = m; the movement bound c s |X/sqrt d| |r_0| / gap is met, without c it
    # would fail by m
    net = network("tanh", wf.scalings.MeanField())
    flow = wf.GradientFlow(method="tsit5")  # the quickest to compile
    run = wf.train(net, DATA, flow, time=20.0, every=2.0, record=caron2023.RECORD)
    verdict = caron2023.LemmaD1()(net, DATA, run.table)
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.numbers["ratio_sharp_movement"] > 1 / 200


def test_a_run_that_diverged_refutes_nothing():
    net = network("tanh", wf.scalings.NTK())
    run = wf.train(net, DATA, wf.GradientDescent(1.0), steps=4, every=2, record=caron2023.RECORD)
    lost = run.table.copy(deep=True)
    lost["loss"][-1] = np.nan
    assert caron2023.LemmaD1()(net, DATA, run.table).outcome is Outcome.HOLDS
    for verdict in (
        caron2023.LemmaD1()(net, DATA, lost),
        caron2023.Theorem42()(net, DATA, lost),
        caron2023.LemmaD1()(net, DATA, run.table.assign_attrs(status="diverged: ...")),
    ):
        assert verdict.outcome is Outcome.NOT_APPLICABLE
        assert "nothing can be judged" in verdict.message


def test_the_gap_of_some_samples_or_of_one_output_is_not_the_gap():
    net = network("tanh", wf.scalings.NTK())
    few = [
        wf.observables.Loss(),
        wf.observables.KernelMinEigenvalue(samples=2),
        wf.observables.KernelDistance("spectral", relative=False, samples=2),
        wf.observables.WeightMovement(),
    ]
    run = wf.train(net, DATA, wf.GradientDescent(1.0), steps=40, every=20, record=few)
    for theorem in (caron2023.LemmaD1(), caron2023.Theorem42()):
        verdict = theorem(run)
        assert verdict.outcome is Outcome.NOT_APPLICABLE
        assert "recorded with other settings" in verdict.message
    both = wf.Dataset(DATA.inputs, np.stack([DATA.targets, -DATA.targets], 1))
    net = network("tanh", wf.scalings.NTK(), outputs=2)
    run = wf.train(net, both, wf.GradientDescent(1.0), steps=4, every=2, record=caron2023.RECORD)
    assert "one output" in caron2023.LemmaD1()(run).message


def test_a_start_without_residual_is_no_crash():
    net = network("tanh", wf.scalings.NTK())
    data = wf.Dataset(DATA.inputs, np.asarray(net.outputs(DATA.inputs)))
    run = wf.train(net, data, wf.GradientDescent(1.0), steps=4, every=2, record=caron2023.RECORD)
    assert "rounding" in caron2023.LemmaD1()(run).message
    for lemma in (caron2023.LemmaD5()(run), caron2023.LemmaD5()(net, data)):
        assert lemma.outcome is Outcome.NOT_APPLICABLE
        assert "needs m >=" in lemma.message  # R' = 0 < R: only the width is missing


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("dynamics", [wf.GradientFlow(1e-3), wf.GradientDescent(1.0)])
def test_an_equality_is_judged_to_the_accuracy_of_the_run(precision, dynamics):
    # linear, one sample: L = L_0 exp(-2 lambda t) and the sharp movement bound are equalities
    data = wf.Dataset([[0.6, 0.3]], [1.0])
    net = wf.Shallow.init(1, features=2, width=50, activation="linear")
    length = {"time": 60.0} if isinstance(dynamics, wf.GradientFlow) else {"steps": 60}
    run = wf.train(net, data, dynamics, **length, record=caron2023.RECORD, precision=precision)
    verdict = caron2023.LemmaD1()(run)
    assert verdict.outcome is Outcome.HOLDS, verdict
    late = run.table.assign_coords(time=1.5 * run.table["time"])  # losses too large for their times
    assert caron2023.LemmaD1().evaluate(run.start, data, late).outcome is Outcome.VIOLATED


def test_a_single_node_of_the_released_sequence_weighs_nothing():
    released = wf.scalings.Zipf(0.0, 0.5, released=True)
    assert caron2023.PropositionA2()(released, 1).outcome is Outcome.VIOLATED


def test_many_entries_of_a_monte_carlo_mean_are_allowed_for():
    # 10 000 entries: some exceed four standard errors in every second draw
    inputs = np.random.default_rng(0).normal(size=(3, 20))
    weights = np.asarray(wf.scalings.Zipf(0.5, 0.5).node_scales(500)) ** 2
    for seed in range(4):
        verdict = caron2023.Theorem51()(
            jax.random.key(seed), inputs, np.ones(3), "softplus", weights, draws=500
        )
        assert verdict.outcome is Outcome.HOLDS, verdict
    wrong = caron2023.Theorem51()(
        jax.random.key(0), inputs, np.ones(3), "softplus", [0.5, 0.5], draws=500
    )
    assert wrong.numbers["ratio_errors"] == pytest.approx(wrong.numbers["errors"] / 4, rel=0.2)


def test_a_law_whose_quadrature_fails_refutes_nothing():
    inputs = 10 * np.random.default_rng(0).normal(size=(3, 2))
    verdict = caron2023.Theorem52()(
        jax.random.key(0), inputs, "tanh", [0.5, 0.3, 0.2], draws=20_000
    )
    assert verdict.outcome is Outcome.NOT_APPLICABLE
    assert "`order`" in verdict.message


def test_rounded_scales_have_no_asymmetric_part():
    """NTK has none; scales in float32 leave 1e-11 of one, and 1 - gamma = 0 bounds no drift of
    it.
    """
    net = network("tanh", wf.scalings.NTK())
    run = wf.train(net, DATA, wf.GradientDescent(0.5), steps=20, precision="float32")
    verdict = caron2023.LemmaD4()(run)
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.numbers["drift_2"] < 1e-16
