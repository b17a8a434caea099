"""Fluctuations at finite d against Isserlis' theorem, simulations, and each other."""

import numpy as np
import pytest

import wideflow as wf
from wideflow.limits import (
    OnlineEquations,
    Overlaps,
    order_parameter_band,
    stochastic_order_parameters,
)
from wideflow.limits.finite_size import _diffusion, _flat

N = np.random.default_rng(6)
SETTINGS = {"rate": 0.5, "noise": 0.1, "scale": 2**-0.5}


def test_diffusion_of_a_linear_student_by_isserlis():
    # e = l - r - xi with Q = 1.5, M = 0.2, P = 1, Delta = 0.3: E[e r] = M - P, E[e^2] = Q - 2M +
    # P + Delta, Var(e r) = E[e^2] P + E[e r]^2; D_M = -eta e r, D_Q = -2 eta e l + eta^2/B e^2
    q, m, delta, eta, batch = 1.5, 0.2, 0.3, 0.4, 2
    equations = OnlineEquations("linear", "linear", rate=eta, noise=delta, batch=batch)
    start = Overlaps([[m]], [[q]], [[1.0]], [1.0])
    square, er, el = q - 2 * m + 1 + delta, m - 1, q - m
    var_er, var_el, var_ee = square + er**2, square * q + el**2, 2 * square**2
    cov_er_el = square * m + er * el  # E[e r e l] - E[e r] E[e l]
    cov_er_ee, cov_el_ee = 2 * er * square, 2 * el * square
    k = eta**2 / batch
    expected = (
        np.array(
            [
                [eta**2 * var_er, 2 * eta**2 * cov_er_el - eta * k * cov_er_ee],
                [0.0, 4 * eta**2 * var_el - 4 * eta * k * cov_el_ee + k**2 * var_ee],
            ]
        )
        / batch
    )
    expected[1, 0] = expected[0, 1]
    y = _flat(start.M, start.Q, start.output)
    # 4096 points of a Sobol sequence on polynomials of degree four: a per cent of the variances
    atol = 0.01 * np.sqrt(expected[0, 0] * expected[1, 1])
    np.testing.assert_allclose(
        _diffusion(equations, start.P, y, 1)[:2, :2], expected, rtol=0.01, atol=atol
    )


@pytest.fixture(scope="module")
def simulated():
    """64 runs from one start at d = 100, up to tau = 2."""
    d, seeds = 100, 64
    weights, v = N.normal(size=(2, d)), np.eye(2, d)
    net = wf.Shallow(weights, [1.0, 1.0], activation="erf")
    run = wf.train(
        [net] * seeds,
        wf.populations.MultiIndex("erf", v, noise=0.1),
        wf.OnlineSGD(0.5),
        steps=2 * d,
        every=2 * d,
        key=list(range(seeds)),
        record=[
            wf.observables.TeacherOverlap(),
            wf.observables.StudentOverlap(),
            wf.observables.GeneralisationError(),
        ],
    )
    end = run.table.isel(step=-1)
    return Overlaps.of_weights(weights / np.sqrt(d), v, [1.0, 1.0]), end


def test_the_band_is_the_spread_of_simulations(simulated):
    start, end = simulated
    equations = OnlineEquations("erf", "erf", **SETTINGS)
    band = order_parameter_band(equations, start, [2.0], features=100)
    path = wf.limits.order_parameters(equations, start, [2.0])
    np.testing.assert_allclose(band.M, path.M, atol=1e-5)
    np.testing.assert_allclose(band.error, path.error, atol=1e-5)
    spreads = {
        "teacher_overlap": band.M_std,
        "student_overlap": band.Q_std,
        "generalisation_error": band.error_std,
    }
    for name, predicted in spreads.items():
        ratio = end[name].std("seed", ddof=1).values / predicted[-1]
        # a standard deviation from 64 runs has the relative error 1/sqrt(126); 5 % for what is of
        # order d^(-1/2) beside it
        assert np.all(np.abs(ratio - 1) < 3.5 / np.sqrt(126) + 0.05), (name, ratio)


def test_sampled_paths_have_the_same_band():
    equations = OnlineEquations("erf", "erf", **SETTINGS)
    start = Overlaps([[0.3]], [[0.8]], [[1.0]], [1.0])
    band = order_parameter_band(equations, start, [1.0], features=400)
    paths = stochastic_order_parameters(3, equations, start, [1.0], 400, paths=128, step=0.1)
    ratio = paths.M.std(axis=0, ddof=1) / band.M_std
    assert np.all(np.abs(ratio - 1) < 3.5 / np.sqrt(254) + 0.05)
    assert np.all(np.abs(paths.M.mean(axis=0) - band.M) < 3.5 * band.M_std / np.sqrt(128) + 0.01)
    low, high = paths.band(0.9)
    inside = np.mean((paths.error > low) & (paths.error < high))
    assert 0.85 < inside < 0.95


def test_neurons_on_the_sphere_do_not_fluctuate_in_length():
    equations = OnlineEquations("erf", "erf", spherical=True, **SETTINGS)
    start = Overlaps([[0.3]], [[0.8]], [[1.0]], [1.0])
    band = order_parameter_band(equations, start, [1.0], features=400)
    np.testing.assert_allclose(band.Q_std, 0.0, atol=1e-9)
    assert band.M_std[0, 0, 0] > 0.005


@pytest.mark.parametrize(
    ("changes", "word"),
    [({"features": 0}, "features"), ({"paths": 0}, "paths"), ({"step": -1.0}, "step")],
)
def test_bad_input(changes, word):
    start = Overlaps([[0.3]], [[0.8]], [[1.0]], [1.0])
    with pytest.raises(ValueError, match=word):
        stochastic_order_parameters(
            0, OnlineEquations(), start, [1.0], **{"features": 10} | changes
        )
