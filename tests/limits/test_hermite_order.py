"""Exponents and leaps of functions whose Hermite expansions are known by hand."""

import numpy as np
import pytest

from wideflow.activations import hermite
from wideflow.limits import hermite_coefficients, information_exponent, leap, recovery_samples


def test_coefficients_by_hand():
    table = hermite_coefficients(lambda z: z[0] ** 2 * z[1], indices=2, degree=3)
    # z0^2 z1 = He_1(z1) + He_2(z0) He_1(z1)
    expected = {(0, 1): 1.0, (2, 1): np.sqrt(2)}
    for key, value in table.items():
        np.testing.assert_allclose(value, expected.get(key, 0.0), atol=1e-12)


@pytest.mark.parametrize(
    ("g", "exponent"),
    [("erf", 1), ("square", 2), (hermite(4), 4), (lambda z: 3.0 + 0 * z[0], None)],
)
def test_exponents(g, exponent):
    assert information_exponent(g) == exponent


def test_leaps():
    stair = lambda z: z[0] + z[0] * z[1] + z[0] * z[1] * z[2]
    assert leap(stair, 3) == (1, [((0,), 1), ((1,), 1), ((2,), 1)])
    assert leap(lambda z: z[0] * z[1] * z[2], 3) == (3, [((0, 1, 2), 3)])
    # z1^2 - 1 costs 2 and then opens z1 z2 for 1
    assert leap(lambda z: z[0] ** 2 - 1 + z[0] * z[1], 2) == (2, [((0, 1), 2)])
    with pytest.raises(ValueError, match="constant"):
        leap(lambda z: 0 * z[0] + 1.0)


def test_powers_of_the_dimension():
    assert [recovery_samples(k, 100.0) for k in (1, 2, 3)] == [100.0, 100 * np.log(100), 1e4]
