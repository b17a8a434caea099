"""The regime of width exponents, against yang2021 and against exponents derived by hand."""

import math

import pytest

import wideflow as wf
from wideflow._core.parametrisations import MAXIMAL_UPDATE, MEAN_FIELD, NTK, STANDARD
from wideflow._core.scalings import ABC, classify


@pytest.mark.parametrize("depth", [2, 3, 4, 7])
@pytest.mark.parametrize(
    ("given", "r", "regime"),
    [
        (STANDARD, 0.5, "kernel"),
        (NTK, 0.5, "kernel"),
        (MAXIMAL_UPDATE, 0.0, "feature learning"),
        (MEAN_FIELD, 0.0, "feature learning"),
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_the_four_of_yang2021(given, r, regime, depth):
    verdict = classify(given.abc(depth))
    assert verdict.r == pytest.approx(r, abs=1e-12)
    assert (verdict.stable, verdict.nontrivial, verdict.regime) == (True, True, regime)
    assert verdict.outputs == pytest.approx(0, abs=1e-12)
    assert verdict.features[-1] == pytest.approx(-r, abs=1e-12)
    assert verdict.kernel == pytest.approx(-2 * r, abs=1e-12)  # 1/n for the two kernel regimes


def test_one_hidden_layer_of_mean_field():
    verdict = classify(ABC(a=(0, 1), b=(0, 0), c=-1))
    assert verdict.r == 0
    assert verdict.feature_learning


def test_standard_moves_its_first_layer_less():
    # dW_1 = (eta/n) x delta with delta ~ n^-1/2 and x fixed: n^-3/2; in layer 2 n aligned terms add
    # up: n^-1/2.
    assert classify(STANDARD.abc(3)).features == (-1.5, -0.5, -0.5)


def test_plain_standard_training_blows_up():
    verdict = classify(STANDARD.with_rate_exponent(0).abc(3))
    assert verdict.regime == "unstable"
    assert not verdict.stable
    assert any("r = -1" in reason for reason in verdict.reasons)


def test_a_start_that_is_not_stable_predicts_nothing():
    verdict = classify(ABC(a=(0, 0, 0.5), b=(0, 0, 0)))
    assert verdict.regime == "unstable"
    assert math.isnan(verdict.features[0])


def test_small_rates_are_trivial():
    assert classify(ABC(a=(0, 0.5, 0.5), b=(0, 0, 0), c=0.3)).regime == "trivial"


def test_between_the_two_regimes():
    # one hidden layer, readout n^-s with s in (1/2, 1) and the rate that keeps the kernel: c = 1 -
    # 2s. m = min(s, 2s + 1 - 2s) = s, r = s + (1 - 2s) - 1 + 1 = 1 - s.
    verdict = classify(ABC(a=(0, 0.75), b=(0, 0), c=-0.5))
    assert verdict.r == pytest.approx(0.25)
    assert verdict.regime == "kernel"
    assert verdict.kernel == pytest.approx(-0.5)  # second order: 2 r


def test_a_frozen_readout_and_a_frozen_layer():
    # chen2022's P-3L network, mean field: only layer 2 moves
    verdict = classify(MEAN_FIELD.abc(2), trained=(False, True, False))
    assert verdict.r == 0
    assert verdict.features == (-math.inf, 0.0)
    assert verdict.feature_learning


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("theta", [-0.5, 0.25, 1.0])
@pytest.mark.parametrize("given", [NTK, STANDARD, MEAN_FIELD, MAXIMAL_UPDATE], ids=lambda p: p.name)
def test_shifts_change_nothing(given, depth, theta):
    verdict, shifted = classify(given.abc(depth)), classify(given.abc(depth).shifted(theta))
    for name in ("r", "features", "outputs", "kernel", "outputs_at_start"):
        assert getattr(shifted, name) == pytest.approx(getattr(verdict, name), abs=1e-12)
    assert shifted.regime == verdict.regime


def test_rates_of_their_own_are_shifted_to_one():
    # Table 3 of yang2022 for SGD: no factor in the forward pass, variances 1/n and 1/n^2, rates n,
    # 1, 1/n.
    table3 = ABC(a=(0, 0, 0), b=(0, 0.5, 1), c=(-1, 0, 1))
    assert classify(table3) == classify(MAXIMAL_UPDATE.abc(2))


def test_the_verdict_prints():
    assert "feature learning, r = 0" in str(wf.scalings.classify(MAXIMAL_UPDATE.abc(2)))


def test_wrong_input():
    with pytest.raises(ValueError, match=r"Call `\.abc\(depth\)`"):
        classify(NTK)
    with pytest.raises(ValueError, match="lengths must agree"):
        classify(NTK.abc(2), trained=(True,))
