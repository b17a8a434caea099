"""Neuron sets, basis-like neurons and stage events on hand-made weights and curves."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.observables import (
    BasisNeurons,
    CoveredDirections,
    DirectionMasses,
    FrozenNeurons,
    LargestNeuron,
    basis_like,
    direction_persistence,
    first_time,
    ignored,
    late_exponent,
    lottery_scores,
    moment_decay_time,
    neuron_sets,
    posterior_masses,
    ranking_quality,
    singletons,
    stage_events,
    typical_neurons,
    winning_threshold,
)
from wideflow.papers.li2020.population import GaussianAbsTeacher

# squares: (4, 0), (1, 1), (0, 1), (0.05, 0.05)
WEIGHTS = np.array([[2.0, 0.0], [-1.0, 1.0], [0.0, 1.0], [math.sqrt(0.05), math.sqrt(0.05)]])


def test_sets_by_hand():
    sets = neuron_sets(WEIGHTS, 1.0)  # rho = 0.1: pot from 0.9, good from 1.1
    assert sets.pot.tolist() == [[True, False], [True, True], [False, True], [False, False]]
    assert sets.bad.tolist() == [[False, False], [True, True], [False, False], [False, False]]
    assert sets.good.tolist() == [[True, False], [False, False], [False, False], [False, False]]
    masses = sets.masses(WEIGHTS)
    assert_allclose(masses["gamma"], [4 / 4, 1 / 4])
    assert_allclose(masses["gamma_good"], [1, 0])
    assert_allclose(masses["beta"], [0.05 / 4, 0.05 / 4])
    assert neuron_sets(WEIGHTS, 1.0, rho=0.0).good.any(axis=1).tolist() == [
        True,
        False,
        True,
        False,
    ]


def test_rotated_targets_rotate_the_sets():
    turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
    turned = neuron_sets(WEIGHTS @ turn, 1.0, directions=turn)
    assert (turned.pot == neuron_sets(WEIGHTS, 1.0).pot).all()


def test_threshold_formula():
    # a = 1/d: Gamma = 2.356 d / tau
    assert_allclose(
        winning_threshold(np.full(30, 1 / 30), 400.0), 3 * math.pi / 4 * 30 / 400, rtol=1e-12
    )


def test_posterior_sets():
    basis, where = basis_like(WEIGHTS)
    assert basis.tolist() == [True, False, True, False]
    assert where[[0, 2]].tolist() == [0, 1]
    gamma, beta = posterior_masses(WEIGHTS)
    assert_allclose(gamma, [1, 0.25])
    assert_allclose(beta, [1.05 / 4, 1.05 / 4])
    assert singletons(WEIGHTS).any(axis=1).tolist() == [True, False, True, False]
    assert ignored(neuron_sets(WEIGHTS, 1.0), WEIGHTS).tolist() == [False, True, False, False]
    assert_allclose(lottery_scores(WEIGHTS), [1, 0.5, 1, 0.5])
    assert_allclose(lottery_scores(WEIGHTS, normalised=False), [4, 1, 1, 0.05])


def test_persistence_and_ranking():
    final = np.array([[3.0, 0.0], [0.0, 2.0], [3.0, 0.1], [1.0, 1.0]])
    assert_allclose(
        direction_persistence(WEIGHTS + [[0, 0], [0.1, 0], [0, 0], [0, 0]], final), 2 / 3
    )
    assert ranking_quality([1, 2, 3], [True, False, True]) == 0.5
    assert math.isnan(ranking_quality([1, 2], [True, True]))


def test_nearly_all_gaussian_neurons_are_typical():
    d = 100
    w = np.random.default_rng(0).normal(size=(500, d)) / 10
    assert typical_neurons(w, np.full(d, 1 / d)).mean() > 0.97
    w[0, 0] = 3.0
    assert not typical_neurons(w, np.full(d, 1 / d))[0]
    assert typical_neurons(w, np.full(d, 1 / d), constant=1.0).mean() < 0.5


def test_observables_along_a_run():
    teacher = GaussianAbsTeacher([0.5, 0.5])
    record = [
        BasisNeurons(),
        CoveredDirections(),
        DirectionMasses(),
        LargestNeuron(),
        FrozenNeurons(1.5),
    ]
    table = wf.train(
        wf.Homogeneous(WEIGHTS), teacher, wf.GradientDescent(0.01), steps=1, record=record
    ).table.isel(step=0)
    assert int(table.basis_neurons) == 2
    assert int(table.covered_directions) == 2
    assert_allclose(table.direction_masses, [[1, 0.25], [1.05 / 4, 1.05 / 4]], rtol=1e-12)
    assert_allclose(table.largest_neuron, 4.0)
    assert int(table.frozen_neurons) == 2


def test_frozen_neurons_by_the_dynamics_own_cap_and_by_several():
    # WEIGHTS have squared norms of which two lie above 1.5 and one above 3
    squares = np.sum(np.asarray(WEIGHTS) ** 2, axis=1)
    caps = (1.5, 3.0)
    dynamics = wf.TruncatedDescent(0.001, lambda_0=1 / 1.5, lambda_1=1 / 3.0, switch=1)
    table = wf.train(
        wf.Homogeneous(WEIGHTS),
        GaussianAbsTeacher([0.5, 0.5]),
        dynamics,
        steps=2,
        every=1,
        record=[FrozenNeurons(), FrozenNeurons(caps, name="by_cap")],
    ).table
    counts = [int((squares > cap).sum()) for cap in caps]
    assert counts[0] > counts[1] > 0
    assert table.by_cap.isel(step=0).values.tolist() == counts
    assert table.cap.values.tolist() == list(caps)
    # records at the start and after step 1 belong to stage 1, the one after step 2 to stage 2
    assert table.frozen_neurons.values.tolist() == [counts[0], counts[0], counts[1]]


def test_frozen_neurons_need_a_cap():
    with pytest.raises(ValueError, match="`cap=`"):
        wf.train(
            wf.Homogeneous(WEIGHTS),
            GaussianAbsTeacher([0.5, 0.5]),
            wf.GradientDescent(0.1),
            steps=1,
            record=[FrozenNeurons()],
        )
    with pytest.raises(ValueError, match="`cap`"):
        FrozenNeurons((1.0, -1.0))


def test_on_samples_order_two_settles_at_its_noise_floor():
    # l2 falls from 1 at the rate 5.1/d to a noise floor far above the population's level 0.02 floor
    a = np.full(16, 1 / 16)
    floor = (1 - 3 / math.pi) / 16
    t = np.arange(0.0, 400.0, 2.0)
    second = np.pi * floor * (50 * np.exp(-5.1 * t / 16) + 0.2)
    loss = floor * np.where(t < 300, 1.2, 0.3)
    fourth = np.ones_like(t)
    assert math.isnan(stage_events(t, loss, second, fourth, a)["T1"])
    events = stage_events(t, loss, second, fourth, a, noisy=True)
    # 50 exp(-5.1 t/16) = 0.2 where second is twice its floor: t = 16 ln(250)/5.1 = 17.3
    assert abs(events["T1"] - 17.3) <= 2.0
    assert events["T1"] < events["T2"]
    # a run that ends while order 2 still falls has not settled
    short = t <= 12
    cut = stage_events(t[short], loss[short], second[short], fourth[short], a, noisy=True)
    assert math.isnan(cut["T1"])
    # records 10 apart in windows of d = 16 cannot show it, and T1 would come out after T2
    rare = t % 10 == 0
    with pytest.raises(ValueError, match="`times` must be at most d/2 = 8 apart"):
        stage_events(t[rare], loss[rare], second[rare], fourth[rare], a, noisy=True)


def test_events_on_made_up_curves():
    a = np.full(4, 0.25)
    floor = (1 - 3 / math.pi) * 0.25
    t = np.arange(6.0)
    loss = floor * np.array([3, 0.9, 0.5, 0.2, 0.1, 0.009])
    second = math.pi * floor * np.array([1, 0.02, 0.01, 0, 0, 0])
    fourth = np.array([9, 1.0, 0.95, 0.8, 0.1, 0])
    masses = np.array([[0.0] * 4] * 4 + [[0.025] * 4] * 2)
    events = stage_events(t, loss, second, fourth, a, masses)
    assert events == {
        "T1": 1,
        "below_floor": 1,
        "escape": 3,
        "T2": 2,
        "T3": 4,
        "T4": 5,
        "T3_masses": 4,
    }
    assert math.isnan(first_time([0, 1], [False, False]))
    assert moment_decay_time([0, 1], [[1.0, 0], [0.01, -0.02]], [1.0, 0.0], 10) == 1
    assert_allclose(late_exponent([1, 10, 100], [5.0, 0.1, 0.001], 5), -2)
    with pytest.raises(ValueError, match="`start`"):
        late_exponent([1, 2], [1, 1], 5)


def test_a_shallow_network_s_neurons_are_read_along_its_own_axis():
    """`Shallow` keeps weights (feature, neuron), `Homogeneous` (neuron, feature): both say the same
    of the same neurons.
    """
    teacher = GaussianAbsTeacher(np.full(2, 0.5))
    record = [DirectionMasses(), wf.observables.NeuronSizes(), wf.observables.NeuronShares()]
    tables = [
        wf.train(net, data, wf.GradientDescent(1e-9), steps=0, test=teacher, record=record).table
        for net, data in (
            (wf.Homogeneous(WEIGHTS, "abs"), teacher),
            (wf.Shallow(WEIGHTS, np.ones(4), activation="abs"), wf.Dataset(np.eye(2), np.ones(2))),
        )
    ]
    for observable in record:
        assert_allclose(tables[0][observable.name], tables[1][observable.name], rtol=1e-14)
