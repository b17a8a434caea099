"""Complexities by hand; predictions by the formulas of appendix G evaluated by hand."""

import math

import pytest
from numpy.testing import assert_allclose

from wideflow.papers.allenzhu2018.laws.power_series import polynomial, smooth
from wideflow.papers.allenzhu2018.limits.complexity import (
    class_complexity,
    complexity,
    expected_shrinkage,
    log_complexity,
    log_three_layer_complexity,
    theory_min_width,
    theory_parameters,
    three_layer_complexity,
    three_layer_prediction,
    two_layer_complexity,
    two_layer_prediction,
)


@pytest.mark.parametrize(
    ("phi", "expected"),
    [
        (smooth("exp", 2.0), math.exp(1.8)),  # u = 3 * 0.3 = 0.9
        (smooth("sin", 2.0), math.sinh(1.8)),
        (smooth("cos", -2.0), math.cosh(1.8)),
        (smooth("tanh"), math.tan(0.9)),
        (smooth("sigmoid"), 0.5 + math.tan(0.45) / 2),
        (smooth("arctan"), math.atanh(0.9)),
        (smooth("gaussian"), math.exp(0.81)),
        (polynomial((1.0, -2.0, 3.0)), 1 + 1.8 + 2.43),
    ],
)
def test_closed_forms(phi, expected):
    assert_allclose(complexity(phi, 0.3, constant=3.0), expected, rtol=1e-13)
    assert_allclose(log_complexity(phi, 0.3, constant=3.0), math.log(expected), rtol=1e-12)


def test_papers_constant_is_out_of_reach():
    assert log_complexity(smooth("exp"), 1.0) == 10_000.0
    assert complexity(smooth("exp"), 1.0) == math.inf


def test_class_complexities():
    phis = (smooth("sin"), smooth("cos"))
    assert class_complexity(phis, 1.0, 1.0) == pytest.approx(math.cosh(1.0))
    root = math.sqrt(math.log(3 / 0.01))
    assert two_layer_complexity(phis, 3, 0.01, 1.0) == pytest.approx(math.cosh(root))
    # Phi(z) = z^2, phi = sin, p2 = 4, eps = 0.1: C = (2 sinh(sqrt L) sqrt L)^2
    log = math.log(10)
    inner = 2 * math.sinh(math.sqrt(log)) * math.sqrt(log)
    square = polynomial((0.0, 0.0, 1.0))
    assert three_layer_complexity((square,), (smooth("sin"),), 4, 0.1, 1.0) == pytest.approx(
        inner**2
    )
    assert math.isinf(log_three_layer_complexity((square,), (smooth("exp"),), 4, 0.1))
    assert log_three_layer_complexity(
        (polynomial((2.0,)),), (smooth("exp"),), 4, 0.1
    ) == pytest.approx(math.log(2))


def test_two_layer_prediction_by_hand():
    got = two_layer_prediction(
        terms=2,
        outputs=1,
        sup=3.0,
        error=0.5,
        output_std=0.1,
        width=1000,
        largest_output=0.3,
        output_norm=80.0,
    )
    # C0 = 2 * 3 / 0.1 = 60; m = (4 * 6 / 0.5)^2; G = 0.1 / sqrt 2; T = 36 / (2 * 0.25) = 72
    assert got.norm == pytest.approx(60.0)
    assert got.width == pytest.approx(2304.0)
    assert got.iterations == pytest.approx(72.0)
    assert got.rate == pytest.approx(60 / (1000 * 0.1 / math.sqrt(2) * math.sqrt(72)))
    assert got.movement == pytest.approx(0.3 * got.rate * 72)
    assert got.samples == pytest.approx((2 * 80 * got.movement / 0.5) ** 2)
    assert got.gap(4 * got.samples, 0.5) == pytest.approx(0.25)


def test_predictions_do_not_depend_on_width_beyond_logs():
    small, large = (
        two_layer_prediction(terms=1, sup=3.0, error=0.1, output_std=0.1, width=m)
        for m in (10**4, 10**8)
    )
    assert small.iterations == large.iterations
    assert small.samples / large.samples == pytest.approx(math.log(2e4) / math.log(2e8))


def test_theory_parameters():
    got = theory_parameters(10.0**4, 0.1, 10.0, (1.0, 0.5, 2.0))
    assert got.second_ball == pytest.approx(0.01)
    assert got.first_ball == pytest.approx(10 * 10**-3)
    assert got.first_penalty * got.first_ball**4 == pytest.approx(2.0)
    assert got.second_penalty * got.second_ball**2 == pytest.approx(2.0)
    assert got.second_smoothing == pytest.approx(1e-6)
    assert got.first_coupling == pytest.approx(10 ** (-0.74 * 4))
    assert not got.consistent
    assert theory_min_width(0.1, 1.0) == pytest.approx(11000.0)


def test_three_layer_prediction():
    got = three_layer_prediction(
        log_complexity=math.log(100.0),
        outputs=2,
        outer_terms=5,
        inner_terms=1,
        error=0.1,
        width=1000.0,
        exponent=2.0,
    )
    assert got.log10_width == pytest.approx(8.0)
    assert got.log10_samples_first == pytest.approx(14.0)
    assert got.log10_samples_second == pytest.approx(8.0)


def test_expected_shrinkage():
    assert expected_shrinkage(0.01, 8.0) == pytest.approx(
        0.6813, abs=1e-4
    )  # 0.68 in the practical table


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="`error`"):
        theory_parameters(10.0, 2.0, 1.0)
    with pytest.raises(ValueError, match="`radius`"):
        complexity(smooth("sin"), -1.0)
