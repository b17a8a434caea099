"""Every number that a certificate prints against a second computation: mpmath and plain NumPy, from
the papers' formulas.

Nothing of wideflow's kernels, limits or theorems is used on the expected side; weights and node
scales are read off the network.
"""

import math

import jax
import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.special import ndtr

import wideflow as wf

DELTA = 0.1


def relu_kappa(x, digits=40):
    """Smallest and largest eigenvalue of <x, x'>/d (pi - angle)/(2 pi), with 40 digits."""
    with mpmath.workdps(digits):
        rows = [[mpmath.mpf(float(v)) for v in row] for row in x]
        inner = lambda u, v: sum((a * b for a, b in zip(u, v)), mpmath.mpf(0))
        gram = mpmath.matrix(len(rows))
        for i, u in enumerate(rows):
            for k, v in enumerate(rows):
                cosine = inner(u, v) / mpmath.sqrt(inner(u, u) * inner(v, v))
                angle = mpmath.acos(min(cosine, mpmath.mpf(1))) if i != k else mpmath.mpf(0)
                gram[i, k] = inner(u, v) / len(u) * (mpmath.pi - angle) / (2 * mpmath.pi)
        values = mpmath.eigsy(gram, eigvals_only=True)
        return float(values[0]), float(values[len(rows) - 1])


def tanh_mean_gram(x, points=80):
    """<x, x'>/d E[sigma'(u) sigma'(v)] by a two-dimensional Gauss-Hermite rule."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(points)
    weights = weights / weights.sum()
    d, gram = x.shape[1], x @ x.T / x.shape[1]
    slope = lambda z: 1 - np.tanh(z) ** 2
    found = np.empty_like(gram)
    for i, k in np.ndindex(*gram.shape):
        a = math.sqrt(gram[i, i])
        b = gram[i, k] / a
        c = math.sqrt(max(gram[k, k] - b * b, 0.0))
        mean = (
            weights @ (slope(a * nodes)[:, None] * slope(b * nodes[:, None] + c * nodes)) @ weights
        )
        found[i, k] = x[i] @ x[k] / d * mean
    return found


def zipf_weights(width, gamma, alpha):
    tail = np.arange(1, width + 1) ** (-1 / alpha)
    return gamma / width + (1 - gamma) * tail / tail.sum()


@pytest.fixture(scope="module")
def data():
    return wf.data.sphere_sines(jax.random.key(3), samples=7, features=9)


@pytest.fixture(scope="module")
def relu(data):
    net = wf.Shallow.init(2, features=9, width=96, scaling=wf.scalings.Zipf(0.5, 0.7))
    return net, wf.certify(net, data, failure_probability=DELTA)


@pytest.fixture(scope="module")
def smooth(data):
    net = wf.Shallow.init(2, features=9, width=96, activation="tanh")
    return net, wf.certify(net, data, failure_probability=DELTA)


def promise(certificate, theorem):
    return next(p for p in certificate.promises if p.theorem == theorem)


def shifted(net, x, slope):
    """Hidden pre-activations, slopes and the network's own Gram matrix."""
    z = x @ np.asarray(net.hidden).T / math.sqrt(x.shape[1])
    s = slope(z)
    return z, s, x @ x.T / x.shape[1] * ((s * np.asarray(net.scales) ** 2) @ s.T)


def test_mean_spectrum(relu, smooth, data):
    x = np.asarray(data.inputs)
    kappa, top = relu_kappa(x)
    mean = relu[1].mean
    assert_allclose((mean.smallest, mean.largest), (kappa, top), rtol=1e-8)
    assert_allclose(mean.condition, top / kappa, rtol=1e-8)
    gram = tanh_mean_gram(x)
    assert_allclose(smooth[1].mean.eigenvalues, np.linalg.eigvalsh(gram), rtol=1e-8)
    assert_allclose(smooth[1].mean.effective_rank, np.trace(gram) ** 2 / np.sum(gram**2), rtol=1e-8)


def test_node_weights_are_those_of_the_paper(relu):
    assert_allclose(np.asarray(relu[0].scales) ** 2, zipf_weights(96, 0.5, 0.7), rtol=1e-12)


def test_gap_at_the_start(relu, data):
    net, certificate = relu
    x, n, d = np.asarray(data.inputs), 7, 9
    found, kappa = promise(certificate, "PropositionC1"), relu_kappa(x)[0]
    gram = shifted(net, x, lambda z: (z > 0).astype(float))[2]
    assert_allclose(found.required, 8 * n * math.log(n / DELTA) / (kappa * d), rtol=1e-8)
    assert_allclose(found.bounds["bound"], 0.5 * kappa / 2, rtol=1e-8)
    assert_allclose(found.bounds["gap"], np.linalg.eigvalsh(gram)[0], rtol=1e-8)
    assert_allclose(certificate.own.smallest, np.linalg.eigvalsh(gram)[0], rtol=1e-8)


def test_convergence_for_relu(relu, data):
    net, certificate = relu
    x, y, n, d, gamma = np.asarray(data.inputs), np.asarray(data.targets), 7, 9, 0.5
    kappa, lam = relu_kappa(x)[0], zipf_weights(96, gamma, 0.7)
    size = math.sqrt(2 * np.max(np.abs(y)) ** 2 + 2 / d)
    found, power = promise(certificate, "Theorem41"), np.sum(lam**1.5)
    widths = (
        8 * n * math.log(4 * n / DELTA) / (kappa * d),
        2.0**25 * n**4 * size**2 / (kappa**4 * d**3 * gamma**2 * DELTA**5),
        2.0**35 * n**6 * size**2 / (kappa**6 * d**5 * gamma**2 * DELTA**5),
    )
    assert_allclose(found.required, max(widths), rtol=1e-8)
    assert_allclose(found.rate, gamma * kappa / 2, rtol=1e-8)
    assert_allclose(found.bounds["bound_gap"], gamma * kappa / 4, rtol=1e-8)
    assert_allclose(
        found.bounds["bound_movement"],
        8 * n * size / (kappa * math.sqrt(d) * gamma * math.sqrt(DELTA)),
        rtol=1e-8,
    )
    drift = 2**9 * n**2 * size * power / (kappa * d**1.5 * gamma * DELTA**2.5)
    drift += (
        2**6 * n**1.5 * math.sqrt(size * power) / (math.sqrt(kappa * gamma) * d**1.25 * DELTA**1.25)
    )
    assert_allclose(found.bounds["bound_drift"], drift, rtol=1e-8)
    assert_allclose(found.bounds["bound_trivial_drift"], n / d, rtol=1e-12)
    z = x @ np.asarray(net.hidden).T / math.sqrt(d)
    start = np.maximum(z, 0) @ (np.sqrt(lam) * np.asarray(net.output))
    reach = np.sqrt(n * lam / d) * np.linalg.norm(y - start) * 4 / (gamma * kappa)
    c = 1.01 * 64 * reach / DELTA**2
    sufficient = max(
        8 * n * math.log(4 * n / DELTA) / (d * kappa),
        8 * n / (d * kappa) * c.sum(),
        256 * n**2 / (d * kappa) ** 2 * c.sum(),
    )
    assert_allclose(promise(certificate, "LemmaD3").required, sufficient, rtol=1e-8)


def test_convergence_for_smooth_activations(smooth, data):
    net, certificate = smooth
    x, y, n, d = np.asarray(data.inputs), np.asarray(data.targets), 7, 9
    kappa, curve = np.linalg.eigvalsh(tanh_mean_gram(x))[0], 4 / (3 * math.sqrt(3))
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    second = float(np.tanh(nodes / math.sqrt(d)) ** 2 @ weights / weights.sum())  # C_1, at c = 1
    size = curve**2 * (np.max(np.abs(y)) ** 2 + second) / DELTA
    widths = (
        8 * n * math.log(2 * n / DELTA) / (kappa * d),
        2.0**10 * n**3 * size / (kappa**3 * d**3),
        2.0**15 * n**4 * size / (kappa**4 * d**4),
    )
    found = promise(certificate, "Theorem42")
    assert_allclose(found.required, max(widths), rtol=1e-8)
    assert_allclose(found.rate, kappa / 2, rtol=1e-8)
    outputs = np.tanh(x @ np.asarray(net.hidden).T / 3) @ np.asarray(net.output) / math.sqrt(96)
    reach = math.sqrt(n / 96 / d) * np.linalg.norm(y - outputs) * 4 / kappa
    square = 96 * (1.01 * 8 * reach / DELTA) ** 2
    sufficient = max(
        8 * n * math.log(2 * n / DELTA) / (d * kappa),
        n * curve**2 * DELTA**2 / (8 * d**2 * kappa) * square,
        4 * n**2 * curve**2 * DELTA**2 / (d**3 * kappa**2) * square,
    )
    assert_allclose(promise(certificate, "LemmaD5").required, sufficient, rtol=1e-8)


def test_active_neurons(smooth, data):
    # the NTK network is the mean-field network with output weights sqrt(m) in the time t/m
    # (chen2022, Section 5)
    net, certificate = smooth
    x, y, n, m, d = np.asarray(data.inputs), np.asarray(data.targets), 7, 96, 9
    gram, chat = x @ x.T / d, math.sqrt(96)
    smallest = np.linalg.eigvalsh(gram)[0]
    found = promise(certificate, "Theorem1")
    low, high = found.numbers["interval_low"], found.numbers["interval_high"]
    floor = 1 - math.tanh(max(-low, high)) ** 2  # tanh' falls away from 0
    third = (high - low) / 3
    mass = lambda g: ndtr((high - third) / math.sqrt(g)) - ndtr((low + third) / math.sqrt(g))
    active = 0.5 * min(mass(g) for g in np.diag(gram))
    size = np.linalg.norm(y)
    kappa = 9 * math.sqrt(np.diag(gram).max()) / (math.sqrt(2 * smallest) * floor * (high - low))
    assert_allclose(found.bounds["needed_chat"], 2 * kappa * size / active**1.5, rtol=1e-8)
    for_activity = math.log(2 * n / DELTA) / (2 * active**2)
    proxies = chat**2 * np.diag(gram)
    lemma2 = lambda p: 2 * proxies.sum() * math.log(2 * n / p) / ((math.sqrt(2) - 1) ** 2 * size**2)
    assert_allclose(found.numbers["width_for_activity"], for_activity, rtol=1e-8)
    assert_allclose(found.numbers["width_for_loss"], lemma2(DELTA / 2), rtol=1e-8)
    assert_allclose(promise(certificate, "Lemma2").required, lemma2(DELTA), rtol=1e-8)
    z = x @ np.asarray(net.hidden).T / math.sqrt(d)
    inside = np.mean((z > low + third) & (z < high - third), axis=1).min()
    outputs = np.tanh(z) @ np.asarray(net.output) / math.sqrt(m)
    beta = kappa * math.sqrt(0.5 * np.sum((outputs - y) ** 2)) / (chat * inside**1.5)
    certified = promise(certificate, "Certificate")
    assert_allclose(certified.bounds["beta"], beta, rtol=1e-8)
    assert_allclose(certified.numbers["eta_tilde"], inside, rtol=1e-12)


def test_certified_rate_where_the_certificate_speaks():
    # orthonormal inputs: G = I/d; leaky ReLU has |sigma'| >= its slope everywhere
    x, y, m = np.eye(3), 0.01 * np.ones(3), 4000
    net = wf.Shallow.init(0, features=3, width=m, activation="leaky_relu", symmetric=True)
    found = promise(wf.certify(net, wf.Dataset(x, y)), "Certificate")
    low, high = found.numbers["interval_low"], found.numbers["interval_high"]
    floor = found.numbers["slope_floor"]
    third = (high - low) / 3
    z = x @ np.asarray(net.hidden).T / math.sqrt(3)
    inside = np.mean((z > low + third) & (z < high - third), axis=1).min()
    beta = 9 / (math.sqrt(2) * floor * (high - low)) * math.sqrt(0.5 * y @ y)
    beta /= math.sqrt(m) * inside**1.5
    rate = 2 * (1 / 3) * floor**2 * inside * (1 - beta) ** (2 / 3)  # in the time of the network
    assert found.outcome is wf.Outcome.HOLDS
    assert_allclose(found.rate, rate, rtol=1e-8)


def test_sizes_of_smooth_concepts(relu):
    # one term sin(z), error 0.1, constant 1: C = sinh(sqrt(log 10)) (allenzhu2018, Section 3 and
    # appendix G)
    error, c = 0.1, math.sinh(math.sqrt(math.log(10)))
    width = (4 * c / error) ** 2
    rounds = c**2 / (2 * error**2)
    step = (c / error) / (width * (error / math.sqrt(2)) * math.sqrt(rounds))
    moved = error * math.sqrt(2 * math.log(2 * width)) * step * rounds
    samples = (2 * width * error * math.sqrt(2 / math.pi) * moved / error) ** 2
    theirs = {p.theorem: p for p in relu[1].promises if p.name.startswith("allenzhu2018")}
    found = theirs["Theorem41"]
    assert_allclose(found.required, width, rtol=1e-8)
    assert_allclose(found.bounds["iterations_needed"], rounds, rtol=1e-8)
    assert_allclose(found.bounds["samples_needed"], samples, rtol=1e-8)
    root = math.sqrt(math.log(10))
    assert_allclose(
        theirs["Theorem42"].required, math.sinh(math.sinh(root) * root) / error, rtol=1e-8
    )  # (C_3 k p_1 p_2 / eps)^1


def test_times_and_laziness(relu, data):
    net, certificate = relu
    x, y = np.asarray(data.inputs), np.asarray(data.targets)
    z, _, gram = shifted(net, x, lambda z: (z > 0).astype(float))
    mixed = np.asarray(net.scales * net.output)
    outputs = np.maximum(z, 0) @ mixed
    for kernel, times in (
        (gram, certificate.timing.times),
        (_relu_gram(x), certificate.timing.mean_times),
    ):
        values, vectors = np.linalg.eigh(kernel)
        weights = (vectors.T @ (outputs - y)) ** 2
        for share, time in zip(certificate.timing.shares, times):
            expected = reach(values, weights, share)
            assert_allclose(time, expected, rtol=1e-8)
    assert_allclose(certificate.timing.initial_loss, 0.5 * np.sum((outputs - y) ** 2), rtol=1e-12)
    changes = [r.kernel_change for r in certificate.laziness.along_width]
    slope = np.polyfit(np.log(certificate.laziness.widths), np.log(changes), 1)[0]
    assert_allclose(certificate.laziness.slope, slope, rtol=1e-8)


def reach(rates, weights, share):
    """The root of sum w exp(-2 rate t) = share sum w."""
    left = lambda t: weights @ np.exp(-2 * rates * t) / weights.sum() - share
    return brentq(left, 0, 1e9, xtol=1e-12, rtol=1e-14)


def _relu_gram(x):
    norms = np.linalg.norm(x, axis=1)
    angles = np.arccos(np.clip(x @ x.T / np.outer(norms, norms), -1, 1))
    np.fill_diagonal(angles, 0.0)
    return x @ x.T / x.shape[1] * (np.pi - angles) / (2 * np.pi)


def lazy_end(hidden, output, scales, x, y):
    """Kernel change and linearisation gap at the end of the lazy path of a ReLU network, one
    output, in NumPy.
    """
    d = x.shape[1]

    def look(weights):
        z = x @ weights.T / math.sqrt(d)
        s = (z > 0).astype(float)
        return np.maximum(z, 0) @ (scales * output), x @ x.T / d * ((s * scales**2) @ s.T), s

    first, gram, s = look(hidden)
    values, vectors = np.linalg.eigh(gram)
    weights = (vectors.T @ (first - y)) ** 2
    time = reach(values, weights, 0.5)
    push = vectors @ ((1 - np.exp(-values * time)) / values * (vectors.T @ (first - y)))
    moved = hidden - ((s * push[:, None]) * (scales * output)).T @ x / math.sqrt(d)
    last, after, _ = look(moved)
    change = np.linalg.norm(after - gram) / np.linalg.norm(gram)
    return change, np.linalg.norm(last - first + gram @ push) / np.linalg.norm(last - first)


def test_laziness_along_width_and_gamma(relu, data):
    from wideflow.certify.laziness import _draws

    net, certificate = relu
    x, y, lazy = np.asarray(data.inputs), np.asarray(data.targets), certificate.laziness
    hidden, signs = _draws(net, jax.random.key(0), max(lazy.widths))
    for width, regime in zip(lazy.widths, lazy.along_width):
        scales = np.sqrt(zipf_weights(width, 0.5, 0.7))
        assert_allclose(regime, lazy_end(hidden[:width], signs[:width], scales, x, y), rtol=1e-7)
    for gamma, regime in zip(lazy.gammas, lazy.along_gamma):
        scales = np.sqrt(zipf_weights(96, gamma, 0.7))
        if gamma > 0:  # at 0 a few nodes carry all: eigenvalues at rounding, cut off differently
            assert_allclose(regime, lazy_end(hidden[:96], signs[:96], scales, x, y), rtol=1e-7)
