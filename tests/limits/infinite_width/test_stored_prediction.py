"""Predictions from kernels on disk, beyond a small budget: by a factor and by products alone,
against the formulas in memory.
"""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow import limits
from wideflow.limits.infinite_width import kernel_inverse

RNG = np.random.default_rng(5)
X, Z, Y = RNG.standard_normal((60, 4)), RNG.standard_normal((5, 4)), RNG.standard_normal((60, 2))
K = limits.kernels(wf.architecture.mlp(depth=1, weight_std=1.4, bias_std=0.2))
RIDGE = 0.05
FACTOR_FITS, NOTHING_FITS = 60 * 60 * 8, 6_000  # four whole matrices do not; half of one does
BUDGETS = pytest.mark.parametrize("memory", [None, FACTOR_FITS, NOTHING_FITS])


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """Both kernels of the training inputs, and of test against training inputs, in chunks of 32."""
    place = tmp_path_factory.mktemp("kernels")
    write = lambda name, kind, *inputs: limits.write_kernel(
        K, place / (name + kind), *inputs, kernel=kind, chunk=32
    )
    return {
        "train": tuple(write("train", kind, X) for kind in ("nngp", "ntk")),
        "cross": tuple(write("cross", kind, Z, X) for kind in ("nngp", "ntk")),
    }


@pytest.fixture(scope="module")
def ram():
    return {"train": K.both(X), "cross": K.both(Z, X), "test": K.nngp(Z)}


@pytest.fixture(autouse=True)
def weak_preconditioner(monkeypatch):
    """So that conjugate gradients take steps."""
    monkeypatch.setattr(kernel_inverse, "RANK", 8)


@BUDGETS
@pytest.mark.parametrize("spread", ["covariance", "variances", "none"])
def test_posterior(disk, ram, memory, spread):
    test = {"covariance": ram["test"], "variances": np.diagonal(ram["test"]), "none": None}[spread]
    expected = limits.posterior(
        ram["train"].nngp, Y, cross=ram["cross"].nngp, test_nngp=test, ridge=RIDGE
    )
    for cross in (disk["cross"][0], ram["cross"].nngp):
        mean, covariance = limits.posterior(
            disk["train"][0], Y, cross=cross, test_nngp=test, ridge=RIDGE, memory=memory
        )
        assert_allclose(mean, expected.mean, rtol=0, atol=1e-10)
        if test is None:
            assert covariance is None
        else:
            assert_allclose(covariance, expected.covariance, rtol=0, atol=1e-10)


@BUDGETS
@pytest.mark.parametrize("rate", [None, 0.01])
def test_ensemble_at_any_time(disk, ram, memory, rate):
    times = [0.0, 2.0, math.inf]
    for test in (ram["test"], np.diagonal(ram["test"])):
        settings = dict(test_nngp=test, rate=rate, ridge=RIDGE)
        expected = limits.ensemble(ram["train"], Y, times, cross=ram["cross"], **settings)
        result = limits.ensemble(
            disk["train"], Y, times, cross=disk["cross"], memory=memory, **settings
        )
        assert_allclose(result.mean, expected.mean, rtol=0, atol=1e-10)
        assert_allclose(result.covariance, expected.covariance, rtol=0, atol=1e-10)


def test_one_time_one_output_and_no_covariance(disk, ram):
    expected = limits.ensemble(ram["train"], Y[:, 0], 3.0, cross=ram["cross"])
    result = limits.ensemble(disk["train"], Y[:, 0], 3.0, cross=disk["cross"], memory=NOTHING_FITS)
    assert result.mean.shape == (5,)
    assert result.covariance is None
    assert_allclose(result.mean, expected.mean, rtol=0, atol=1e-10)


@pytest.mark.parametrize("memory", [FACTOR_FITS, NOTHING_FITS])
def test_a_kernel_in_float32_is_solved_in_float64(tmp_path, memory):
    single = limits.kernels(K.architecture, precision="float32")
    stored = limits.write_kernel(single, tmp_path / "k", X, kernel="nngp", chunk=32)
    assert stored.dtype == np.float32
    gram = stored.to_array().astype(float)
    mean, _ = limits.posterior(stored, Y, cross=stored, ridge=RIDGE, memory=memory)
    expected = gram @ np.linalg.solve(gram + RIDGE * np.eye(60), Y)
    assert_allclose(mean, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("memory", "most"), [(FACTOR_FITS, 5), (NOTHING_FITS, 2000)])
def test_progress(disk, memory, most):
    calls = []
    limits.posterior(
        disk["train"][0],
        Y,
        cross=disk["cross"][0],
        ridge=RIDGE,
        memory=memory,
        progress=lambda *done: calls.append(done),
    )
    # three blocks of two by two chunks and two columns of the factor, or so many steps at most
    assert [done for done, _ in calls] == list(range(1, len(calls) + 1))
    assert {total for _, total in calls} == {most}


def test_the_training_inputs_as_test_inputs(disk, ram):
    gram = np.asarray(ram["train"].nngp)
    shrunk = gram @ np.linalg.inv(gram + RIDGE * np.eye(60))
    diagonal = disk["train"][0].diagonal()
    mean, variances = limits.posterior(
        disk["train"][0], Y, test_nngp=diagonal, ridge=RIDGE, memory=NOTHING_FITS
    )
    assert_allclose(mean, shrunk @ Y, atol=1e-9)
    assert_allclose(variances, np.diagonal(gram - shrunk @ gram), atol=1e-9)
    with pytest.raises(ValueError, match="`test_nngp` must be given for a stored kernel"):
        limits.posterior(disk["train"][0], Y, ridge=RIDGE, memory=NOTHING_FITS)


@pytest.mark.parametrize("memory", [None, FACTOR_FITS])
def test_marginal_likelihood_against_scipy(disk, ram, memory):
    from scipy.stats import multivariate_normal

    law = multivariate_normal(np.zeros(60), np.asarray(ram["train"].nngp) + RIDGE * np.eye(60))
    value = limits.log_marginal_likelihood(disk["train"][0], Y, RIDGE, memory=memory)
    assert_allclose(value, law.logpdf(Y.T).sum(), rtol=1e-10)
    with pytest.raises(ValueError, match=r"`memory` must be at least .* the size of the factor"):
        limits.log_marginal_likelihood(disk["train"][0], Y, RIDGE, memory=NOTHING_FITS)


def test_formulas_that_need_the_matrix_read_it(disk, ram, monkeypatch):
    ntk, cross = disk["train"][1], disk["cross"][1]
    labels = np.eye(2)[(X[:, 0] > 0).astype(int)]
    flow = limits.output_flow(ntk, labels, [0.5], cross=cross)
    assert_allclose(
        flow,
        limits.output_flow(ram["train"].ntk, labels, [0.5], cross=ram["cross"].ntk),
        atol=1e-10,
    )
    line = limits.linearised(ntk, Y, [0.5], test_kernel=cross)
    exact = limits.linearised(ram["train"].ntk, Y, [0.5], test_kernel=ram["cross"].ntk)
    assert_allclose(line.test_outputs, exact.test_outputs, atol=1e-10)
    monkeypatch.setenv("WIDEFLOW_MEMORY", str(NOTHING_FITS))
    with pytest.raises(ValueError, match=r"`ntk` in .* must fit in memory here"):
        limits.output_flow(ntk, labels, [0.5])


def test_kernels_that_do_not_belong_together_are_refused(disk, ram, tmp_path):
    (nngp, ntk), (cross_nngp, cross_ntk) = disk["train"], disk["cross"]
    other = limits.write_kernel(K, tmp_path / "other", Z, X[::-1], kernel="nngp", chunk=16)
    deeper = limits.kernels(wf.architecture.mlp(depth=2, weight_std=1.4, bias_std=0.2))
    deep = limits.write_kernel(deeper, tmp_path / "deep", X, chunk=16)
    begun = limits.write_kernel(K, tmp_path / "begun", X, kernel="nngp", chunk=16, part=(0, 2))
    two = limits.write_kernel(K, tmp_path / "two", X, X[::-1], kernel="nngp", chunk=16)
    settings = dict(ridge=RIDGE, memory=NOTHING_FITS)
    cases = [
        (
            lambda: limits.posterior(ntk, Y, **settings),
            r"`nngp` must be the 'nngp' kernel .* \(different: kernel\)",
        ),
        (
            lambda: limits.posterior(two, Y, **settings),
            r"of the training inputs with themselves, but .* \(different: row inputs\)",
        ),
        (lambda: limits.posterior(begun, Y, **settings), "`nngp` must be complete, but 8 chunks"),
        (
            lambda: limits.posterior(nngp, Y, cross=other, **settings),
            r"`cross` must be .* \(different: column inputs\)",
        ),
        (
            lambda: limits.posterior(nngp, Y, cross=cross_ntk, **settings),
            r"`cross` must be .* \(different: kernel\)",
        ),
        (
            lambda: limits.posterior(nngp, Y, cross=np.ones((3, 5)), **settings),
            r"`cross` must have shape \(test sample, 60\)",
        ),
        (
            lambda: limits.ensemble((nngp, deep), Y, **settings),
            r"`train.ntk` must be .* \(different: architecture, rates\)",
        ),
        (
            lambda: limits.ensemble((nngp, ram["train"].ntk), Y, **settings),
            "`train` must hold two stored kernels or two arrays",
        ),
        (
            lambda: limits.ensemble((nngp, ntk), Y, cross=(cross_nngp, cross_nngp), **settings),
            "`cross.ntk` must be",
        ),
        (
            lambda: limits.ensemble((nngp, ntk), Y, cross=disk["cross"], rate=1.0, **settings),
            "`rate` must be below 2/",
        ),
        (
            lambda: limits.ensemble((nngp, ntk), Y, cross=disk["cross"], memory=NOTHING_FITS),
            "`ridge` must be positive",
        ),
    ]
    for call, words in cases:
        with pytest.raises(ValueError, match=words):
            call()
