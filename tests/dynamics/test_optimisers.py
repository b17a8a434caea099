"""`Optax` against loops written by hand, its rates layer by layer, resuming; `Langevin` against its
stationary law.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import wideflow as wf
from wideflow.models.base import adaptive_rate_factors
from wideflow.training.checkpoint import AbstractCheckpointer

linen = pytest.importorskip("flax.linen")

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(10, 5)), RNG.normal(size=10)
DATA = wf.Dataset(X, Y)
PLAIN = wf.parametrisations.STANDARD.with_rate_exponent(0)


class Net(linen.Module):
    @linen.compact
    def __call__(self, x):
        for _ in range(2):
            x = jnp.tanh(linen.Dense(16, param_dtype=float)(x))
        return linen.Dense(1, param_dtype=float)(x)[:, 0]


@pytest.mark.parametrize(
    "transformation",
    [
        optax.sgd(0.02),
        optax.sgd(0.01, momentum=0.9, nesterov=True),
        optax.adam(3e-3),
        optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-2, 5, 20), weight_decay=0.1),
    ],
    ids=["sgd", "momentum", "adam", "adamw with a schedule"],
)
def test_steps_equal_flax_with_optax(transformation):
    net = Net()
    variables = net.init(jax.random.key(0), X)
    names = [f"Dense_{k}" for k in range(3)]
    weights = [variables["params"][name]["kernel"] for name in names]
    biases = [
        0.1 * jnp.arange(len(variables["params"][name]["bias"]), dtype=float) for name in names
    ]
    params = {"params": {n: {"kernel": w, "bias": b} for n, w, b in zip(names, weights, biases)}}
    deep = wf.Deep(wf.mlp(2, 16, "tanh", bias_std=1.0), 5, weights, biases, PLAIN)
    order = RNG.integers(0, 10, size=(12, 4))

    def loss(params, rows):
        return jnp.sum((net.apply(params, jnp.asarray(X)[rows]) - jnp.asarray(Y)[rows]) ** 2) / 2

    # Optax counts steps in 32 bit: a schedule compiled and one evaluated op by op differ by 1e-8
    @jax.jit
    def step(params, state, rows):
        update, state = transformation.update(jax.grad(loss)(params, rows), state, params)
        return optax.apply_updates(params, update), state

    state = transformation.init(params)
    for rows in order:
        params, state = step(params, state, rows)
    run = wf.train(deep, DATA, wf.Optax(transformation, batch=4, order=order), steps=12)
    for l, name in enumerate(names, 1):
        inside = params["params"][name]
        assert_allclose(getattr(run.model, f"weight_{l}"), inside["kernel"], rtol=0, atol=1e-12)
        assert_allclose(getattr(run.model, f"bias_{l}"), inside["bias"], rtol=0, atol=1e-12)


def test_sgd_and_optax_sgd_take_the_same_steps():
    net = wf.Deep.init(0, wf.mlp(2, 8, "tanh"), 5, "mean-field")
    own = wf.train(net, DATA, wf.SGD(0.01, batch=4), steps=7, key=3)
    other = wf.train(net, DATA, wf.Optax(optax.sgd(0.01), batch=4), steps=7, key=3)
    assert_allclose(other.table.loss, own.table.loss, rtol=1e-12)
    scaled = wf.train(net, DATA, wf.Optax(optax.sgd(1.0), batch=4, rate=0.01), steps=7, key=3)
    assert_allclose(scaled.table.loss, own.table.loss, rtol=1e-12)
    assert_allclose(scaled.table.time, own.table.time)


def test_one_step_of_adam_under_maximal_update():
    # the first Adam step is the gradient's sign (epsilon aside): every entry moves by rate x factor
    net = wf.Deep.init(0, wf.mlp(2, 64, "tanh"), 5, "maximal-update")
    moved = wf.train(net, DATA, wf.Optax(optax.adam(1e-3, eps=1e-30)), steps=1).model
    for l, factor in ((1, 64**-0.5), (2, 1 / 64), (3, 64**-0.5)):
        change = np.abs(getattr(moved, f"weight_{l}") - getattr(net, f"weight_{l}"))
        assert_allclose(change, 1e-3 * factor, rtol=1e-6)
    assert adaptive_rate_factors(wf.rescaled(net, alpha=2.0))["weight_2"] == pytest.approx(1 / 128)


@pytest.mark.parametrize(
    ("transformation", "kind"),
    [
        (optax.sgd(0.1), "sgd"),
        (optax.sgd(0.1, momentum=0.9), "sgd"),
        (optax.adam(1e-3), "adaptive"),
        (optax.lion(1e-3), "adaptive"),
        (optax.rmsprop(1e-3), "adaptive"),
        (optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-3, 10, 100)), "adaptive"),
        (optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3)), "adaptive"),
        (optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(1e-3)), "sgd"),
    ],
)
def test_the_kind_is_found_out(transformation, kind):
    assert wf.Optax(transformation).kind == kind


class Memory(AbstractCheckpointer):
    def __init__(self):
        self.arrays = {}

    def begun(self):
        return bool(self.arrays)

    def due(self, *, force=False):
        return True

    def load(self, fingerprint):
        return self.arrays.get(fingerprint)

    def save(self, fingerprint, arrays, *, force=False):
        self.arrays[fingerprint] = arrays


class InterruptedRunError(Exception):
    pass


def test_resumes_bit_for_bit_and_never_from_another_rate():
    net = wf.Deep.init(0, wf.mlp(1, 8, "tanh"), 5)

    def run(memory, rate, fail_after=None):
        def progress(done, total, loss):
            if fail_after is not None and done > fail_after:
                raise InterruptedRunError

        dynamics = wf.Optax(optax.adam(rate), batch=4)
        session = wf.Session(checkpointer=memory)
        return wf.train(net, DATA, dynamics, steps=20, every=5, progress=progress, session=session)

    whole, memory = run(None, 1e-2), Memory()
    with pytest.raises(InterruptedRunError):
        run(memory, 1e-2, fail_after=12)
    assert memory.arrays
    resumed = run(memory, 1e-2)
    assert_array_equal(resumed.table.loss, whole.table.loss)
    assert_array_equal(resumed.model.weight_1, whole.model.weight_1)
    other = run(memory, 2e-2)
    assert_array_equal(other.table.loss, run(None, 2e-2).table.loss)


def test_rates_in_one_program():
    net = wf.Deep.init(0, wf.mlp(1, 8, "tanh"), 5)
    rates = (1e-3, 1e-2)
    together = wf.train([net, net], DATA, [wf.Optax(ADAM, rate=r) for r in rates], steps=5)
    for k, rate in enumerate(rates):
        alone = wf.train(net, DATA, wf.Optax(optax.adam(rate)), steps=5)
        assert_allclose(together.table.loss[k], alone.table.loss, rtol=1e-10)


ADAM = optax.adam(1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wf.Optax(0.1), "`transformation` must be an Optax"),
        (lambda: wf.Optax(optax.sgd(0.1), rate=0.0), "`rate` must be positive"),
        (lambda: wf.Optax(optax.sgd(0.1), kind="adam"), "`kind` must be 'sgd' or 'adaptive'"),
        (lambda: wf.Optax(optax.scale(0.0)), "neither 1 nor 0"),
        (
            lambda: wf.train(
                wf.Deep.init(0, wf.mlp(1, 2), 5), DATA, wf.Optax(optax.sgd(0.1), batch=11), steps=1
            ),
            "must not exceed the 10 samples",
        ),
        (lambda: wf.Langevin(0.1, -1.0), "`temperature` must be positive"),
    ],
)
def test_wrong_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_langevin_on_a_quadratic():
    # one layer, orthogonal inputs x_i = sqrt(d l_i) e_i: L = sum_i l_i (w_i - w*_i)^2 / 2. Each w_i
    # is an AR(1) process with coefficient 1 - eta l_i and noise 2 eta T: stationary variance T / (l
    # (1 - eta l / 2)).
    curvatures, temperature, rate = np.array([1.0, 4.0]), 0.3, 0.2
    data = wf.Dataset(np.diag(np.sqrt(2 * curvatures)), np.sqrt(curvatures) * [1.0, -2.0])
    net = wf.Deep(wf.architecture.Dense(1), 2, [np.zeros((2, 1))])
    seeds = 64
    dynamics = wf.Langevin(rate, temperature)
    weights = lambda shot: shot.model.weight_1[:, 0]
    run = wf.train([net] * seeds, data, dynamics, steps=400, every=20, record=[weights])
    drawn = run.table["<lambda>"].values[
        :, 6:
    ]  # (seed, record, weight); by step 120 the start is forgotten
    expected = temperature / (curvatures * (1 - rate * curvatures / 2))
    count = drawn.shape[0] * drawn.shape[1]  # 20 steps apart: correlation below 0.8^20 = 0.01
    for i, (mean, variance) in enumerate(zip((1.0, -2.0), expected)):
        values = drawn[..., i].ravel()
        assert values.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / count))
        assert values.var() == pytest.approx(variance, abs=4 * variance * np.sqrt(2 / count))
