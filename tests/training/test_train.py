"""The loop against hand-written NumPy trajectories, closed forms, and itself run otherwise."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.training.checkpoint import AbstractCheckpointer
from wideflow.training.ensemble import Ensemble
from wideflow.training.recorder import record_times
from wideflow.training.session import Session

RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(6, 3)), RNG.normal(size=6)
W, A = RNG.normal(size=(8, 3)), RNG.choice([-1.0, 1.0], size=8)
DATA = wf.Dataset(X, Y)
CALL = Ensemble.call


def numpy_descent(scaling, sigma, slope, rate, steps, factor=1.0):
    """caron2023, algorithm A3, in plain NumPy: losses before each update and the last weights."""
    s, p = np.asarray(scaling.node_scales(8)), scaling.hidden_scale(8, 3)
    w, losses = W.copy(), []
    for step in range(steps + 1):
        z = X @ w.T * p
        r = sigma(z) @ (s * A) - Y
        losses.append(0.5 * np.sum(r**2))
        if step < steps:
            w = w - rate * factor * p * ((slope(z) * r[:, None] * (s * A)).T @ X)
    return np.array(losses), w


@pytest.mark.parametrize(
    ("scaling", "factor"), [(wf.scalings.Zipf(0.5, 0.7), 1.0), (wf.scalings.MeanField(), 8.0)]
)
def test_descent_replays_a_numpy_loop(scaling, factor):
    losses, w = numpy_descent(scaling, np.tanh, lambda z: 1 - np.tanh(z) ** 2, 0.2, 30, factor)
    run = wf.train(
        wf.Shallow(W, A, scaling, "tanh"), DATA, wf.GradientDescent(0.2), steps=30, every=1
    )
    assert_allclose(run.table.loss, losses, rtol=1e-12)
    assert_allclose(run.model.hidden, w, rtol=1e-11)
    assert_allclose(run.table.time, 0.2 * np.arange(31), rtol=1e-12)
    assert run.status is wf.Status.FINISHED


def test_mean_loss_is_the_sum_loss_at_another_rate():
    # a step of rate r on the mean of squares is a step of rate 2 r / n on the half sum
    net = wf.Shallow(W, A)
    mean = wf.train(net, DATA, wf.GradientDescent(0.3), steps=20, loss=wf.losses.MeanSquares())
    half = wf.train(net, DATA, wf.GradientDescent(0.3 * 2 / 6), steps=20)
    assert_allclose(mean.model.weights, half.model.weights, rtol=1e-13)
    assert_allclose(mean.table.loss * 3, half.table.loss, rtol=1e-12)


def test_linear_network_follows_the_closed_form():
    # sigma = id: u(t) obeys du/dt = -Theta (u - y) with constant Theta, so descent contracts by I -
    # eta Theta
    net = wf.Shallow(W, A, activation="linear")
    theta = np.asarray(wf.observables.tangent_gram(net, X))
    u0 = np.asarray(net.outputs(X))
    run = wf.train(net, DATA, wf.GradientDescent(0.05), steps=40)
    expected = Y + np.linalg.matrix_power(np.eye(6) - 0.05 * theta, 40) @ (u0 - Y)
    assert_allclose(run.model.outputs(X), expected, rtol=1e-11)


def test_flow_of_a_linear_network_is_the_matrix_exponential():
    from scipy.linalg import expm

    net = wf.Shallow(W, A, activation="linear")
    theta = np.asarray(wf.observables.tangent_gram(net, X))
    u0 = np.asarray(net.outputs(X))
    run = wf.train(net, DATA, wf.GradientFlow(tolerance=1e-10), time=3.0)
    assert_allclose(run.model.outputs(X), Y + expm(-3 * theta) @ (u0 - Y), rtol=1e-7)


def test_descent_converges_to_flow_at_first_order():
    net = wf.Shallow(W, A, activation="tanh")
    flow = wf.train(net, DATA, wf.GradientFlow(1e-11, "tsit5"), time=4.0).table.loss[-1]
    errors = [
        float(wf.train(net, DATA, wf.GradientDescent(rate), time=4.0).table.loss[-1] - flow)
        for rate in (0.1, 0.05, 0.025)
    ]
    assert_allclose(np.array(errors[:-1]) / errors[1:], 2.0, rtol=0.1)


@pytest.mark.parametrize("shared", [True, False], ids=["one dataset", "own datasets"])
def test_members_run_together_as_they_run_alone(shared):
    keys = [jax.random.key(i) for i in range(3)]
    nets = [
        wf.Shallow.init(k, features=3, width=8, scaling=wf.scalings.Zipf(g, 0.6))
        for k, g in zip(keys, (1.0, 0.5, 0.0), strict=True)
    ]
    datas = DATA if shared else [wf.Dataset(X, Y + i) for i in range(3)]
    rates = [wf.GradientDescent(r) for r in (0.1, 0.2, 0.3)]
    record = [wf.observables.KernelMinEigenvalue(), wf.observables.WeightMovement()]
    together = wf.train(nets, datas, rates, steps=25, record=record, axis="setting")
    for i, net in enumerate(nets):
        alone = wf.train(net, datas if shared else datas[i], rates[i], steps=25, record=record)
        assert_allclose(together.model[i].weights, alone.model.weights, rtol=1e-12)
        assert_allclose(together.table.kernel_gap[i], alone.table.kernel_gap, rtol=1e-9, atol=1e-14)
        assert together.model[i].scaling == net.scaling
    assert together.table.weight_movement.dims == ("setting", "step", "width")
    assert together.table.time.dims == ("setting", "step")


def test_recording_schedules():
    net = wf.Shallow(W, A)
    run = wf.train(
        net, DATA, wf.GradientDescent(0.1), steps=1000, every=wf.Logarithmic(per_decade=2)
    )
    assert list(run.table.step.values[:3]) == [0, 1, 3]
    assert run.table.step.values[-1] == 1000
    run = wf.train(net, DATA, wf.GradientDescent(0.1), steps=10, every=[2, 5])
    assert list(run.table.step.values) == [0, 2, 5, 10]
    flow = wf.train(net, DATA, wf.GradientFlow(method="tsit5"), time=1.0, every=0.25)
    assert_allclose(flow.table.time, [0, 0.25, 0.5, 0.75, 1.0])


@pytest.mark.parametrize(
    ("every", "time"),
    [(0.1, 0.3), (None, 7.0), (wf.Logarithmic(10), 2000.0), (wf.Logarithmic(10), 50.0), (2.0, 0.3)],
)
def test_the_last_time_is_recorded_once(every, time):
    # 3 x 0.1, 100 x 0.07 and 10^log10(2000) are a little more or less than the end itself
    times = record_times(every, time)
    assert times[0] == 0.0
    assert times[-1] == time
    assert np.all(np.diff(times) > 1e-9 * time)
    assert len(times) == {0.3: 4 if every == 0.1 else 2, 7.0: 101, 2000.0: 35, 50.0: 18}[time]


def test_recording_does_not_change_the_path():
    net = wf.Shallow(W, A)
    often = wf.train(net, DATA, wf.GradientDescent(0.1), steps=60, every=7)
    seldom = wf.train(net, DATA, wf.GradientDescent(0.1), steps=60, every=60)
    assert np.array_equal(often.model.weights, seldom.model.weights)


def test_divergence_is_a_status():
    run = wf.train(wf.Shallow(W, A), DATA, wf.GradientDescent(1e4), steps=200, every=10)
    assert run.status is wf.Status.DIVERGED
    assert "diverged" in run.table.attrs["status"]
    assert run.table.sizes["step"] < 21


def test_early_stop_at_a_loss_level():
    net = wf.Shallow(W, A, activation="linear")
    run = wf.train(net, DATA, wf.GradientDescent(0.05), steps=10_000, every=50, stop_below=1.5)
    assert run.status in (wf.Status.BELOW, wf.Status.FINISHED)
    level = float(run.table.loss[-1])
    assert (level < 1.5) == (run.status is wf.Status.BELOW)
    assert run.status is wf.Status.BELOW
    assert float(run.table.loss[-2]) >= 1.5


class Memory(AbstractCheckpointer):
    """Keeps checkpoints in a dictionary and fails after a few, like a killed process."""

    def __init__(self, most=10**9):
        self.kept, self.most, self.saves = {}, most, 0

    def begun(self):
        return bool(self.kept)

    def due(self, *, force=False):
        return True

    def load(self, fingerprint):
        return self.kept.get(fingerprint)

    def save(self, fingerprint, arrays, *, force=False):
        if self.saves == self.most:
            raise KeyboardInterrupt
        self.kept[fingerprint] = {name: np.copy(value) for name, value in arrays.items()}
        self.saves += 1


@pytest.mark.parametrize(
    "dynamics", [wf.GradientDescent(0.1), wf.SGD(0.1, batch=4)], ids=["descent", "sgd"]
)
def test_an_interrupted_run_resumes_bit_for_bit(dynamics):
    net, memory = wf.Shallow(W, A), Memory(most=3)
    settings = dict(steps=50, every=10, record=[wf.observables.KernelMinEigenvalue()])
    whole = wf.train(net, DATA, dynamics, **settings)
    with pytest.raises(KeyboardInterrupt):
        wf.train(net, DATA, dynamics, **settings, session=Session(checkpointer=memory))
    memory.most = 10**9
    resumed = wf.train(net, DATA, dynamics, **settings, session=Session(checkpointer=memory))
    assert memory.saves == 5
    assert np.array_equal(whole.model.weights, resumed.model.weights)
    assert whole.table.equals(resumed.table.assign_attrs(whole.table.attrs))


def test_sgd_with_given_batches_replays_numpy():
    order = np.array([[0, 1], [4, 2], [3, 5], [1, 1]])
    s, w = 8**-0.5, W.copy()
    for batch in order:
        z = X[batch] @ w.T / 3**0.5
        r = np.maximum(z, 0) @ (s * A) - Y[batch]
        w = w - 0.3 / 3**0.5 * (((z > 0) * r[:, None] * (s * A)).T @ X[batch])
    run = wf.train(wf.Shallow(W, A), DATA, wf.SGD(0.3, batch=2, order=order), steps=4)
    assert_allclose(run.model.hidden, w, rtol=1e-12)


@pytest.mark.parametrize(
    ("order", "length", "message"),
    [
        ([[0, 1]], {"steps": 2}, "`order` must have a row for each of the 2 `steps`, got 1"),
        ([[0, 1]], {"time": 0.5}, "`order` must have a row for each of the 2 `steps`, got 1"),
        ([[0, 6]], {"steps": 1}, r"`order` must hold sample indices in 0\.\.5, got 0\.\.6"),
        ([[0, -7]], {"steps": 1}, r"`order` must hold sample indices in 0\.\.5, got -7\.\.0"),
        ([0, 1], {"steps": 1}, "`order`"),
        ([[0, 1, 2]], {"steps": 1}, "`order`"),
        ([[0.5, 1.5]], {"steps": 1}, "`order` must hold whole numbers"),
    ],
)
def test_sgd_refuses_batches_that_it_cannot_replay(order, length, message):
    # JAX clips an index that is too large: these runs repeated the last row, or took another
    # sample, without a word
    with pytest.raises(ValueError, match=message):
        wf.train(wf.Shallow(W, A), DATA, wf.SGD(0.3, batch=2, order=order), **length)


def test_sgd_passes_over_every_sample_once():
    # with batch 4 of 6 a pass is two steps: the sum of both gradients at a tiny rate is the full
    # one
    net = wf.Shallow(W, A, activation="tanh")
    run = wf.train(net, DATA, wf.SGD(1e-7, batch=4), steps=2)
    full = wf.train(net, DATA, wf.GradientDescent(1e-7), steps=1)
    moved, expected = (np.asarray(r.model.weights - net.weights) for r in (run, full))
    assert_allclose(moved, expected, rtol=1e-5, atol=1e-14)


def test_cross_entropy_sgd_replays_numpy():
    labels = np.array([0, 2, 1, 1, 0, 2])
    outputs = RNG.choice([-1.0, 1.0], size=(3, 8))
    data = wf.Dataset(X, wf.data.one_hot(labels))
    s, w = 8**-0.5, W.copy()
    order = np.array([[0, 1, 2], [3, 4, 5], [5, 0, 3]])
    for batch in order:
        z = X[batch] @ w.T / 3**0.5
        logits = np.maximum(z, 0) @ (s * outputs).T
        q = np.exp(logits) / np.exp(logits).sum(1, keepdims=True) - np.eye(3)[labels[batch]]
        w = w - 0.5 / 3**0.5 * (((z > 0) * (q / 3 @ (s * outputs))).T @ X[batch])
    run = wf.train(
        wf.Shallow(W, outputs),
        data,
        wf.SGD(0.5, batch=3, order=order),
        steps=3,
        loss=wf.losses.CrossEntropy(),
    )
    assert_allclose(run.model.hidden, w, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda n: wf.train(n, DATA, wf.GradientDescent(0.1)), "exactly one of `steps` and `time`"),
        (lambda n: wf.train(n, DATA, wf.GradientFlow(), steps=3), "a flow runs for `time"),
        (lambda n: wf.train(n, X, wf.GradientDescent(0.1), steps=1), "wideflow.Dataset"),
        (
            lambda n: wf.GradientDescent(-1.0),
            "`rate` must be positive and finite, got -1.0. For its limit use",
        ),
        (
            lambda n: wf.train(n, DATA, wf.SGD(0.1, batch=7), steps=1),
            "`batch` must not exceed the 6 samples",
        ),
        (
            lambda n: wf.train(n, DATA, wf.GradientDescent(0.1), steps=-1),
            "`steps` must be a whole number",
        ),
        (lambda n: wf.train(n, DATA, wf.GradientDescent(0.1), steps=3, every=0), "`every` must be"),
        (
            lambda n: wf.train(
                n, DATA, wf.GradientDescent(0.1), steps=1, record=[wf.observables.TestRisk()]
            ),
            "give `test=`",
        ),
        (
            lambda n: wf.train(n, wf.Dataset(X, np.ones((6, 2))), wf.GradientDescent(0.1), steps=1),
            "do not fit outputs",
        ),
        (
            lambda n: wf.train(
                [n, wf.Shallow(W[:4], A[:4])], DATA, wf.GradientDescent(0.1), steps=1
            ),
            "cannot run together",
        ),
        (
            lambda n: wf.train(n, [DATA, DATA], wf.GradientDescent(0.1), steps=1),
            "there is one model",
        ),
        (lambda n: wf.GradientFlow(method="euler"), "`method` must be"),
    ],
)
def test_combinations_that_make_no_sense_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(wf.Shallow(W, A))


def test_attributes_state_the_conventions():
    table = wf.train(
        wf.Shallow(W, A, wf.scalings.MeanField()), DATA, wf.GradientDescent(0.1), steps=1
    ).table
    assert "half sum of squares" in table.attrs["loss"]
    assert "8" in table.attrs["neuron_factor"]
    assert jnp.isfinite(table.attrs["seconds"])


def test_labels_do_not_travel_between_runs_of_one_program():
    for scaling in (wf.scalings.Zipf(0.3, 0.6), wf.scalings.Zipf(0.8, 0.6)):
        run = wf.train(wf.Shallow(W, A, scaling), DATA, wf.GradientDescent(0.1), steps=2)
        assert run.model.scaling == run.start.scaling == scaling


GAMMA = lambda s: s.model.scaling.gamma


def test_the_name_of_a_scaling_is_not_known_inside_a_compiled_run():
    # one program serves all scalings, so that a label read inside it could only be another
    # network's
    for scaling in (wf.scalings.Zipf(0.2, 0.6), wf.scalings.Zipf(0.9, 0.6)):
        net = wf.Shallow(W, A, scaling)
        with pytest.raises(ValueError, match="`scaling` is not known inside `train`"):
            wf.train(net, DATA, wf.GradientDescent(0.1), steps=2, record=[GAMMA])


def test_numbers_of_a_scaling_are_each_network_s_own():
    scalings = [wf.scalings.Zipf(g, 0.6) for g in (0.1, 0.5, 0.9)]
    nets = [wf.Shallow(W, A, scaling) for scaling in scalings]
    first = lambda s: s.model.scales[0]
    together = wf.train(nets, DATA, wf.GradientDescent(0.1), steps=1, record=[first])
    expected = [float(scaling.node_scales(len(W))[0]) for scaling in scalings]
    assert_allclose(together.table["<lambda>"][:, 0], expected, rtol=1e-15)
    assert [net.scaling for net in together.model] == scalings


def test_a_user_s_own_compiled_step_keeps_the_scaling():
    step = eqx.filter_jit(lambda net: net)
    for scaling in (wf.scalings.NTK(), wf.scalings.Zipf(0.3, 0.6), wf.scalings.NTK()):
        assert step(wf.Shallow(W, A, scaling)).scaling == scaling


def test_a_run_knows_what_it_is():
    nets = [wf.Shallow(W, A), wf.Shallow(-W, A)]
    loss, dynamics = wf.losses.MeanSquares(), wf.GradientDescent(0.1)
    run = wf.train(nets, DATA, dynamics, steps=2, loss=loss)
    assert (run.data, run.dynamics, run.loss) == (DATA, dynamics, loss)
    alone = wf.train(nets[1], DATA, dynamics, steps=2, loss=loss)
    assert_allclose(run.member(1).table.loss, alone.table.loss, rtol=1e-14)
    assert alone.table.starts in run.table.starts
    assert alone.table.data == run.table.data
    with pytest.raises(ValueError, match="`index` must lie in"):
        run.member(2)


def test_a_watcher_sees_every_record_and_may_end_the_run():
    seen = []

    class EnoughError(Exception):
        pass

    def watcher(table):
        seen.append(table())
        if len(seen) == 4:
            raise EnoughError

    net = wf.Shallow(W, A, wf.scalings.NTK(), "tanh")
    alone = wf.train(net, DATA, wf.GradientDescent(0.2), steps=10, every=2)
    session = Session(on_record=watcher)
    with pytest.raises(EnoughError):
        wf.train(net, DATA, wf.GradientDescent(0.2), steps=10, every=2, session=session)
    assert [len(table.step) for table in seen] == [1, 2, 3, 4]
    assert_allclose(seen[-1].loss, alone.table.loss[:4], rtol=0)


@pytest.mark.parametrize("shared", [True, False])
def test_members_in_turn_are_the_members_alone(monkeypatch, shared):
    """One after the other inside one program, bit for bit as in runs of their own."""
    monkeypatch.setattr(
        "wideflow.training.ensemble.CACHE", 3 * 6 * 8 * 8 - 1
    )  # members x samples x nodes x bytes
    nets = [wf.Shallow(W + i, A, wf.scalings.Zipf(0.3 * i, 0.5), "tanh") for i in range(3)]
    datas = DATA if shared else [wf.Dataset(X, Y + i) for i in range(3)]
    rates = [wf.GradientDescent(0.05 * (i + 1)) for i in range(3)]
    both = wf.train(nets, datas, rates, steps=40, every=10)
    for i, net in enumerate(nets):
        alone = wf.train(net, DATA if shared else datas[i], rates[i], steps=40, every=10)
        assert_allclose(both.model[i].hidden, alone.model.hidden, rtol=0)
        assert both.model[i].scaling == net.scaling
    called = []
    monkeypatch.setattr(
        Ensemble, "call", lambda *args: called.append(args[1].__name__) or CALL(*args)
    )
    wf.train(nets, datas, rates, steps=5)
    assert "_many_steps" not in called
    monkeypatch.setattr("wideflow.training.ensemble.CACHE", 3 * 6 * 8 * 8)
    wf.train(nets, datas, rates, steps=5)
    assert "_many_steps" in called


@pytest.mark.parametrize(
    "observable",
    [
        lambda snapshot: np.linalg.norm(snapshot.model.weights),
        lambda snapshot: float(snapshot.time),
        lambda snapshot: 1.0 if snapshot.model.weights[0, 0] > 0 else 0.0,
    ],
    ids=["NumPy", "float", "if"],
)
def test_an_observable_that_leaves_the_compiled_run_is_told_to_use_jax(observable):
    with pytest.raises(ValueError, match=r"written with `jax\.numpy`"):
        wf.train(
            wf.Shallow.init(0, features=3, width=4),
            DATA,
            wf.GradientDescent(0.1),
            steps=1,
            record=[observable],
        )


def _own_model(names, factors):
    class Own(wf.AbstractModel):
        a: jax.Array
        trained = names

        def embed(self, inputs):
            return inputs

        def respond(self, features):
            return features @ self.a

        def rate_factors(self):
            return factors

        def pullback(self, features):
            return wf.models.pullback_by_autodiff(self, features)

    return Own(np.ones(DATA.inputs.shape[1]))


@pytest.mark.parametrize(
    ("names", "factors", "message"),
    [
        ((), {"a": 1.0}, "Own must name the fields that are trained"),
        (("b",), {"b": 1.0}, "Own names 'b' in `trained`"),
        (("a",), {}, r"Own must give a number for a in `rate_factors\(\)`"),
    ],
)
def test_a_model_of_one_s_own_that_does_not_fit_itself_is_refused(names, factors, message):
    with pytest.raises(ValueError, match=message):
        wf.train(_own_model(names, factors), DATA, wf.GradientDescent(0.1), steps=1)


def test_an_observable_that_cannot_be_read_is_named():
    teacher = wf.populations.GaussianAbsTeacher(np.full(4, 0.25))
    net = wf.Homogeneous.init(0, features=4, width=6)
    record = [wf.observables.KernelMinEigenvalue()]
    with pytest.raises(ValueError, match="needs training points") as caught:
        wf.train(net, teacher, wf.GradientDescent(0.1), steps=1, record=record)
    assert "It is 'kernel_gap' in `record`." in caught.value.__notes__
