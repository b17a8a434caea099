"""Theorems of ren2023 on runs and on paths: what they are decides whether they are judged."""

import dataclasses

import jax
import numpy as np
import pytest

import wideflow as wf
from wideflow.papers.ren2023 import theorems as ren2023
from wideflow.papers.ren2023.laws.regular import UniformRadius
from wideflow.papers.ren2023.limits.flow import reduced_flow
from wideflow.theorems import Outcome

LAW = UniformRadius(4, 2.0)
NET = wf.DepthSeparator.init(0, features=4, width=24, second=4, radius=1.0)
DATA = wf.populations.Radial.integrated(LAW)
RECORD = (wf.observables.depth.SecondWeights(),)


def trained(dynamics, net=NET, data=DATA, steps=40, record=RECORD):
    return wf.train(net, data, dynamics, steps=steps, record=record, every=1)


@pytest.fixture(scope="module")
def run():
    return trained(wf.ClippedFlow(0.05, resolve=True))


def refused(verdict, reason):
    assert verdict.outcome is Outcome.NOT_APPLICABLE, verdict
    assert reason in verdict.message


def test_a_run_of_the_projected_flow_is_judged(run):
    judgement = wf.judge(run)
    for name in ("C.5(b)", "C.11 and Lemma D.6", "C.13", "C.14", "D.12"):
        assert judgement[f"ren2023 Lemma {name}"].holds, name
    refused(judgement["li2020 Theorem 1.1"], "the run trained a `DepthSeparator`")
    # the sufficient bound on the projection of v_2 asks for |w| >= b^2 / (4 R), R = d^3 = 64
    smallest = float(np.abs(run.model.second_weight).min())
    needed = float(run.model.second_bias.max()) ** 2 / 4 / 64
    assert judgement["ren2023 Lemma 4.1 and Lemma C.3"].holds == (smallest >= needed)


def test_runs_they_do_not_speak_of(run):
    of = lambda theorem, **changes: theorem()(dataclasses.replace(run, **changes))
    refused(of(ren2023.LemmaC5, dynamics=wf.ClippedFlow(0.05)), "resolve Stage 1")
    unrecorded = run.table.drop_vars("second_weight")
    refused(of(ren2023.LemmaC5, table=unrecorded), "`SecondWeights()`")
    positive = run.table.assign(second_weight=abs(run.table.second_weight) + 0.1)
    refused(of(ren2023.LemmaC5, table=positive), "before T_1.1")
    refused(of(ren2023.LemmaC14, dynamics=wf.GradientDescent(0.05)), "the run is GradientDescent")
    sample = DATA.sample(jax.random.key(1), 50)
    refused(of(ren2023.LemmaC14, data=sample), "it is about a `Radial` population")
    broken = run.table.assign(loss=run.table.loss * np.nan)
    refused(of(ren2023.LemmaC14, table=broken), "not finite")
    with pytest.raises(ValueError, match=r"`run.member\(0\)`"):
        of(ren2023.LemmaC14, model=(run.model, run.model))


def test_a_path_must_be_the_flow_of_the_law():
    start, times = (0.2, -0.8, 0.5), np.linspace(0.5, 20.0, 20)
    theorem, path = ren2023.Lemma43(), reduced_flow(LAW, *start, times)
    assert theorem(LAW, path).holds
    refused(theorem(UniformRadius(4, 1.9), path), "not those of this law")
    refused(theorem(LAW, reduced_flow(LAW, *start, times, rate=0.5)), "drifts")
