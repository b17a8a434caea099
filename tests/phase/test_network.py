"""The network of a point: its invariances, its lazy limit, and what is refused."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

import wideflow as wf
from wideflow._core.status import Status
from wideflow.phase.errors_of_predictions import error_of
from wideflow.phase.lazy_end import lazy_errors
from wideflow.phase.levels import at_levels
from wideflow.phase.network import Network, Training, train_network
from wideflow.phase.splits import Standard, split_rows

GENERATOR = np.random.default_rng(0)
INPUTS = GENERATOR.normal(size=(60, 3))
DATA = wf.Dataset(INPUTS, np.sin(INPUTS[:, 0]) + 0.5 * INPUTS[:, 1] * INPUTS[:, 2])


@pytest.fixture(scope="module")
def rows():
    parts = split_rows(0, len(DATA), 1, 4, 24)
    standard = Standard.of(DATA.inputs[parts.train], DATA.targets[parts.train])
    y = standard.targets(DATA.targets)
    return (
        standard.inputs(DATA.inputs[parts.train]),
        y[parts.train],
        standard.inputs(DATA.inputs[parts.test]),
        y[parts.test],
    )


def test_ntk_scaling_is_mean_field_at_richness_one_over_the_root_of_the_width(rows):
    training = Training((0.2,), steps=60, precision="float64")
    paths = [
        train_network(Network(16, richness, scaling), training, 0, *rows[:3])
        for richness, scaling in ((1.0, "ntk"), (0.25, "mean-field"))
    ]
    np.testing.assert_allclose(paths[0].losses, paths[1].losses, rtol=1e-9)
    np.testing.assert_allclose(paths[0].outputs, paths[1].outputs, rtol=1e-7, atol=1e-9)
    assert paths[0].losses[0] == pytest.approx(1.0, abs=1e-12)  # the start is taken off


def test_the_loss_falls_below_the_last_level_and_the_status_says_so(rows):
    path = train_network(Network(64), Training((0.5, 0.3)), 0, *rows[:3])
    assert path.status is Status.BELOW
    assert np.all(np.diff(path.losses) < 0)
    assert path.losses[-1] < 0.3 <= path.losses[-2]
    short = train_network(Network(64), Training((0.01,), steps=3), 0, *rows[:3])
    assert short.status is Status.FINISHED


def test_a_wide_network_of_little_richness_has_the_errors_of_kernel_regression(rows):
    """Finite width is off by some m^(-1/2) = 3 %, descent by some 2 %: 10 % is asked."""
    levels = (0.5, 0.2)
    limit = lazy_errors(DATA, 0, 1, 4, 24, "relu", levels)["test"]
    path = train_network(Network(1000, 1e-3), Training(levels, precision="float64"), 5, *rows[:3])
    errors = at_levels(path.losses, error_of(path.outputs, rows[3], None), levels)
    np.testing.assert_allclose(errors, limit, rtol=0.1)
    assert path.kernel_change[-1] < 0.01


def test_the_lazy_limit_is_the_matrix_exponential(rows):
    x, y, test, truth = rows
    kernel, across = wf.limits.mean_ntk(x, "relu"), wf.limits.mean_ntk(test, "relu", x)
    fit = lambda t: (np.eye(len(y)) - expm(-np.asarray(kernel) * t)) @ y
    share = lambda t: np.sum((fit(t) - y) ** 2) / np.sum(y**2)
    time = brentq(lambda t: share(t) - 0.3, 0, 1e4)
    outputs = np.asarray(across) @ np.linalg.solve(np.asarray(kernel), fit(time))
    expected = np.mean((outputs - truth) ** 2)
    np.testing.assert_allclose(
        lazy_errors(DATA, 0, 1, 4, 24, "relu", (0.3,))["test"], [expected], rtol=1e-7
    )


def test_deep_networks_and_node_shares_train_too(rows):
    for network in (Network(16, depth=2), Network(16, scaling="zipf", share=0.2, tail=0.5)):
        path = train_network(network, Training((0.8,), steps=400), 0, *rows[:3])
        assert path.status is Status.BELOW


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (lambda: Network(width=0), "width"),
        (lambda: Network(richness=0.0), "richness"),
        (lambda: Network(scaling="mup"), "scaling"),
        (lambda: Network(tail=1.0), "tail"),
        (lambda: Training(levels=()), "levels"),
        (lambda: Training(levels=(0.1, 0.2)), "levels"),
        (lambda: Training(levels=(1.5,)), "levels"),
        (lambda: Training(dynamics="adam"), "dynamics"),
        (lambda: Training(rate=-1.0), "rate"),
    ],
)
def test_what_makes_no_sense_is_named(build, word):
    with pytest.raises(ValueError, match=f"`{word}`"):
        build()
