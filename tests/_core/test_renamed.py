"""Old names of arguments and observables go on working, and mean what they meant."""

import numpy as np
import pytest

import wideflow as wf
from wideflow.experiments import Claim

DATA = wf.data.sphere_sines(0, samples=6, features=3)


def test_a_network_drawn_under_the_old_names_is_the_same():
    old = wf.Shallow.init(0, features=3, width=5, deviation=2.0, magnitude=0.5)
    new = wf.Shallow.init(0, features=3, width=5, weight_std=2.0, output_scale=0.5)
    assert np.array_equal(old.hidden, new.hidden)
    assert np.array_equal(old.output, new.output)


def test_an_argument_under_both_names_is_refused():
    with pytest.raises(ValueError, match="`deviation` is the old name of `weight_std`"):
        wf.Shallow.init(0, features=3, width=5, deviation=2.0, weight_std=2.0)


def test_theorems_and_certificates_take_the_old_names_of_the_failure_probability():
    net = wf.Shallow.init(0, features=3, width=5)
    theorem = wf.theorems.caron2023.PropositionC1()
    assert theorem(net, DATA, delta=0.2) == theorem(net, DATA, failure_probability=0.2)
    with pytest.raises(ValueError, match="failure_probability"):
        wf.certify(net, DATA, delta=2.0)


def test_a_claim_answers_to_its_old_names():
    claim = Claim("wrong in the paper", 1.0, at_least=2.0, reproduces=False)
    assert claim == Claim("wrong in the paper", 1.0, at_least=2.0, expected_to_hold=False)
    assert claim.ok
    assert claim.acceptable
    assert not claim.reproduces


def test_observables_under_old_names_are_the_new_ones():
    look = wf.observables
    assert look.KernelDrift(samples=3) == look.KernelDistance("spectral", False, samples=3)
    assert look.KernelChange() == look.KernelDistance()
    assert look.KernelGap is look.KernelMinEigenvalue
    assert look.KernelTop is look.KernelMaxEigenvalue
    names = {"kernel_gap", "kernel_top", "kernel_drift", "kernel_change"}
    made = [look.KernelGap(), look.KernelTop(), look.KernelDrift(), look.KernelChange()]
    assert {one.name for one in made} == names


def test_functions_under_old_names_are_the_new_ones():
    assert wf.limits.reach_time is wf.limits.time_to_loss
