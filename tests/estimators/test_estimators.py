"""The estimators: scikit-learn's own contract, and what they add to it."""

import pickle
import subprocess
import sys

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import check_random_state
from sklearn.utils.estimator_checks import estimator_checks_generator

import wideflow as wf
from wideflow.estimators import fitting, search
from wideflow.estimators.fitting import Settings

QUICK = {"width": 16, "epochs": 40, "solver": "descent", "early_stopping": False, "random_state": 0}


def contract(estimator):
    """scikit-learn's checks; SkipTest is its way of saying that a check does not concern an estimator."""
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
    return wf.WideRegressor(width=128, epochs=400, random_state=0).fit(*table)


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
    assert fitted.validation_curve_
    assert fitted.n_epochs_ <= 400
    assert min(fitted.validation_curve_) < fitted.validation_curve_[0]


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
    # descent draws nothing: the plan, followed in one go from the same start, ends in the network that was found looking
    x, y = table
    model = wf.WideRegressor(**(QUICK | {"early_stopping": True, "epochs": 200, "patience": 20}))
    settings = Settings.of(model)
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
    model = wf.WideRegressor(width=32, patience=10, random_state=0).fit(x, y)
    assert model.n_epochs_ < 400  # noise: it stops early
    other = wf.WideRegressor(width=32, patience=10, random_state=0)
    held = fitting._split(Settings.of(other), 200, None, np.random.default_rng(_seed(0)))[1]
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
        ({"width": 0}, "`width`"), ({"solver": "adam"}, "`solver` must be 'sgd', 'descent' or 'flow'"), ({"scaling": "zipff"}, "`scaling`"),
        ({"scaling": 3}, "`scaling` must be a text"), ({"embedding": "many"}, "`embedding`"), ({"validation_fraction": 1.5}, "`validation_fraction`"),
        ({"rate": -1.0}, "`rate`"), ({"activation": "rleu"}, "rleu"),
    ],
)  # fmt: skip
def test_wrong_parameters_are_named_at_fit(table, change, message):
    with pytest.raises(ValueError, match=message):
        wf.WideRegressor(**(QUICK | change)).fit(*table)


def test_importing_wideflow_does_not_import_scikit_learn():
    code = "import sys, wideflow; assert 'sklearn' not in sys.modules; wideflow.WideRegressor; assert 'sklearn' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
