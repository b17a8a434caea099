"""The estimators: scikit-learn's own contract, and what they add to it."""

import pickle
import subprocess
import sys
import warnings

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import check_random_state
from sklearn.utils.estimator_checks import estimator_checks_generator

import wideflow as wf
from wideflow.estimators import adam, fitting, kernel_ridge, search
from wideflow.estimators.fitting import Settings

# most runs here are short on purpose; one test asks for the warning
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

QUICK = {"width": 16, "epochs": 40, "solver": "descent", "early_stopping": False, "random_state": 0}


def contract(estimator):
    """scikit-learn's checks; SkipTest is its way of saying that a check does not concern an
    estimator.
    """
    return [
        pytest.param(e, check, id=str(getattr(check, "func", check).__name__))
        for e, check in estimator_checks_generator(estimator)
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "check"),
    contract(wf.WideRegressor(**QUICK)) + contract(wf.WideClassifier(**QUICK)),
)
def test_scikit_learn_contract_by_descent(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "check"),
    contract(wf.WideRegressor(random_state=0)) + contract(wf.WideClassifier(random_state=0)),
)
def test_scikit_learn_contract_as_it_comes(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def table():
    """A raw table: columns of very different sizes, a curved target far from zero."""
    random = np.random.default_rng(0)
    x = random.normal(size=(160, 3)) * [1e4, 1.0, 1e-3] + [5e4, 0.0, 1.0]
    z = (x - x.mean(0)) / x.std(0)
    return x, 1000 + 50 * (np.abs(z[:, 0]) + z[:, 1] * z[:, 2])


@pytest.fixture(scope="module")
def fitted(table):
    return wf.WideRegressor(width=128, epochs=200, random_state=0).fit(*table)


def test_raw_tables_work_as_they_are(fitted, table):
    assert fitted.score(*table) > 0.9
    assert fitted.predict(table[0]).dtype == np.float64


def test_changing_units_changes_nothing(table):
    x, y = table
    options = QUICK | {"epochs": 20}
    one = wf.WideRegressor(**options).fit(x, y).predict(x)
    other = wf.WideRegressor(**options).fit(8.0 * x + 16.0, 4.0 * y + 2.0).predict(8.0 * x + 16.0)
    assert_allclose(other, 4.0 * one + 2.0, rtol=1e-4)


def test_predictions_are_those_of_the_formula(fitted, table):
    x = table[0][:7]
    inputs = np.concatenate(
        [(x - fitted.input_mean_) / fitted.input_scale_, np.ones((7, 1))], axis=1
    )
    net = fitted.network_
    hidden = np.maximum(
        inputs @ net.hidden.astype(float).T / 2.0, 0.0
    )  # sqrt(d) = 2 with the bias column
    outputs = hidden @ (net.scales.astype(float) * net.output.astype(float)[0])
    assert_allclose(
        fitted.predict(x), outputs * fitted.target_scale_ + fitted.target_mean_, rtol=1e-10
    )


def test_transform_orders_by_importance_and_prune_keeps_the_best(fitted, table):
    x = table[0]
    features = fitted.transform(x)
    assert features.shape == (160, 128)
    order = np.argsort(-fitted.node_importances_, kind="stable")
    signs = fitted.network_.output[0][order]
    pruned = fitted.prune(100)
    assert pruned.network_.hidden.shape[0] == 100
    expected = features[:, :100] @ signs[:100] * fitted.target_scale_ + fitted.target_mean_
    assert_allclose(pruned.predict(x), expected, rtol=1e-8)
    assert fitted.network_.hidden.shape[0] == 128  # the original is untouched
    assert_allclose(fitted.prune(128).predict(x), fitted.predict(x), rtol=1e-12)
    assert len(fitted.get_feature_names_out()) == 128
    with pytest.raises(ValueError, match="`keep`"):
        fitted.prune(500)


def test_pickling_and_cloning(fitted, table):
    copy = pickle.loads(pickle.dumps(fitted.prune(50)))
    assert_allclose(copy.predict(table[0]), fitted.prune(50).predict(table[0]), rtol=0)
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    assert not hasattr(fresh, "network_")


def test_certificate_speaks_of_the_training_rows(fitted):
    certificate = fitted.certificate_
    assert certificate.subject["width"] == 128
    assert certificate.subject["samples"] == 160
    assert certificate.mean.resolved
    assert "caron2023" in str(certificate)


def test_early_stopping_holds_rows_out(fitted):
    # lengths 12, 50, 200, each four times the one before (rounded down), until one brings no gain
    curve = fitted.validation_curve_
    assert search.lengths(200) == [12, 50, 200]
    assert fitted.n_epochs_ == search.lengths(200)[int(np.argmin(curve))]
    assert min(curve) < curve[0]


def test_several_outputs(table):
    x, y = table
    targets = np.stack([y, x[:, 1] ** 2, -y], 1)
    both = wf.WideRegressor(**(QUICK | {"width": 64, "epochs": 400})).fit(x, targets)
    assert both.predict(x).shape == (160, 3)
    assert both.network_.output.shape == (3, 64)
    assert min(r2_score(targets, both.predict(x), multioutput="raw_values")) > 0.5


@pytest.mark.parametrize("outputs", [1, 4])
def test_the_rate_is_half_of_what_stability_allows_over_all_outputs(outputs):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(30, 3)), random.normal(size=(30, outputs))
    model = wf.WideRegressor(**(QUICK | {"epochs": 1})).fit(x, y)
    start = model._start.model()
    inputs = np.concatenate([(x - x.mean(0)) / x.std(0), np.ones((30, 1))], axis=1)
    jacobian = jax.jacfwd(
        lambda w: wf.Shallow(w, start.output, start.scaling).outputs(inputs).reshape(-1)
    )(start.hidden)
    top = np.linalg.norm(np.asarray(jacobian).reshape(30 * outputs, -1), 2) ** 2
    assert_allclose(model.rate_, 30 / top, rtol=1e-4)  # float32 weights


@pytest.mark.parametrize(
    ("rows", "solver"), [(1, "sgd"), (2, "sgd"), (3, "sgd"), (11, "sgd"), (1, "flow"), (11, "flow")]
)
def test_few_rows(table, rows, solver):
    x, y = table[0][:rows], table[1][:rows]
    options = {"width": 64, "epochs": 300, "random_state": 0, "early_stopping": False}
    model = wf.WideRegressor(**options, solver=solver).fit(x, y)
    assert model.predict(x).shape == (rows,)
    spread = max(np.std(y), 1e-9)
    assert np.max(np.abs(model.predict(x) - y)) < 0.5 * spread + 1e-6 * abs(y[0])


def test_looking_finds_the_network_that_its_plan_leads_to(table):
    # descent draws nothing: the plan, followed in one go from the same start, ends in the network
    # that was found looking
    x, y = table
    model = wf.WideRegressor(**(QUICK | {"early_stopping": True, "epochs": 200, "patience": 20}))
    settings = Settings.of(model, 160, 4)
    z = np.concatenate([(x - x.mean(0)) / x.std(0), np.ones((160, 1))], 1).astype(np.float32)
    t = ((y - y.mean()) / y.std())[:, None].astype(np.float32)
    data, held = wf.Dataset(z[:140], t[:140]), wf.Dataset(z[140:], t[140:])
    start = fitting._start(settings, 4, 1, 0)
    found = search.search(settings, start, data, held, fitting.REGRESSION, 0.5, 0)
    again = search.follow(settings, start, data, fitting.REGRESSION, found.plan, 0)
    assert_allclose(again.net.weights, found.net.weights, rtol=1e-4, atol=1e-5)
    best = min(found.validation)
    seen = float(fitting.REGRESSION(found.net.outputs(held.inputs), held.targets))
    assert_allclose(seen, best, rtol=1e-4)


def test_noise_lowers_the_rate_and_all_rows_are_used():
    random = np.random.default_rng(3)
    x = random.normal(size=(200, 2))
    y = x[:, 0] + random.normal(size=200)
    options = {"width": 32, "patience": 10, "random_state": 0, "solver": "sgd"}
    model = wf.WideRegressor(**options).fit(x, y)
    assert model.n_epochs_ < 400  # noise: it stops early
    other = wf.WideRegressor(**options)
    held = fitting._split(Settings.of(other, 200, 3), 200, None, np.random.default_rng(_seed(0)))[1]
    changed = y.copy()
    changed[held] += 50.0 * np.sign(x[held, 0])  # rows held out at first count in the end
    assert np.max(np.abs(other.fit(x, changed).predict(x[held]) - model.predict(x[held]))) > 5.0


def _seed(state):
    return int(check_random_state(state).randint(2**31 - 1))


@pytest.mark.parametrize(
    "change",
    [
        {"solver": "flow", "epochs": 3},
        {"solver": "sgd", "epochs": 3},
        {"solver": "adam", "epochs": 3},
        {"embedding": 20},
        {"scaling": "ntk", "activation": "tanh"},
    ],
)
def test_solvers_embeddings_and_scalings(table, change):
    x, y = table[0][:40], table[1][:40]
    model = wf.WideRegressor(**(QUICK | change)).fit(x, y)
    assert np.all(np.isfinite(model.predict(x)))
    assert model.loss_curve_[-1] < 0.5 * np.var((y - y.mean()) / y.std()) + 1.0
    assert_allclose(pickle.loads(pickle.dumps(model)).predict(x), model.predict(x), rtol=0)


def test_classifier_learns_a_ring():
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 2))
    y = np.where(np.linalg.norm(x, axis=1) > 1.2, "out", "in")
    model = wf.WideClassifier(width=64, epochs=200, random_state=0).fit(x, y)
    assert model.score(x, y) > 0.9
    probabilities = model.predict_proba(x)
    assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    assert set(model.predict(x)) == {"in", "out"}
    assert_allclose(
        model.decision_function(x),
        np.log(probabilities[:, 1] / probabilities[:, 0]),
        rtol=1e-8,
        atol=1e-10,
    )


def test_pipelines_grid_search_and_cross_validation(table):
    x, y = table[0][:60], table[1][:60]
    search = GridSearchCV(
        make_pipeline(MinMaxScaler(), wf.WideRegressor(**QUICK)),
        {"wideregressor__scaling": ["ntk", "zipf:0.5,0.7"]},
        cv=2,
    )
    assert search.fit(x, y).best_params_["wideregressor__scaling"] in ("ntk", "zipf:0.5,0.7")
    assert cross_val_score(wf.WideRegressor(**QUICK), x, y, cv=2).shape == (2,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 0}, "`width`"),
        ({"solver": "adm"}, "`solver` must be 'adam', 'kernel', 'sgd', 'descent' or 'flow'"),
        ({"scaling": "zipff"}, "`scaling`"),
        ({"scaling": 3}, "`scaling` must be a text"),
        ({"embedding": "many"}, "`embedding`"),
        ({"validation_fraction": 1.5}, "`validation_fraction`"),
        ({"rate": -1.0}, "`rate`"),
        ({"activation": "rleu"}, "rleu"),
    ],
)
def test_wrong_parameters_are_named_at_fit(table, change, message):
    with pytest.raises(ValueError, match=message):
        wf.WideRegressor(**(QUICK | change)).fit(*table)


def test_importing_wideflow_does_not_import_scikit_learn():
    code = (
        "import sys, wideflow; assert 'sklearn' not in sys.modules; wideflow.WideRegressor; assert "
        "'sklearn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_cap_that_cuts_training_short_is_told(table):
    for solver in ("adam", "sgd", "descent"):
        short = wf.WideRegressor(width=64, epochs=5, solver=solver, random_state=0)
        with pytest.warns(ConvergenceWarning, match="`epochs`=5"):
            short.fit(*table)
        assert short.n_epochs_ == 5
    # a straight line is fitted to 1e-4 of its variance long before the cap
    x = np.linspace(-1, 1, 40)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wf.WideRegressor(width=64, epochs=2000, random_state=0, early_stopping=False).fit(
            x, x[:, 0]
        )


@pytest.mark.parametrize(
    ("rows", "features", "width"),
    [
        (100, 5, 512),  # 512 nodes at least
        (1200, 6, 800),  # four weights a row: 4 * 1200 / 6
        (8000, 5, 4096),  # 6400 is beyond the largest, 4096 nodes still have 2.6 weights a row
        (100_000, 10, 10_000),  # as many weights as rows in any case
    ],
)
def test_width_follows_the_rows(rows, features, width):
    assert fitting.width_for(rows, features) == width


def test_adam_is_that_of_its_paper_with_a_cosine():
    # Adam by hand in NumPy on the gradients of the half mean of squares, one full batch a step
    random = np.random.default_rng(0)
    x, y = random.normal(size=(6, 3)), random.normal(size=6)
    w, a = random.normal(size=(8, 3)), random.choice([-1.0, 1.0], size=8)
    net, data, steps, rate = wf.Shallow(w, a, activation="tanh"), wf.Dataset(x, y), 7, 0.05
    run = wf.train(
        net, data, adam.Adam(rate, None, decay=steps), steps=steps, loss=wf.losses.HalfMeanSquares()
    )
    first, second = np.zeros_like(w), np.zeros_like(w)
    for k in range(steps):
        h = np.tanh(x @ w.T / 3**0.5)
        residual = h @ a / 8**0.5 - y
        gradient = (residual[:, None] * (1 - h**2) * a / 8**0.5).T @ x / 3**0.5 / 6
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        mean, square = first / (1 - 0.9 ** (k + 1)), second / (1 - 0.999 ** (k + 1))
        w = w - rate / 2 * (1 + np.cos(np.pi * k / steps)) * mean / (np.sqrt(square) + 1e-8)
    assert_allclose(run.model.hidden, w, rtol=1e-10)


def test_adam_passes_over_every_sample_once():
    # the output is the one weight's own input, so the gradient of the half mean of squares at step
    # k holds the samples of batch k alone; the first moments of a pass of three steps touch all six
    net = wf.Shallow(np.full((1, 6), 0.1), [1.0])
    data = wf.Dataset(np.eye(6), np.ones(6))

    def touched(snapshot):
        return snapshot.state.moments.mu["weights"][:, 0] != 0

    run = wf.train(
        net,
        data,
        adam.Adam(1e-9, 2),
        steps=3,
        every=1,
        loss=wf.losses.HalfMeanSquares(),
        record=[touched],
    )
    assert run.table.touched.values.sum(axis=1).tolist() == [0, 2, 4, 6]


def test_kernel_ridge_leaves_one_out_in_closed_form(table):
    # the definition: fit without row i, predict row i; on 12 rows with the ridge and bias that were
    # chosen
    x, y = table[0][:12], table[1][:12]
    model = wf.WideRegressor(solver="kernel", random_state=0).fit(x, y)
    machine = model.kernel_
    targets = ((y - y.mean()) / y.std())[:, None]
    kernel = np.asarray(wf.limits.mean_ntk(machine.inputs, "relu"))
    misses = []
    for i in range(12):
        rest = np.arange(12) != i
        ridged = kernel[np.ix_(rest, rest)] + machine.ridge * np.eye(11)
        misses.append(targets[i] - kernel[i, rest] @ np.linalg.solve(ridged, targets[rest]))
    # both lose digits to the kernel's conditioning, up to 1e10 at the smallest ridge
    assert_allclose(machine.loo_error, np.mean(np.square(misses)), rtol=1e-5)
    assert machine.loo_error <= 1.0  # no worse than answering the mean
    assert machine.bias in kernel_ridge.BIASES
    assert_allclose(pickle.loads(pickle.dumps(model)).predict(x), model.predict(x), rtol=0)


def test_the_kernel_interpolates_where_there_is_no_noise():
    x = np.random.default_rng(0).normal(size=(80, 2))
    y = 3 + np.abs(x[:, 0])
    model = wf.WideRegressor(solver="kernel").fit(x[:60], y[:60])
    assert model.score(x[:60], y[:60]) > 0.9999
    assert model.score(x[60:], y[60:]) > 0.95


def test_kernel_classifier_and_what_a_limit_has_not():
    random = np.random.default_rng(0)
    x = random.normal(size=(150, 2))
    y = np.where(np.linalg.norm(x, axis=1) > 1.2, "out", "in")
    model = wf.WideClassifier(solver="kernel", random_state=0).fit(x[:100], y[:100])
    assert model.score(x[100:], y[100:]) > 0.8
    # logits are scaled to be likely on rows left out: better than an even guess there
    probabilities = model.predict_proba(x[100:])
    right = probabilities[np.arange(50), np.searchsorted(model.classes_, y[100:])]
    assert -np.mean(np.log(right)) < np.log(2)
    for name in ("model_", "certificate_", "node_importances_"):
        with pytest.raises(AttributeError, match="no nodes"):
            getattr(model, name)
    for call in (lambda: model.transform(x), lambda: model.prune(0.5)):
        with pytest.raises(AttributeError, match="no nodes"):
            call()


def test_a_kernel_beyond_the_memory_is_refused(monkeypatch, table):
    monkeypatch.setenv("WIDEFLOW_MEMORY", "100k")
    with pytest.raises(ValueError, match=r"160 x 160 numbers.*at most 80 rows"):
        wf.WideRegressor(solver="kernel").fit(*table)
