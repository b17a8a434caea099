"""Gamma(x)/Gamma(x + 1/2) at every size, against mpmath."""

import mpmath
import pytest
from numpy.testing import assert_allclose

from wideflow._core.gamma_ratio import gamma_ratio


@pytest.mark.parametrize("x", [0.5, 1.0, 7.5, 499.5, 500.5, 5e3, 5e5, 5e9, 5e13])
def test_against_mpmath(x):
    with mpmath.workdps(40):
        exact = mpmath.exp(mpmath.loggamma(x) - mpmath.loggamma(mpmath.mpf(x) + 0.5))
    assert_allclose(gamma_ratio(x), float(exact), rtol=1e-12)
