"""Kernel regression by blocks, by conjugate gradients and in float32, against one dense solve."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.limits import apply_kernel, regress
from wideflow.limits.infinite_width.regression import block_rows

RNG = np.random.default_rng(2)
X, Z = RNG.standard_normal((90, 5)), RNG.standard_normal((30, 5))
Y = RNG.standard_normal((90, 2))
CHAIN = wf.architecture.mlp(depth=1, weight_std=1.4, bias_std=0.2)
K = wf.limits.kernels(CHAIN)
RIDGE = 0.05


@pytest.fixture(scope="module")
def exact():
    return np.linalg.solve(np.asarray(K.ntk(X)) + RIDGE * np.eye(90), Y)


def test_by_blocks(exact):
    answer = regress(K, X, Y, ridge=RIDGE, rows=30)
    assert answer.method == "cholesky"
    assert_allclose(answer.coefficients, exact, rtol=1e-10)
    predicted = apply_kernel(K, Z, X, answer.coefficients, rows=30)
    assert_allclose(predicted, np.asarray(K.ntk(Z, X)) @ exact, rtol=1e-9)


def test_by_conjugate_gradients_where_the_matrix_does_not_fit(exact):
    done = []
    small = regress(
        K,
        X,
        Y,
        ridge=RIDGE,
        rows=30,
        memory=20_000,
        rank=30,
        tolerance=1e-10,
        progress=lambda step, most: done.append(step),
    )
    assert small.method == "cg"
    assert small.residual <= 1e-10
    assert_allclose(small.coefficients, exact, rtol=1e-7)
    plain = regress(K, X, Y[:, 0], ridge=RIDGE, rows=30, method="cg", rank=1, tolerance=1e-10)
    assert_allclose(plain.coefficients, exact[:, 0], rtol=1e-7)
    assert len(done) == small.steps < plain.steps  # the preconditioner earns its columns


def test_a_target_of_zeros_beside_another(exact):
    # Its step length is 0/0, which used to make the whole answer NaN.
    targets = np.stack([Y[:, 0], np.zeros(90)], axis=1)
    answer = regress(K, X, targets, ridge=RIDGE, rows=30, method="cg", rank=30, tolerance=1e-10)
    assert_allclose(answer.coefficients[:, 0], exact[:, 0], rtol=1e-7)
    assert_allclose(answer.coefficients[:, 1], 0)


def test_single_precision_is_refined_to_double(exact):
    single = wf.limits.kernels(CHAIN, precision="float32")
    answer = regress(single, X, Y, ridge=RIDGE, rows=30, tolerance=1e-12)
    assert answer.coefficients.dtype == np.float64
    assert_allclose(answer.coefficients, exact, rtol=1e-9)
    assert answer.steps > 1


def test_single_precision_at_a_ridge_below_its_rounding():
    # 160 points on a line: float32 finds negative pivots at this ridge, and the sentence used to
    # end the matter.
    x = np.linspace(-1, 1, 160)[:, None]
    y = np.sin(3 * x[:, 0])
    gram = np.asarray(K.ntk(x))
    ridge = 0.05 * np.finfo(np.float32).eps * np.trace(gram)
    single = wf.limits.kernels(CHAIN, precision="float32")
    answer = regress(single, x, y, ridge=ridge, rows=50, tolerance=1e-9)
    assert answer.method == "cholesky"
    shifted = gram + ridge * np.eye(160)
    assert np.linalg.norm(shifted @ answer.coefficients - y) < 2e-9 * np.linalg.norm(y)


@pytest.mark.parametrize("settings", [{}, {"method": "cg", "rank": 30, "tolerance": 1e-10}])
def test_a_stored_kernel_is_read_and_not_computed(exact, tmp_path, monkeypatch, settings):
    stored = wf.limits.write_kernel(K, tmp_path / "k.zarr", X, chunk=40)
    cross = wf.limits.write_kernel(K, tmp_path / "cross.zarr", Z, X, chunk=40)
    expected = np.asarray(K.ntk(Z, X)) @ exact

    def refuse(*args, **kwargs):
        raise AssertionError("computed again")

    for name in ("ntk", "nngp", "both", "ntk_diagonal", "nngp_diagonal"):
        monkeypatch.setattr(type(K), name, refuse)
    answer = regress(wf.limits.open_kernel(tmp_path / "k.zarr"), None, Y, ridge=RIDGE, **settings)
    assert_allclose(answer.coefficients, exact, rtol=1e-7)
    assert_allclose(cross @ answer.coefficients, expected, rtol=1e-7)
    with pytest.raises(ValueError, match="`x` must be None"):
        regress(stored, X, Y, ridge=RIDGE)
    with pytest.raises(ValueError, match="`k` must be the stored kernel of the training inputs"):
        regress(cross, None, Y, ridge=RIDGE)


@pytest.mark.parametrize("itemsize", [4, 8])
def test_blocks_of_the_default_budget_are_given_back_by_the_allocator(itemsize):
    # glibc serves requests of up to DEFAULT_MMAP_THRESHOLD_MAX = 32 MiB from its heap once one of
    # that size was freed (mallopt(3)).
    rows = block_rows(20_000, itemsize, 2 << 30)
    assert 32 << 20 <= itemsize * rows**2 < 33 << 20
    assert block_rows(100, itemsize, 2 << 30) == 100
    assert block_rows(60_000, itemsize, 100 << 30) == 4096


def test_wrong_input_is_named():
    twice = np.concatenate([X[:3], X[:3]])
    cases = [
        (dict(ridge=0.0), "`ridge` must be positive"),
        (dict(ridge=RIDGE, kernel="rbf"), "`kernel` must be 'ntk' or 'nngp'"),
        (dict(ridge=RIDGE, method="lu"), "`method` must be 'cholesky' or 'cg'"),
        (dict(ridge=1e-9, rows=30, method="cg", rank=1, max_steps=2), "above `tolerance`"),
    ]
    for settings, words in cases:
        with pytest.raises(ValueError, match=words):
            regress(K, X, Y, **settings)
    with pytest.raises(ValueError, match="`targets` must have shape"):
        regress(K, X, Y[:5], ridge=RIDGE)
    single = wf.limits.kernels(CHAIN, precision="float32")
    with pytest.raises(ValueError, match="must be positive definite"):
        regress(single, twice, np.ones(6), ridge=1e-30, rows=6)
