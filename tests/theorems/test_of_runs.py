"""A theorem judges a run: what the run is decides whether it applies, and nothing is taken on
trust.
"""

import dataclasses

import equinox as eqx
import jax
import numpy as np
import pytest

import wideflow as wf

DATA = wf.data.sphere_sines(jax.random.key(0), samples=6, features=4)
OTHER = wf.data.sphere_sines(jax.random.key(1), samples=6, features=4)
NET = wf.Shallow.init(0, features=4, width=400, activation="tanh")
D1 = wf.theorems.caron2023.LemmaD1()
RECORD = wf.theorems.caron2023.RECORD


def run(dynamics, net=NET, data=DATA, **settings):
    length = {"time": 20.0} if isinstance(dynamics, wf.GradientFlow) else {"steps": 20}
    return wf.train(net, data, dynamics, **length, record=RECORD, **settings)


@pytest.fixture(scope="module")
def flow():
    return run(wf.GradientFlow(1e-8))


def test_a_run_of_the_flow_is_judged(flow):
    assert D1(flow).outcome is wf.Outcome.HOLDS
    assert D1(flow) == D1(NET, DATA, flow.table)


def test_descent_that_resolves_the_flow_is_judged_and_coarser_descent_is_not():
    # rate times the largest eigenvalue below and above 1: beyond it a step overshoots along that
    # mode
    top = float(np.linalg.eigvalsh(wf.observables.tangent_gram(NET, DATA.inputs))[-1])
    assert D1(run(wf.GradientDescent(0.5 / top))).outcome is wf.Outcome.HOLDS
    for rate in (1.5 / top, 20.0 / top):
        verdict = D1(run(wf.GradientDescent(rate)))
        assert verdict.outcome is wf.Outcome.NOT_APPLICABLE
        assert "does not resolve it" in verdict.message or "not finite" in verdict.message


def test_other_dynamics_networks_and_data_are_not_what_it_speaks_of(flow):
    cases = {
        "SGD": (NET, DATA, run(wf.SGD(0.5, batch=2)).table),
        "this network": (
            wf.Shallow.init(1, features=4, width=400, activation="tanh"),
            DATA,
            flow.table,
        ),
        "this data": (NET, OTHER, flow.table),
    }
    for reason, parts in cases.items():
        verdict = D1(*parts)
        assert verdict.outcome is wf.Outcome.NOT_APPLICABLE
        assert reason in verdict.message


def test_every_statement_is_judged_at_once_and_violations_come_first(flow):
    judgement = wf.judge(flow)
    assert judgement["caron2023 Lemma D.1"] == D1(flow)
    assert len(judgement) >= 12
    assert "caron2023 Lemma D.1" in str(judgement)
    with pytest.raises(KeyError, match=r"write 'caron2023 Lemma D\.1'"):
        judgement["Lemma D.1"]
    chen = judgement["chen2022 Lemma 1"]
    assert chen.outcome is wf.Outcome.NOT_APPLICABLE
    order = ["violated", "holds", "vacuous", "not applicable"]
    ranks = [order.index(verdict.outcome.value) for _, verdict in judgement]
    assert ranks == sorted(ranks)


def test_several_networks_are_judged_one_by_one():
    both = run(
        wf.GradientFlow(1e-6),
        net=[NET, wf.Shallow.init(2, features=4, width=400, activation="tanh")],
    )
    with pytest.raises(ValueError, match=r"judge one of them: `run.member\(0\)`"):
        wf.judge(both)
    assert D1(both.member(1)).outcome is wf.Outcome.HOLDS


def test_a_member_is_judged_by_what_it_alone_is():
    # the table of both says "diverged; finished" and rates of shape (2,): neither is the second's
    nets = [wf.Shallow.init(seed, features=4, width=400) for seed in (0, 1)]
    top = float(np.linalg.eigvalsh(wf.observables.tangent_gram(nets[1], DATA.inputs))[-1])
    both = run([wf.GradientDescent(1e9), wf.GradientDescent(0.5 / top)], net=nets)
    assert both.table.attrs["status"].startswith("diverged")
    verdict = D1(both.member(0))
    assert verdict.outcome is wf.Outcome.NOT_APPLICABLE
    assert "diverged" in verdict.message
    assert D1(both.member(1)).outcome is wf.Outcome.HOLDS
    # nor does one member's table pass for another's
    swapped = D1(nets[0], DATA, both.member(1).table)
    assert swapped.outcome is wf.Outcome.NOT_APPLICABLE
    assert "this network" in swapped.message


def test_the_records_that_statements_need_can_be_asked_for():
    record = wf.theorems.records()
    names = {observable.name for observable in record}
    assert {"kernel_gap", "weight_movement", "sum_loss"} <= names


def test_a_table_without_its_beginning_is_not_judged(flow):
    verdict = D1(NET, DATA, flow.table.isel(step=slice(50, None)))
    assert verdict.outcome is wf.Outcome.NOT_APPLICABLE
    assert "begins at time" in verdict.message


def test_a_member_knows_its_own_network_rate_and_status():
    nets = [NET, wf.Shallow.init(2, features=4, width=400, activation="tanh")]
    rates = [wf.GradientDescent(0.5), wf.GradientDescent(50.0)]
    both = wf.train(nets, DATA, rates, steps=20, every=10, record=RECORD)
    assert D1(both.member(0)).outcome is wf.Outcome.HOLDS
    assert "does not resolve it" in D1(both.member(1)).message
    crossed = D1(nets[0], DATA, both.member(1).table)
    assert "not that of this network" in crossed.message
    assert "of unknown" in D1(NET, DATA, both.table.isel(seed=0)).message


def test_a_run_in_single_precision_is_its_own():
    short = run(wf.GradientDescent(0.5), precision="float32")
    assert D1(short).outcome is wf.Outcome.HOLDS


def test_a_statement_on_another_learner_is_refused_in_one_line():
    verdicts = wf.judge(run(wf.SGD(0.1, batch=2)))
    assert verdicts["allenzhu2018 Lemma G.4"].message == (
        "`start` must be a `BiasedTwoLayer`, got Shallow"
    )
    assert all("\n" not in verdict.message for _, verdict in verdicts)


def test_a_run_whose_parts_were_replaced_is_not_judged(flow):
    heavier = eqx.tree_at(lambda net: net.weights, NET, 2 * NET.weights)
    others = {"data": OTHER, "start": heavier, "dynamics": wf.SGD(0.5, batch=2), "model": heavier}
    others |= {"loss": wf.losses.MeanSquares(), "state": None, "test": OTHER}
    for part, other in others.items():
        replaced = dataclasses.replace(flow, **{part: other})
        judged = [verdict for _, verdict in wf.judge(replaced)]
        assert {verdict.outcome for verdict in judged} == {wf.Outcome.NOT_APPLICABLE}
        assert f"`run.{part}` is not that of its table" in D1(replaced).message
    copy = eqx.tree_at(lambda net: net.weights, NET, NET.weights + 0)
    assert D1(dataclasses.replace(flow, start=copy)) == D1(flow)
    again = eqx.tree_at(lambda net: net.weights, flow.model, flow.model.weights + 0)
    assert D1(dataclasses.replace(flow, model=again)) == D1(flow)


def test_a_member_whose_model_was_replaced_is_not_judged():
    both = run(wf.GradientFlow(), net=[NET, NET])
    member = both.member(1)
    assert D1(member).outcome is wf.Outcome.HOLDS
    other = dataclasses.replace(member, model=member.start)
    assert "`run.model` is not that of its table" in D1(other).message


def test_a_network_given_in_single_precision_and_trained_in_double_is_its_own():
    single = wf.Shallow(*(np.float32(part) for part in (NET.hidden, NET.output)), activation="tanh")
    assert single.weights.dtype == "float32"
    assert D1(run(wf.GradientFlow(1e-6), net=single)).outcome is wf.Outcome.HOLDS
