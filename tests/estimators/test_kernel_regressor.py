"""`KernelRegressor`: scikit-learn's own checks, dense formulas, the limits in time and noise, wrong input."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.utils.estimator_checks import check_estimator

import wideflow as wf
from wideflow import KernelRegressor

RNG = np.random.default_rng(4)
X = RNG.standard_normal((30, 3)) * [1.0, 20.0, 0.1] + [0.0, 5.0, 1.0]
Y = np.stack([np.sin(X[:, 0]), 100 + 30 * X[:, 2]], axis=1)
Z = RNG.standard_normal((6, 3)) * [1.0, 20.0, 0.1] + [0.0, 5.0, 1.0]


@pytest.mark.slow
def test_scikit_learns_checks():
    check_estimator(KernelRegressor(depth=1), on_skip=None)


@pytest.mark.parametrize("kernel", ["ntk", "nngp"])
def test_the_formula_in_numpy(kernel):
    model = KernelRegressor(depth=1, kernel=kernel, ridge=0.01).fit(X, Y)
    standard = lambda a: (a - X.mean(0)) / X.std(0)
    k = wf.limits.kernels(wf.architecture.mlp(1, weight_std=np.sqrt(2), bias_std=0.1))
    gram = np.asarray(getattr(k, kernel)(standard(X)))
    ridge = 0.01 * np.trace(gram) / 30
    inverse = np.linalg.inv(gram + ridge * np.eye(30))
    cross = np.asarray(getattr(k, kernel)(standard(Z), standard(X)))
    expected = cross @ inverse @ ((Y - Y.mean(0)) / Y.std(0)) * Y.std(0) + Y.mean(0)
    mean, std = model.predict(Z, return_std=True)
    assert_allclose(mean, expected, rtol=1e-9)
    assert std.shape == mean.shape
    if kernel == "nngp":
        variance = np.asarray(k.nngp_diagonal(standard(Z))) - np.einsum("xi,ij,xj->x", cross, inverse, cross)  # fmt: skip
        assert_allclose(std, np.sqrt(variance)[:, None] * Y.std(0), rtol=1e-7)


def test_training_time_runs_from_the_mean_to_the_end():
    begin = KernelRegressor(depth=1, time=1e-9).fit(X, Y[:, 0]).predict(Z)
    assert_allclose(begin, Y[:, 0].mean(), atol=1e-6)
    late = KernelRegressor(depth=1, time=1e12).fit(X, Y[:, 0]).predict(Z)
    end = KernelRegressor(depth=1).fit(X, Y[:, 0]).predict(Z)
    assert_allclose(late, end, rtol=1e-6)


def test_convolutions_take_rows_as_images():
    a = wf.architecture
    chain = a.Chain(a.Conv(8, (3,), bias_std=0.1), a.Activate("relu"), a.GlobalAveragePool(), a.Dense(1))  # fmt: skip
    model = KernelRegressor(chain, shape=(3, 1)).fit(X, Y[:, 0])
    assert model.predict(Z).shape == (6,)
    with pytest.raises(ValueError, match=r"`shape` .* must hold the 3 columns"):
        KernelRegressor(chain, shape=(4, 1)).fit(X, Y[:, 0])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(kernel="rbf"), "`kernel` must be"),
        (dict(ridge=0.0), "`ridge` must be positive"),
        (dict(time=0.0), "`time` must be positive"),
        (dict(kernel="nngp", time=1.0), "`time` must be infinite"),
        (dict(architecture="cnn"), "`architecture` must be a layer"),
    ],
)
def test_wrong_settings_are_named(settings, words):
    with pytest.raises(ValueError, match=words):
        KernelRegressor(**settings).fit(X, Y)
