"""The dashed curves of deep networks: the networks that the theory speaks of are those that are
trained, and the curves are where wide ones go.
"""

import dataclasses

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow._core.activations import activation
from wideflow._core.architecture import Activate, Chain, Dense, mlp
from wideflow.experiments.deep_theory import MOST_ROWS, RICH, deep_theory, perceptron, scaled
from wideflow.experiments.training import EXPERIMENT, Settings, run as run_experiment
from wideflow.training.session import Session

KEY = jax.random.key(5)
DATA = wf.data.waves(KEY, 5, 1, 0.0, 1.0, 0.5)
SMALL = Settings(
    data="wave-1d",
    samples=5,
    noise=0.0,
    depth=2,
    activation="tanh",
    record=("all",),
    rate=0.02,
    steps=10,
    records=10,
)


def path(network, inputs, rate: float = 0.02) -> np.ndarray:
    data = wf.Dataset(inputs, DATA.targets)
    return wf.train(network, data, wf.GradientDescent(rate), steps=20, every=5).table.loss.values


@pytest.mark.parametrize("name", ["tanh", "relu"])
def test_a_spread_of_the_weights_is_a_scaled_activation_on_scaled_inputs(name):
    # s W phi(h) = W (s phi(h)) and s W x = W (s x): the same numbers, so the same path
    spread = 1.7
    wide = wf.Deep.init(KEY, mlp(2, 32, name, weight_std=spread), DATA.dimension, "mean-field")
    depth, act, scale = perceptron(wide)
    assert (depth, scale) == (2, spread)
    plain = wf.Deep.init(KEY, mlp(2, 32, act), DATA.dimension, "mean-field")
    inputs = np.asarray(DATA.inputs)
    assert_allclose(path(wide, inputs), path(plain, spread * inputs), rtol=1e-10)
    z = np.linspace(-2, 2, 9)
    slope = jax.vmap(jax.grad(lambda t: spread * activation(name).value(t)))(z + 0.01)
    assert_allclose(act.slope(z + 0.01), slope, rtol=1e-6)
    assert scaled(activation(name), spread) is act  # one object: its programs are found again


def test_maximal_update_and_mean_field_are_one_network():
    first, second = (wf.Deep.init(KEY, mlp(3, 24, "tanh"), DATA.dimension, name) for name in RICH)
    assert_allclose(path(first, DATA.inputs), path(second, DATA.inputs), rtol=1e-9)


def test_the_limit_of_ntk_is_where_a_wide_network_goes():
    table = run_experiment(
        dataclasses.replace(SMALL, width=1500, scaling="ntk", steps=40), KEY, Session()
    )
    assert_allclose(table.limit_loss[0], table.loss[0], rtol=1e-12)  # from this network's start
    assert_allclose(table.limit_loss, table.loss, rtol=0.1)
    assert float(table.loss[-1]) < 0.8 * float(table.loss[0])
    assert_allclose(table.limit_spectrum[-2:], table.kernel_spectrum[0, -2:], rtol=0.1)


def test_the_field_theory_is_where_a_wide_network_goes():
    settings = dataclasses.replace(SMALL, width=1000, scaling="mean-field", deviation=1.5)
    shown = []
    session = Session(on_record=lambda so_far: shown.append(EXPERIMENT.draw(so_far())))
    table = run_experiment(settings, KEY, session)
    assert_allclose(
        table.limit_time, table.time, rtol=1e-12
    )  # few steps: the theory takes the run's own
    slack = (table.limit_high - table.limit_low).values / 2  # two standard errors
    width = 1000**-0.5  # a single network's outputs differ by its root
    target = np.sqrt(2 * table.loss.values)
    assert np.all(
        np.abs(table.loss.values - table.limit_loss.values) <= 1.5 * slack + 3 * width * target
    )
    assert float(table.loss[-1]) < 0.8 * float(table.loss[0])
    loss = EXPERIMENT.draw(table).panels[1]
    assert loss.note == "infinite width: field theory, with two standard errors"
    assert [m.label for m in loss.marks] == [m.label for m in shown[0].panels[1].marks]
    assert np.isnan(shown[0].panels[1].marks[2].y).all()  # the first picture does not wait for it


@pytest.mark.parametrize(
    ("samples", "steps", "said"),
    [
        (60, 10, f"too expensive for 60 samples: at most {MOST_ROWS // 9}"),
        (20, 100_000, "is affordable up to time"),
        (40, 30, "field theory up to time"),
    ],
)
def test_what_is_too_dear_is_said(samples, steps, said):
    data = wf.data.waves(KEY, samples, 1, 0.0, 1.0, 0.5)
    net = wf.Deep.init(KEY, mlp(2, 16, "tanh"), data.dimension, "maximal-update")
    top = np.linalg.eigvalsh(np.asarray(wf.observables.tangent_gram(net, data.inputs)))[-1]
    rate = 0.25 * 2 / top * 0.999  # one step of the run is one of the theory
    theory = deep_theory(net, data, rate * np.linspace(0, steps, 11), rate, 1.0, KEY)
    assert said in theory.note
    assert len(theory.times) * samples <= MOST_ROWS


@pytest.mark.parametrize("scaling", ["standard", "ntk"])
def test_only_parametrisations_with_a_theory_have_one(scaling):
    net = wf.Deep.init(KEY, mlp(2, 8, "tanh"), DATA.dimension, scaling)
    theory = deep_theory(net, DATA, np.linspace(0, 1, 3), 0.1, 1.0, KEY)
    assert (theory is None) == (scaling == "standard")


def test_a_theory_that_refuses_says_why_and_ends_no_run():
    net = wf.Deep.init(KEY, mlp(2, 8, "tanh"), DATA.dimension, "mean-field")
    theory = deep_theory(net, DATA, np.linspace(0, 1, 3), 0.1, 1.0, KEY)

    def refuse():
        raise ValueError("`memory` allows 1 GiB.")

    found = dataclasses.replace(theory, compute=refuse).predict()
    assert found.limit_time.attrs["note"] == "infinite width: `memory` allows 1 GiB."
    assert np.isnan(found.limit_loss).all()


def test_a_network_that_ends_in_an_activation_has_no_field_theory():
    # its outputs are no linear readout of the last features
    ended = Chain(Dense(8), Activate("tanh"), Dense(1), Activate("tanh"))
    assert perceptron(wf.Deep.init(0, ended, 3, "mean-field")) is None
