"""`KernelRegressor`: scikit-learn's own checks, dense formulas, the limits in time and noise, wrong
input.
"""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
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
        variance = np.asarray(k.nngp_diagonal(standard(Z))) - np.einsum(
            "xi,ij,xj->x", cross, inverse, cross
        )
        assert_allclose(std, np.sqrt(variance)[:, None] * Y.std(0), rtol=1e-7)


def test_training_time_runs_from_the_mean_to_the_end():
    begin = KernelRegressor(depth=1, time=1e-9).fit(X, Y[:, 0]).predict(Z)
    assert_allclose(begin, Y[:, 0].mean(), atol=1e-6)
    late = KernelRegressor(depth=1, time=1e12).fit(X, Y[:, 0]).predict(Z)
    end = KernelRegressor(depth=1).fit(X, Y[:, 0]).predict(Z)
    assert_allclose(late, end, rtol=1e-6)


def test_convolutions_take_rows_as_images():
    a = wf.architecture
    chain = a.Chain(
        a.Conv(8, (3,), bias_std=0.1), a.Activate("relu"), a.GlobalAveragePool(), a.Dense(1)
    )
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


def loo_ridge(gram, targets):
    """The best leave-one-out ridge by brute force: every row is predicted by a solve without it."""
    top, best = np.linalg.eigvalsh(gram)[-1], (np.inf, None)
    for ridge in np.logspace(-10, 1, 23) * top:
        misses = []
        for i in range(len(gram)):
            rest = np.delete(np.arange(len(gram)), i)
            inner = gram[np.ix_(rest, rest)] + ridge * np.eye(len(rest))
            misses.append(targets[i] - gram[i, rest] @ np.linalg.solve(inner, targets[rest]))
        best = min(best, (np.mean(np.square(misses)), ridge))
    return best[1]


DEEP = wf.limits.kernels(wf.architecture.mlp(2, 1, "erf", bias_std=0.5), parametrisation="standard")


@pytest.mark.parametrize("kernel", [DEEP, DEEP.nngp], ids=["tangent", "nngp"])
def test_wide_estimators_take_any_kernel(kernel):
    model = wf.WideRegressor(solver="kernel", kernel=kernel, random_state=0).fit(X, Y[:, 0])
    standard = lambda a: (a - X.mean(0)) / X.std(0)
    matrix = DEEP.ntk if kernel is DEEP else DEEP.nngp
    gram, cross = np.asarray(matrix(standard(X))), np.asarray(matrix(standard(Z), standard(X)))
    targets = (Y[:, 0] - Y[:, 0].mean()) / Y[:, 0].std()
    ridge = loo_ridge(gram, targets)
    assert_allclose(model.kernel_.ridge, ridge, rtol=1e-9)
    expected = cross @ np.linalg.solve(gram + ridge * np.eye(30), targets)
    assert_allclose(model.predict(Z), expected * Y[:, 0].std() + Y[:, 0].mean(), rtol=1e-6)
    labels = np.where(Y[:, 0] > 0, "up", "down")
    classes = wf.WideClassifier(solver="kernel", kernel=kernel).fit(X, labels)
    assert np.mean(classes.predict(X) == labels) > 0.9
    again = pickle.loads(pickle.dumps(clone(model).fit(X, Y[:, 0])))
    assert_allclose(again.predict(Z), model.predict(Z), rtol=1e-6)


def test_kernel_regressor_takes_kernels_as_they_are():
    model = KernelRegressor(DEEP, ridge=0.01).fit(X, Y[:, 0])
    assert model.kernels_ is DEEP
    plain = KernelRegressor(DEEP.architecture, ridge=0.01).fit(X, Y[:, 0])
    # the standard parametrisation weighs its layers by their fan-in
    assert np.max(np.abs(model.predict(Z) - plain.predict(Z))) > 1e-4


@pytest.mark.parametrize(
    "settings", [dict(), dict(kernel="nngp"), dict(time=3.0)], ids=["ntk", "nngp", "time"]
)
@pytest.mark.parametrize("memory", [None, 3_000], ids=["fits", "beyond"])
def test_a_folder_keeps_the_kernel(tmp_path, monkeypatch, settings, memory):
    plain = KernelRegressor(depth=1, ridge=0.01, **settings).fit(X, Y)
    expected, spread = plain.predict(Z, return_std=True)
    if (
        memory is not None
    ):  # neither the matrix nor half of it: conjugate gradients, or Lanczos at a finite time
        monkeypatch.setenv("WIDEFLOW_MEMORY", str(memory))
    model = KernelRegressor(depth=1, ridge=0.01, store=tmp_path, **settings).fit(X, Y)
    # `regress` stops at a residual of 1e-8
    assert_allclose(model.predict(Z), expected, rtol=1e-10 if memory is None else 1e-6)
    mean, std = model.predict(Z, return_std=True)
    assert_allclose(std, spread, rtol=1e-7)
    folders = sorted(path.name for path in tmp_path.iterdir())
    assert [name.split("-")[0] for name in folders] == (
        ["nngp"] if settings.get("kernel") else ["nngp", "ntk"]
    )
    # the same rows and architecture find it again, others get folders of their own
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    again = pickle.loads(pickle.dumps(clone(model).fit(X, Y)))
    assert_allclose(again.predict(Z), mean, rtol=1e-10)
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    KernelRegressor(depth=2, store=tmp_path, **settings).fit(X, Y)
    assert len(list(tmp_path.iterdir())) == len(folders) + 1


def test_a_kernel_that_was_written_before(tmp_path):
    k = wf.limits.kernels(wf.architecture.mlp(1, weight_std=1.5, bias_std=0.1))
    stored = wf.limits.write_kernel(k, tmp_path / "k.zarr", X, chunk=16)
    model = KernelRegressor(k, ridge=0.01, standardise=False, store=stored).fit(X, Y)
    gram, cross = np.asarray(k.ntk(X)), np.asarray(k.ntk(Z, X))
    expected = cross @ np.linalg.solve(gram + 0.01 * np.trace(gram) / 30 * np.eye(30), Y)
    assert_allclose(model.predict(Z), expected, rtol=1e-9)
    deeper = wf.limits.kernels(wf.architecture.mlp(2, weight_std=1.5, bias_std=0.1))
    cases = [
        (lambda: model.predict(Z, return_std=True), "`return_std` with kernel='ntk' needs both"),
        (
            lambda: clone(model).fit(X[::-1], Y),
            r"holds another kernel \(different: row inputs, column inputs\)",
        ),
        (
            lambda: clone(model).set_params(architecture=deeper).fit(X, Y),
            r"another kernel \(different: architecture",
        ),
        (
            lambda: clone(model).set_params(kernel="nngp").fit(X, Y),
            r"another kernel \(different: kernel\)",
        ),
        (
            lambda: clone(model).set_params(standardise=True).fit(X, Y),
            r"another kernel \(different: row inputs",
        ),
        (
            lambda: clone(model).set_params(standardise="no").fit(X, Y),
            "`standardise` must be True or False",
        ),
        (lambda: clone(model).set_params(store=3).fit(X, Y), "`store` must be a folder"),
    ]
    for call, words in cases:
        with pytest.raises(ValueError, match=words):
            call()
    (tmp_path / "k.zarr" / "0.1").unlink()
    with pytest.raises(ValueError, match="`store` must be complete, but 1 chunk"):
        clone(model).fit(X, Y)


def test_wide_estimators_keep_the_kernel_of_many_rows(tmp_path, monkeypatch):
    settings = dict(solver="kernel", kernel=DEEP, random_state=0)
    expected = wf.WideRegressor(**settings).fit(X, Y[:, 0]).predict(Z)
    labels = np.where(Y[:, 0] > 0, "up", "down")
    odds = wf.WideClassifier(**settings).fit(X, labels).predict_proba(Z)
    monkeypatch.setenv("WIDEFLOW_MEMORY", "8000")
    with pytest.raises(ValueError, match="a folder as `store`"):
        wf.WideRegressor(**settings).fit(X, Y[:, 0])
    model = wf.WideRegressor(**settings, store=tmp_path).fit(X, Y[:, 0])
    assert_allclose(model.predict(Z), expected, rtol=1e-6)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    classes = wf.WideClassifier(**settings, store=tmp_path).fit(X, labels)  # the same rows
    assert_allclose(classes.predict_proba(Z), odds, rtol=1e-6)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == stamps
    with pytest.raises(ValueError, match="`store` needs kernel"):
        wf.WideRegressor(solver="kernel", store=tmp_path).fit(X, Y[:, 0])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(solver="adam", kernel=DEEP), "`kernel` needs solver='kernel', got solver='adam'"),
        (dict(solver="kernel", kernel="rbf"), "`kernel` must be `wf.limits.kernels"),
        (dict(solver="kernel", kernel=DEEP, embedding=5), "`embedding` must be None where"),
        (
            dict(solver="kernel", kernel=lambda x, z: x),
            r"`kernel` must give finite numbers of shape \(30, 30\)",
        ),
        (
            dict(solver="kernel", kernel=lambda x, z: -x @ z.T),
            "`kernel` must be positive semi-definite",
        ),
    ],
)
def test_wrong_kernels_are_named(settings, words):
    with pytest.raises(ValueError, match=words):
        wf.WideRegressor(**settings).fit(X, Y[:, 0])


@pytest.mark.parametrize("size", [1e200, 1e-290])
def test_targets_of_any_size_are_learnt_alike(size):
    X = np.random.default_rng(0).normal(size=(12, 3))
    y = X[:, 0] + 0.5
    plain, scaled = (KernelRegressor(depth=1).fit(X, c * y).predict(X) for c in (1.0, size))
    np.testing.assert_allclose(scaled / size, plain, rtol=1e-9)
