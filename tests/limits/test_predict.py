"""Predictions of wide ensembles: their ends in time, an ODE and explicit descent at middle times,
sampling, wrong input.
"""

import math

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

import wideflow as wf
from wideflow.limits import KernelPair, ensemble, log_marginal_likelihood, output_flow, posterior

RNG = np.random.default_rng(1)
X, Z = RNG.standard_normal((7, 3)), RNG.standard_normal((4, 3))
Y = RNG.standard_normal((7, 2))
K = wf.limits.kernels(wf.architecture.mlp(depth=2, weight_std=1.4, bias_std=0.3))
TRAIN, CROSS, TEST = K.both(X), K.both(Z, X), K.nngp(Z)


def test_at_time_zero_the_ensemble_is_the_prior():
    start = ensemble(TRAIN, Y, 0.0, cross=CROSS, test_nngp=TEST)
    assert_allclose(start.mean, np.zeros((4, 2)), atol=1e-15)
    assert_allclose(start.covariance, TEST, rtol=1e-14)


def test_at_infinite_time_it_solves_and_meets_the_data():
    end = ensemble(TRAIN, Y, math.inf, cross=CROSS, test_nngp=TEST)
    solve = CROSS.ntk @ np.linalg.inv(TRAIN.ntk)
    assert_allclose(end.mean, solve @ Y, rtol=1e-8)
    expected = TEST + solve @ TRAIN.nngp @ solve.T - solve @ CROSS.nngp.T - CROSS.nngp @ solve.T
    assert_allclose(end.covariance, expected, atol=1e-9)
    at_data = ensemble(TRAIN, Y)
    assert_allclose(at_data.mean, Y, rtol=1e-9)
    assert_allclose(at_data.covariance, np.zeros((7, 7)), atol=1e-9)
    # trained last layers alone: Theta = K, and the ensemble is the posterior
    last = ensemble(
        KernelPair(TRAIN.nngp, TRAIN.nngp),
        Y,
        cross=KernelPair(CROSS.nngp, CROSS.nngp),
        test_nngp=TEST,
    )
    exact = posterior(TRAIN.nngp, Y, cross=CROSS.nngp, test_nngp=TEST)
    assert_allclose(last.mean, exact.mean, rtol=1e-7)
    assert_allclose(last.covariance, exact.covariance, atol=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 0.4])
def test_the_flow_follows_its_equation_and_its_covariance_that_of_samples(ridge):
    # a' = -(Theta a + f0 - y) - ridge a from 0, f = f0 + Theta a, integrated by Diffrax for the
    # mean (f0 = 0) and for each column of a factor F of the joint prior covariance, f0 = F e with
    # unit normal e: the covariance is then G G^T, G the map of e
    joint = np.block([[TRAIN.nngp, CROSS.nngp.T], [CROSS.nngp, TEST]])
    factor = np.linalg.cholesky(joint + 1e-13 * np.eye(11))
    starts = np.concatenate([np.zeros((11, 2)), factor], axis=1)
    targets = np.concatenate([Y, np.zeros((7, 11))], axis=1)
    theta = TRAIN.ntk
    velocity = lambda t, a, _: -(theta @ a + starts[:7] - targets) - ridge * a
    end = diffrax.diffeqsolve(
        diffrax.ODETerm(velocity),
        diffrax.Dopri8(),
        0.0,
        0.7,
        None,
        jnp.zeros((7, 13)),
        stepsize_controller=diffrax.PIDController(rtol=1e-11, atol=1e-12),
    ).ys[0]
    outputs = starts[7:] + CROSS.ntk @ end
    middle = ensemble(TRAIN, Y, [0.2, 0.7], cross=CROSS, test_nngp=TEST, ridge=ridge)
    assert_allclose(middle.mean[1], outputs[:, :2], atol=1e-9)
    assert_allclose(middle.covariance[1], outputs[:, 2:] @ outputs[:, 2:].T, atol=1e-9)
    variances = ensemble(TRAIN, Y, [0.2, 0.7], cross=CROSS, test_nngp=np.diag(TEST), ridge=ridge)
    assert_allclose(
        variances.covariance, jnp.diagonal(middle.covariance, axis1=1, axis2=2), rtol=1e-12
    )


def test_descent_step_by_step():
    rate, steps = 0.05, 30
    f, g = np.zeros((7, 2)), np.zeros((4, 2))
    for _ in range(steps):
        f, g = f - rate * TRAIN.ntk @ (f - Y), g - rate * CROSS.ntk @ (f - Y)
    after = ensemble(TRAIN, Y, rate * steps, cross=CROSS, rate=rate)
    assert_allclose(after.mean, g, rtol=1e-10)
    assert after.covariance is None
    end = ensemble(TRAIN, Y, math.inf, cross=CROSS, rate=rate)
    assert_allclose(end.mean, ensemble(TRAIN, Y, cross=CROSS).mean, rtol=1e-9)


def test_trained_networks_lie_where_they_are_predicted():
    # 300 networks of one hidden layer of 512 erf units, both layers trained by descent; at 4 test
    # inputs and 3 times the mean is within 4.5 standard errors and the variance within 4.5 of its
    # own, sqrt(2 / 299) of it (24 comparisons: once in thousands of seeds)
    width, networks, rate, marks = 512, 300, 0.05, (0, 10, 40)
    x, z, y = X[:5], Z, Y[:5, 0]

    def outputs(weights, inputs):
        first, second = weights
        return jax.scipy.special.erf(inputs @ first.T / np.sqrt(3)) @ second / np.sqrt(width)

    def descend(key):
        keys = jax.random.split(key)
        weights = jax.random.normal(keys[0], (width, 3)), jax.random.normal(keys[1], (width,))
        loss = lambda w: 0.5 * jnp.sum((outputs(w, x) - y) ** 2)
        step = lambda _, w: jax.tree.map(lambda a, g: a - rate * g, w, jax.grad(loss)(w))
        seen = []
        for begin, end in zip((0, *marks[:-1]), marks):
            weights = jax.lax.fori_loop(begin, end, step, weights)
            seen.append(outputs(weights, z))
        return jnp.stack(seen)

    runs = np.asarray(jax.jit(jax.vmap(descend))(jax.random.split(jax.random.key(3), networks)))
    k = wf.limits.kernels(wf.architecture.mlp(depth=1, activation="erf"))
    predicted = ensemble(
        k.both(x),
        y,
        rate * np.array(marks),
        cross=k.both(z, x),
        test_nngp=k.nngp_diagonal(z),
        rate=rate,
    )
    mean, variance = np.asarray(predicted.mean), np.asarray(predicted.covariance)
    assert np.abs((runs.mean(0) - mean) / np.sqrt(variance / networks)).max() < 4.5
    assert np.abs(runs.var(0, ddof=1) / variance - 1).max() < 4.5 * np.sqrt(2 / (networks - 1))
    assert np.abs(mean[-1]).max() > 0.2  # the data have been learnt, so this could have failed


def test_posterior_with_noise_and_its_likelihood():
    noisy = TRAIN.nngp + 0.3 * np.eye(7)
    exact = posterior(TRAIN.nngp, Y[:, 0], cross=CROSS.nngp, test_nngp=TEST, ridge=0.3)
    gain = CROSS.nngp @ np.linalg.inv(noisy)
    assert_allclose(exact.mean, gain @ Y[:, 0], rtol=1e-10)
    assert_allclose(exact.covariance, TEST - gain @ CROSS.nngp.T, atol=1e-12)
    law = multivariate_normal(np.zeros(7), np.asarray(noisy))
    expected = law.logpdf(Y[:, 0]) + law.logpdf(Y[:, 1])
    assert_allclose(log_marginal_likelihood(TRAIN.nngp, Y, 0.3), expected, rtol=1e-11)
    slope = jax.grad(lambda s: log_marginal_likelihood(s * TRAIN.nngp, Y, 0.3))(1.0)
    difference = log_marginal_likelihood(1.0001 * TRAIN.nngp, Y, 0.3) - log_marginal_likelihood(
        0.9999 * TRAIN.nngp, Y, 0.3
    )
    assert_allclose(slope, difference / 2e-4, rtol=1e-6)


def test_other_losses_flow_with_the_outputs():
    # with half the squares the flow is the closed form; with cross-entropy the class sums are
    # conserved and the loss falls
    squares = lambda f, y: 0.5 * jnp.sum((f - y) ** 2)
    path = output_flow(TRAIN.ntk, Y, [0.3, 1.0], loss=squares, cross=CROSS.ntk)
    assert_allclose(path, ensemble(TRAIN, Y, [0.3, 1.0], cross=CROSS).mean, atol=1e-7)
    labels = np.eye(3)[[0, 1, 2, 0, 1, 2, 0]]
    path = output_flow(TRAIN.ntk, labels, [0.5, 0.999, 1.0, 1.001, 2.0])
    assert_allclose(path.sum(-1), np.zeros((5, 7)), atol=1e-9)
    losses = [float(wf.limits.cross_entropy(f, labels)) for f in path]
    assert losses == sorted(losses, reverse=True)
    assert 7 * math.log(3) > losses[0] > losses[-1] > 0
    # the velocity is -Theta (softmax - labels), seen by a central difference
    slope = (path[3] - path[1]) / 0.002
    expected = -TRAIN.ntk @ (jax.nn.softmax(path[2], -1) - labels)
    assert_allclose(slope, expected, atol=1e-4)


BAD = -np.eye(7) + 0.1
WRONG = {
    "test kernel": (
        lambda: ensemble(TRAIN, Y, 1.0, cross=CROSS, test_nngp=TEST[:3, :3]),
        r"`test_nngp` must have shape \(4, 4\), or \(4,\) for variances alone",
    ),
    "variances": (
        lambda: posterior(TRAIN.nngp, Y, cross=CROSS.nngp, test_nngp=np.ones(3), ridge=0.1),
        r"`test_nngp` must have shape \(4, 4\)",
    ),
    "non-PSD": (
        lambda: ensemble(KernelPair(TRAIN.nngp, BAD), Y),
        "`train.ntk` must be positive semi-definite",
    ),
    "prior": (
        lambda: ensemble(KernelPair(BAD, TRAIN.ntk), Y),
        "`train.nngp` must be positive semi-definite",
    ),
    "flow": (lambda: output_flow(BAD, np.abs(Y), [1.0]), "`ntk` must be positive semi-definite"),
    "skew": (lambda: posterior(np.triu(np.ones((7, 7))), Y), "`nngp` must be symmetric"),
    "no factor": (lambda: posterior(BAD, Y), "has no Cholesky factor"),
    "targets": (lambda: ensemble(TRAIN, Y[:3]), "`targets` must have shape"),
    "times": (lambda: ensemble(TRAIN, Y, -1.0), "`times` must not be negative"),
    "ridge": (lambda: ensemble(TRAIN, Y, ridge=-1.0), "`ridge` must be finite and not negative"),
    "rate": (lambda: ensemble(TRAIN, Y, 1.0, rate=50.0), "or descent diverges"),
    "cross": (
        lambda: ensemble(TRAIN, Y, cross=TRAIN._replace(ntk=TEST)),
        "`cross.ntk` must have shape",
    ),
    "order": (lambda: output_flow(TRAIN.ntk, np.abs(Y), [1.0, 0.5]), "`times` must increase"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_named(name):
    call, words = WRONG[name]
    with pytest.raises(ValueError, match=words):
        call()
