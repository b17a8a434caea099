"""Radial laws against mpmath, quadrature, each other, and tabulated numbers."""

import math
import time

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from wideflow.papers.ren2023.laws.arcsine import ArcsineLaw
from wideflow.papers.ren2023.laws.base import c_gamma, sphere
from wideflow.papers.ren2023.laws.bessel import BesselLaw
from wideflow.papers.ren2023.laws.regular import (
    FixedRadius,
    GaussianRadius,
    UniformBall,
    UniformRadius,
)
from wideflow.papers.ren2023.laws.thresholds import as_thresholds
from wideflow.papers.ren2023.laws.truncated import Truncated

LAWS = [
    BesselLaw(3),
    BesselLaw(10, ab=2.0),
    ArcsineLaw(20),
    UniformRadius(20, 2.0),
    UniformBall(5, 1.5),
    GaussianRadius(20),
    Truncated(BesselLaw(10), 3.0),
]
NAMES = [f"{type(law).__name__}{law.d}" for law in LAWS]


def exact_tail(d: int, x: float) -> float:
    """1 - M0 by the finite sums over orders (no integral, no table)."""
    if d % 2 == 0:
        inner = sum(mp.besselj(k, x) ** 2 for k in range(1, d // 2))
        return mp.besselj(0, x) ** 2 + 2 * inner + mp.besselj(d // 2, x) ** 2
    sums = sum(
        mp.besselj(k + mp.mpf(1) / 2, x) ** 2 + mp.besselj(k + mp.mpf(3) / 2, x) ** 2
        for k in range((d - 1) // 2)
    )
    return 1 - (2 / mp.pi) * (mp.si(2 * x) - mp.sin(x) ** 2 / x) + sums


@pytest.mark.parametrize("d", [2, 3, 10, 101])
def test_bessel_moments_inside_and_beyond_the_table(d):
    # M0 by finite sums of Bessel functions, M2 by Lommel's integral, M1 by its hypergeometric
    # series
    law, nu = BesselLaw(d), mp.mpf(d) / 2
    end = float(law.table.end)
    with mp.workdps(40):
        for x in (0.9 * d / 2, d / 2 + 2, end - 0.013, end + 0.017, 7.3 * end, 1e4 * end):
            m0, m1, m2 = law.moments(x / law.scale)
            tail = exact_tail(d, mp.mpf(x))
            lommel = (
                mp.mpf(x) ** 2
                / 2
                * (mp.besselj(nu, x) ** 2 - mp.besselj(nu - 1, x) * mp.besselj(nu + 1, x))
            )
            assert_allclose(m0, float(1 - tail), atol=2e-13, rtol=1e-12)
            assert_allclose(law.sf(x / law.scale), float(tail), rtol=1e-11)
            assert_allclose(m2, float(d / mp.mpf(law.scale) ** 2 * lommel), rtol=3e-12)
            if x < 250:
                front = mp.mpf(x) ** (2 * nu + 1) / (4**nu * (2 * nu + 1) * mp.gamma(nu + 1) ** 2)
                series = mp.hyp2f3(
                    nu + 0.5, nu + 0.5, nu + 1, 2 * nu + 1, nu + 1.5, -(mp.mpf(x) ** 2)
                )
                assert_allclose(m1, float(d / mp.mpf(law.scale) * front * series), rtol=2e-12)


@pytest.mark.parametrize("d", [2, 7, 100, 1000])
def test_bessel_moments_are_continuous_at_the_end_of_the_table(d):
    # inside, prefix sums of quadrature; beyond, asymptotic series with their own constant
    law = BesselLaw(d)
    edge = float(law.table.end) / law.scale
    before, after = (np.array(law.moments(edge * (1 + s))) for s in (-1e-12, 1e-12))
    assert_allclose(before, after, rtol=2e-11)


def test_tiny_left_tail_keeps_relative_accuracy():
    law = BesselLaw(10)
    a = np.array([0.01, 0.05, 0.1])
    with mp.workdps(40):
        exact = [
            mp.besselj(5, law.scale * r) ** 2
            + 2 * sum(mp.besselj(5 + k, law.scale * r) ** 2 for k in range(1, 40))
            for r in a
        ]
    assert_allclose(law.cdf(a), [float(e) for e in exact], rtol=1e-11)


@pytest.mark.parametrize(
    ("d", "scale", "edge", "mean", "half_square", "tail"),
    [
        (3, 6.751148, 0.222184, 0.550238, 0.191077, 0.141447),
        (10, 18.093520, 0.276342, 0.477252, 0.150971, 0.175925),
        (30, 49.209492, 0.304819, 0.442479, 0.133474, 0.194054),
        (100, 156.471657, 0.319547, 0.425254, 0.125169, 0.203430),
    ],
)
def test_bessel_constants(d, scale, edge, mean, half_square, tail):
    law = BesselLaw(d)
    first, second = law.target_moments()
    assert_allclose(
        [law.scale, law.edge, first, second / 2, law.tail],
        [scale, edge, mean, half_square, tail],
        atol=6e-7,
    )


@pytest.mark.parametrize(
    ("d", "constant"), [(3, 0.3084), (10, 0.3479), (30, 0.3650), (100, 0.3731)]
)
def test_logarithmic_growth_of_the_first_moment(d, constant):
    law = BesselLaw(d)
    assert_allclose(law.tail_constant, constant, atol=6e-5)
    assert_allclose(law.moments(1e7)[1], law.tail * math.log(1e7) + law.tail_constant, rtol=1e-6)


@pytest.mark.parametrize(
    ("d", "expected"),
    [
        (10, [0.199220, 0.272601, 0.320540, 0.386489, 0.746670, 1.791763, 17.620782, 175.899790]),
        (100, [0.306096, 0.328191, 0.344666, 0.449698, 0.831545, 2.045190, 20.342539, 203.430966]),
    ],
)
def test_bessel_quantiles(d, expected):
    p = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999]
    assert_allclose(BesselLaw(d).ppf(p), expected, atol=1e-6)
    assert_allclose(BesselLaw(d, ab=2.5).ppf(p), np.array(BesselLaw(d).ppf(p)) / 2.5, rtol=1e-12)


@pytest.mark.parametrize("d", [2, 1000])
def test_quantile_inverts_the_distribution_everywhere(d):
    law = BesselLaw(d)
    q = np.concatenate(
        [np.linspace(1e-7, 1, 3000, endpoint=False), 10.0 ** -np.linspace(1, 14, 400)]
    )
    assert_allclose(law.sf(law.ppf(1 - q)), 1 - (1 - q), rtol=1e-9, atol=1e-13)
    assert float(law.ppf(0.0)) == 0
    assert math.isinf(float(law.ppf(1.0)))
    assert math.isnan(float(law.ppf(1.5)))


def test_a_million_exact_draws_take_less_than_two_seconds():
    law = BesselLaw(100)
    law.sample(jax.random.key(0), 1_000_000)  # compiles
    began = time.process_time()
    draws = law.sample(jax.random.key(1), 1_000_000).block_until_ready()
    assert time.process_time() - began < 2.0 * 2  # processor time of two cores
    distance = stats.kstest(np.asarray(law.cdf(draws)), "uniform").statistic
    assert distance < 1.63e-3  # 1 % critical value


def test_stratified_draws_put_one_in_every_stratum():
    law = BesselLaw(10)
    u = np.sort(np.asarray(law.cdf(law.sample(jax.random.key(3), 500, stratified=True))))
    assert np.all(np.floor(u * 500 + 1e-9) == np.arange(500))


@pytest.mark.parametrize("law", LAWS, ids=NAMES)
def test_moments_are_integrals_of_the_density(law):
    top = float(law.ppf(0.9))
    nodes, weights = np.polynomial.legendre.leggauss(60)
    edges = np.array([0.0, *np.asarray(law.ppf(np.linspace(0.01, 0.88, 12))), top])
    if isinstance(
        law, ArcsineLaw
    ):  # the density is infinite, but integrable, at the edge: r = edge + s^2
        edges[0] = law.edge
    low, width = edges[:-1, None], np.diff(edges)[:, None]
    s = 0.5 * (nodes + 1)
    r, jacobian = low + width * s**2, 2 * width * s
    density = np.asarray(law.density(r.ravel())).reshape(r.shape) * jacobian * 0.5 * weights
    for k, value in enumerate(law.moments(top)):
        assert_allclose(value, np.sum(density * r**k), rtol=1e-9)


@pytest.mark.parametrize("law", LAWS, ids=NAMES)
def test_every_law_is_consistent(law):
    p = np.linspace(0.01, 0.99, 25)
    radii = law.ppf(p)
    assert_allclose(law.cdf(radii), p, atol=1e-10)
    assert_allclose(law.sf(radii), 1 - p, atol=1e-10)
    assert_allclose(law.moments(radii)[0], p, atol=1e-10)
    assert_allclose(law.moments(jnp.inf)[0], 1.0, rtol=1e-12)
    assert all(float(m) == 0 for m in law.moments(0.0))
    heavy = law.tail > 0
    assert math.isinf(float(law.moments(jnp.inf)[1])) == heavy
    x = law.inputs(jax.random.key(0), 1001, antithetic=True)
    assert x.shape == (1001, law.d)
    assert (
        stats.kstest(np.asarray(law.cdf(np.linalg.norm(np.asarray(x), axis=1))), "uniform").pvalue
        > 1e-3
    )


def test_large_dimension_approaches_the_arcsine_law():
    bessel, arcsine = BesselLaw(100), ArcsineLaw(100)
    assert_allclose(arcsine.edge, bessel.edge, rtol=1e-12)
    for k in range(3):  # a = 1 is three edges out
        assert_allclose(bessel.moments(1.0)[k], arcsine.moments(1.0)[k], atol=1e-3)


def test_half_variances_of_the_target_under_regular_laws():
    def half_variance(law):
        mean, square = law.target_moments()
        return (square - mean**2) / 2

    assert_allclose(
        half_variance(UniformRadius(20, 2.0)), 0.0520833, atol=1e-6
    )  # 1/6 - 1/16, halved
    assert_allclose(half_variance(GaussianRadius(20)), 0.00432, atol=5e-6)
    assert half_variance(FixedRadius(4, 0.25)) == pytest.approx(0.0, abs=1e-15)


def test_truncation_renormalises_or_restricts():
    law = BesselLaw(10)
    mass = float(law.cdf(3.0))
    assert_allclose(
        np.array(Truncated(law, 3.0).moments(9.0)), np.array(law.moments(3.0)) / mass, rtol=1e-12
    )
    restricted = Truncated(law, 3.0, renormalise=False)
    assert_allclose(np.array(restricted.moments(9.0)), np.array(law.moments(3.0)), rtol=1e-12)
    with pytest.raises(ValueError, match="renormalise"):
        restricted.sample(jax.random.key(0), 4)


def test_direction_constant():
    assert c_gamma(1) == pytest.approx(0.5)
    assert c_gamma(2) == pytest.approx(math.sqrt(2) / math.pi)
    assert c_gamma(3) == pytest.approx(math.sqrt(3) / 4)
    values = [c_gamma(d) for d in (10, 100, 1000, 10**6)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(1 / math.sqrt(2 * math.pi), rel=1e-6)
    x = sphere(jax.random.key(0), 200_000, 7, antithetic=True)
    assert_allclose(
        jnp.maximum(x[:, 0], 0).mean(),
        c_gamma(7) / math.sqrt(7),
        atol=4 * 0.22 / math.sqrt(200_000),
    )


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: BesselLaw(1), "`d`"),
        (lambda: BesselLaw(10, ab=-1.0), "`ab`"),
        (lambda: BesselLaw(10, ab=0.2), "`ab`"),
        (lambda: UniformRadius(3, 0.0), "`radius`"),
        (lambda: Truncated(BesselLaw(10), -2.0), "`radius`"),
        (lambda: BesselLaw(3).sample(jax.random.key(0), 0), "`n`"),
        (lambda: as_thresholds((1.0, 0.0, 1.0)), "`clip`"),
    ],
)
def test_bad_arguments_are_named(build, message):
    with pytest.raises(ValueError, match=message):
        build()
