"""Node weights against hand values and the identities of caron2023 (Proposition A.2)."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow._core.scalings import MAXIMAL_UPDATE, parse_scaling

S = wf.scalings


def test_zipf_by_hand():
    # alpha = 1/2: powers 1, 1/4; gamma = 1/2, m = 2: 1/4 + (1/2)(4/5), 1/4 + (1/2)(1/5)
    assert_allclose(S.Zipf(0.5, 0.5).node_scales(2) ** 2, [0.65, 0.35], rtol=1e-15)


@pytest.mark.parametrize("gamma", [0.0, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("alpha", [0.3, 0.7, 0.95])
@pytest.mark.parametrize("width", [1, 7, 2000])
def test_identities_of_node_weights(gamma, alpha, width):
    scales = np.asarray(S.Zipf(gamma, alpha).node_scales(width))
    weights = scales**2
    assert_allclose(weights.sum(), 1.0, atol=1e-14 * width + 1e-15)
    assert math.sqrt(gamma * width) - 1e-9 <= scales.sum() <= math.sqrt(width) + 1e-9
    assert np.all(np.diff(weights) <= 1e-17)
    assert np.all(weights >= gamma / width * (1 - 1e-15))


def test_gamma_one_is_ntk_whatever_alpha():
    assert_allclose(S.Zipf(1.0, 5.0).node_scales(9), S.NTK().node_scales(9), rtol=1e-15)


def test_released_code_shifts_the_index():
    weights = np.asarray(S.Zipf(0.0, 0.5, released=True).node_scales(3)) ** 2
    share = np.array([1, 1 / 4, 1 / 9]) / (1 + 1 / 4 + 1 / 9)
    assert_allclose(weights, [0.0, share[0], share[1]], rtol=1e-15)


def test_zipf_limits_through_zeta():
    # alpha = 1/2: sum j^-2 = pi^2/6, sum of squares zeta(4)/zeta(2)^2 = 2/5
    scaling = S.Zipf(0.0, 0.5)
    assert_allclose(scaling.limit_weights(1)[0], 6 / math.pi**2, rtol=1e-14)
    assert_allclose(scaling.limit_tail(0), 1.0, rtol=1e-14)
    assert_allclose(scaling.limit_tail(0, power=2.0), 0.4, rtol=1e-14)


def test_explicit_weights():
    assert_allclose(S.Weights([3.0, 1.0]).node_scales(2) ** 2, [0.75, 0.25], rtol=1e-15)
    harmonic = S.Weights(lambda j: 6 / (math.pi * j) ** 2)
    assert_allclose(harmonic.node_scales(50), S.Zipf(0.0, 0.5).node_scales(50), rtol=1e-14)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: S.Zipf(gamma=1.5), r"`gamma` must lie in \[0.0, 1.0\], got 1.5"),
        (lambda: S.Zipf(gamma=0.5, alpha=1.0), r"`alpha` must lie in \(0.0, 1.0\), got 1.0"),
        (lambda: S.Weights([1.0, 2.0]).node_scales(2), "must not increase"),
        (lambda: S.Weights([1.0]).node_scales(2), "at least `width` = 2"),
        (lambda: S.NTK().node_scales(0), "`width` must be a whole number of at least 1"),
        (lambda: S.ABC((0.0, 0.5), (0.0,)), "lengths must agree"),
        (lambda: parse_scaling("ziph:1"), "must be 'ntk'"),
        (lambda: parse_scaling("zipf:2,0.5"), "`gamma`"),
        (lambda: parse_scaling("zipf:0.5,0.7,0.3"), "GAMMA and ALPHA are needed, got 3 numbers"),
    ],
)
def test_wrong_scalings_are_told_apart(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_factors_of_the_three_scalings_of_chen2022():
    # Table 1: (output, hidden, rate) at m = 8, D = 4
    assert (
        float(S.NTK().node_scales(8)[0]),
        S.NTK().hidden_scale(8, 4),
        S.NTK().rate_factor(8, 4),
    ) == pytest.approx((8**-0.5, 0.5, 1))
    ours, older = S.MeanField(), S.MeanField(hidden=1.0)
    assert (ours.hidden_scale(8, 4), ours.rate_factor(8, 4)) == pytest.approx((0.5, 8))
    assert (older.hidden_scale(8, 4), older.rate_factor(8, 4)) == pytest.approx((0.25, 32))


def test_maximal_update_shifts_to_mean_field():
    shifted = MAXIMAL_UPDATE.shifted(0.5)
    assert shifted == S.ABC(a=(0.0, 1.0), b=(0.0, 0.0), c=-1.0)
    assert shifted.rate_factor(16, 3) == S.MeanField().rate_factor(16, 3) == 16
    assert_allclose(shifted.node_scales(16), S.MeanField().node_scales(16), rtol=1e-15)
