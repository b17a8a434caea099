"""Lemmas A.4, 5.2, 5.6 and G.1: exact properties by quadrature, errors and slopes by sampling."""

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.stats
from numpy.testing import assert_allclose

from wideflow.papers.allenzhu2018.laws.concepts import ThreeLayerConcept, TwoLayerConcept
from wideflow.papers.allenzhu2018.laws.power_series import polynomial, smooth
from wideflow.papers.allenzhu2018.limits.constructions.hermite_functions import hermite_function
from wideflow.papers.allenzhu2018.limits.constructions.intervals import (
    LARGEST_MASS,
    IntervalPartition,
)
from wideflow.papers.allenzhu2018.limits.constructions.single_neuron import split_neuron
from wideflow.papers.allenzhu2018.limits.constructions.three_layer import (
    explicit_carrier,
    ridge_carrier,
    three_layer_representation,
    three_layer_weights,
)
from wideflow.papers.allenzhu2018.limits.constructions.two_layer import (
    two_layer_representation,
    two_layer_weights,
)

NORMAL = scipy.stats.norm


def pieces(partition, y):
    """The constancy intervals of s(y, .), found by a fine scan and sharpened by four finer ones of
    a thousand points each.
    """
    grid = np.linspace(-6, 6, 120_001)
    values = partition.signs(y, grid)
    last = np.flatnonzero(np.diff(values))  # before each change
    low, high, left = grid[last], grid[last + 1], values[last]
    each = np.arange(len(last))
    for _ in range(4):
        finer = np.linspace(low, high, 1001)
        first = np.argmax(partition.signs(y, finer) != left, axis=0)
        low, high = finer[np.maximum(first - 1, 0), each], finer[first, each]
    edges = np.concatenate([[-9.0], low, [9.0]])
    signs = partition.signs(y, (edges[:-1] + edges[1:]) / 2)
    return list(zip(edges[:-1], edges[1:], signs, strict=True))


@pytest.mark.parametrize("tau", [0.01, 0.3, 0.6, 0.76])
@pytest.mark.parametrize("y", [0.0, 0.002, -0.004, 0.05, -0.5, 1.0])
def test_lemma_a4_properties(tau, y):
    partition = IntervalPartition(tau)
    mass = {-1.0: 0.0, 0.0: 0.0, 1.0: 0.0}
    mean = 0.0
    for low, high, sign in pieces(partition, y):
        mass[sign] += NORMAL.cdf(high) - NORMAL.cdf(low)
        mean += sign * (NORMAL.pdf(low) - NORMAL.pdf(high))
        if sign and tau <= 0.01:  # the lemma's masses
            assert high - low <= 2.07 * tau
    assert_allclose([mass[1.0], mass[-1.0]], tau / 2, atol=1e-10)
    assert_allclose(mean / tau, y, atol=1e-8)


def test_the_largest_mass_is_that_of_the_half_line_of_mean_one():
    # E[g | g > l] = n(l) / (1 - N(l)) is 1 at l = 0.3026..., whose tail has mass 0.3811: two of
    # them make 0.7622
    edge = scipy.optimize.brentq(lambda l: NORMAL.pdf(l) / NORMAL.sf(l) - 1, 0, 1)
    assert_allclose(LARGEST_MASS, 2 * NORMAL.sf(edge), rtol=1e-12)
    IntervalPartition(LARGEST_MASS * (1 - 1e-9))
    for tau in (0.0, LARGEST_MASS, 0.9):
        with pytest.raises(ValueError, match="`tau` must lie in"):
            IntervalPartition(tau)


def test_printed_interval_is_biased():
    # e with conditional mean y over [-e, e]: then E[s g | I] = y P[|g| <= e] / tau = 0.00064 at y =
    # 0.002
    tau, y = 0.01, 0.002
    conditional = lambda e: (
        2 * (NORMAL.pdf(0) - NORMAL.pdf(e)) / (NORMAL.cdf(e) - NORMAL.cdf(-e)) - y
    )
    e = scipy.optimize.brentq(conditional, 1e-6, 0.1)
    assert_allclose(2 * (NORMAL.pdf(0) - NORMAL.pdf(e)) / tau, 0.00064, rtol=0.01)
    assert 0 < y < IntervalPartition(tau).threshold


def test_intervals_move_slowly():
    partition = IntervalPartition(0.01)
    y = np.linspace(0.02, 1, 300)
    low, up = partition.ends(y)
    moved = 2 * (np.abs(np.diff(low)) + np.abs(np.diff(up)))
    assert np.max(moved / np.diff(y)) <= 4.2


def bias(rng, m):
    return np.where(rng.random(m) < 0.5, 0.0, rng.normal(size=m) * math.sqrt(2 / m))


def sphere(rng, samples, features):
    z = rng.normal(size=(samples, features))
    return np.c_[
        math.sqrt(0.75) * z / np.linalg.norm(z, axis=1, keepdims=True), np.full(samples, 0.5)
    ]


def test_lemma_5_2_single_neuron():
    rng, m1, m2, tau, draws = np.random.default_rng(0), 10_000, 1000, 0.01, 40
    h = hermite_function(polynomial((0.0, 1.0)), clip=3.0)
    sup = h.sup()
    assert_allclose(sup, 15.04, rtol=1e-3)
    residuals, carriers, backgrounds = [], [], []
    x = sphere(rng, 1, 2)
    for _ in range(draws):
        w, v = rng.normal(size=(m1, 3)) / math.sqrt(m1), rng.normal(size=m1) / math.sqrt(m2)
        split = split_neuron(
            w, bias(rng, m1), v, np.eye(3)[0], h, second_width=m2, tau=tau, sup=sup
        )
        assert split.mismatch == 0
        assert_allclose(
            split.signal(x) + split.background(x) + split.residual(x), split.neuron(x), atol=1e-12
        )
        residuals.append(split.residual(x)[0])
        carriers.append(split.carrier * split.scale * math.sqrt(m2 / tau))
        backgrounds.append(split.background(x)[0] * math.sqrt(m2))
    assert np.sqrt(np.mean(np.square(residuals)) * m1 * m2) <= 0.5
    assert abs(np.var(carriers) - 1) <= 3 * math.sqrt(2 / draws)
    assert abs(np.corrcoef(carriers, backgrounds)[0, 1]) <= 3 / math.sqrt(draws)
    assert 0.6 <= np.sqrt(np.mean(np.square(backgrounds))) <= 1.5


def test_lemma_5_2_breaks_off_the_last_axis():
    rng, m1, m2 = np.random.default_rng(1), 10_000, 1000
    h = hermite_function(polynomial((0.0, 1.0)), clip=3.0)
    w, v = rng.normal(size=(m1, 3)) / math.sqrt(m1), rng.normal(size=m1) / math.sqrt(m2)
    split = split_neuron(w, bias(rng, m1), v, [0.6, 0.0, 0.8], h, second_width=m2, sup=15.04)
    assert split.mismatch > 3  # the specification measured 40 on average


def test_lemma_g1_slope():
    rng = np.random.default_rng(2)
    x = sphere(rng, 100, 5)
    concept = TwoLayerConcept([1.0], np.eye(6)[:1], np.eye(6)[1:2], smooth("sin"))
    truth, widths, errors = np.sin(x[:, 0]) * x[:, 1], [1000, 4000, 16000, 64000], []
    for m in widths:
        draws = []
        for _ in range(4):
            w, b, a = rng.normal(size=(m, 6)) / math.sqrt(m), bias(rng, m), 0.1 * rng.normal(size=m)
            weights = two_layer_weights(w, b, a, concept, output_std=0.1)
            draws.append(np.mean(np.abs(two_layer_representation(w, b, a, weights, x) - truth)))
        errors.append(np.mean(draws))
    slope = np.polyfit(np.log(widths), np.log(errors), 1)[0]
    assert -0.65 <= slope <= -0.35
    assert errors[-1] <= 0.01


def test_lemma_g1_formula_with_two_outputs():
    """Against the formula written with loops."""
    rng, m = np.random.default_rng(3), 7
    unit = lambda r: r / np.linalg.norm(r, axis=1, keepdims=True)
    inner, linear, truth = (
        unit(rng.normal(size=(2, 3))),
        unit(rng.normal(size=(2, 3))),
        rng.uniform(-1, 1, (2, 2)),
    )
    w, b, a = rng.normal(size=(m, 3)) / math.sqrt(m), bias(rng, m), 0.5 * rng.normal(size=(2, m))
    phis = (smooth("exp"), smooth("cos"))
    got = two_layer_weights(
        w, b, a, TwoLayerConcept(truth, inner, linear, phis), output_std=0.5, degree=4
    )
    hs = [hermite_function(phi, degree=4) for phi in phis]
    for j in range(m):
        row = sum(
            a[r, j]
            * truth[r, i]
            * float(hs[i](math.sqrt(m) * w[j] @ inner[i], math.sqrt(m) * b[j]))
            * linear[i]
            for r in range(2)
            for i in range(2)
        )
        assert_allclose(got[j], row / (0.25 * m), rtol=1e-12, atol=1e-14)


def three_layer_setup(rng, m, std=1.0):
    return (
        rng.normal(size=(m, 6)) / math.sqrt(m),
        bias(rng, m),
        rng.normal(size=(m, m)) / math.sqrt(m),
        bias(rng, m),
        std * rng.normal(size=m),
    )


SIN_COS = ThreeLayerConcept(
    [1.0],
    polynomial((0.0, 1.0)),
    [[1.0]],
    [[1.0]],
    np.eye(6)[:1],
    np.eye(6)[1:2],
    smooth("sin"),
    smooth("cos"),
)


def test_lemma_5_6_error_falls():
    rng = np.random.default_rng(4)
    x, sample = sphere(rng, 40, 5), sphere(rng, 200, 5)
    truth = np.sin(x[:, 0]) * np.cos(x[:, 1])
    errors = []
    for m in (250, 1000):
        draws = []
        for _ in range(4):
            net = three_layer_setup(rng, m)
            carrier = ridge_carrier(net[0], net[1], SIN_COS, 0, sample)
            assert 1.5 <= np.linalg.norm(carrier) <= 3.5
            weights = three_layer_weights(
                *net,
                SIN_COS,
                output_std=1.0,
                signs=rng.choice([-1.0, 1.0], size=(1, m)),
                carriers=[carrier],
            )
            draws.append(np.mean(np.abs(three_layer_representation(*net, weights, x) - truth)))
        errors.append(np.mean(draws))
    assert errors[1] < 0.75 * errors[0]
    assert errors[1] <= 0.5


def test_lemma_5_6_output_is_the_written_product():
    """g^(0) = [(1/m2) sum (a_i^2 / eps_a^2) H_i D_v] [(1/m1) sum K_i' D_w] for one term, whatever
    the scale c.
    """
    rng, m = np.random.default_rng(5), 30
    net = three_layer_setup(rng, m, 0.5)
    x = sphere(rng, 5, 5)
    carrier = explicit_carrier(net[0], net[1], SIN_COS, degree=5)
    weights = three_layer_weights(
        *net,
        SIN_COS,
        output_std=0.5,
        signs=rng.choice([-1.0, 1.0], size=(1, m)),
        carriers=[carrier],
        scale=3.0,
        degree=5,
    )
    z = x @ net[0].T + net[1]
    q = np.maximum(z, 0) @ net[2].T + net[3]
    left = ((q >= 0) @ (net[4] ** 2 / 0.25 * weights.second_coefficients[0])) / m
    right = ((z >= 0) @ weights.first_coefficients[0]) / m
    assert_allclose(three_layer_representation(*net, weights, x), left * right, rtol=1e-10)


def test_explicit_carrier_approximates():
    rng, m = np.random.default_rng(6), 200_000
    w, b, x = rng.normal(size=(m, 6)) / math.sqrt(m), bias(rng, m), sphere(rng, 20, 5)
    carrier = explicit_carrier(w, b, SIN_COS)
    assert np.max(np.abs(np.maximum(x @ w.T + b, 0) @ carrier - np.sin(x[:, 0]))) <= 0.05


def test_errors_name_the_argument():
    net = three_layer_setup(np.random.default_rng(0), 4)
    with pytest.raises(ValueError, match="`signs`"):
        three_layer_weights(*net, SIN_COS, output_std=1.0, signs=np.ones((2, 4)))
    with pytest.raises(ValueError, match="`y`"):
        IntervalPartition(0.01).ends(1.5)
    with pytest.raises(ValueError, match="`tau`"):
        IntervalPartition(0.8)
