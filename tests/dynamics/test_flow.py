"""Gradient flow: closed forms, order, tight references, kinks, stopping, and every path through the
options.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

import wideflow as wf
from wideflow._core.trees import parameters, with_parameters
from wideflow.dynamics import flow as flow_module
from wideflow.dynamics.gradient_flow.commutator_free import CommutatorFree
from wideflow.dynamics.gradient_flow.jacobian import jacobian_of
from wideflow.dynamics.gradient_flow.linearisation import GramProblem
from wideflow.dynamics.gradient_flow.matrix_functions import Dense


def _data(samples=6, features=3, outputs=None, seed=0):
    rng = np.random.default_rng(seed)
    shape = (samples,) if outputs is None else (samples, outputs)
    return wf.Dataset(rng.standard_normal((samples, features)), rng.standard_normal(shape))


def _net(activation="tanh", width=12, features=3, seed=1, **kwargs):
    return wf.Shallow.init(
        jax.random.key(seed), features=features, width=width, activation=activation, **kwargs
    )


def _reference(model, data, loss, time):
    """SciPy's DOP853 on the gradient by autodiff of the loss of the outputs."""
    theta, factors = parameters(model), model.rate_factors()
    (name,) = theta

    @jax.jit
    def field(flat):
        def value(weights):
            return loss(with_parameters(model, {name: weights}).outputs(data.inputs), data.targets)

        return -factors[name] * jax.grad(value)(flat.reshape(theta[name].shape)).ravel()

    solution = solve_ivp(
        lambda _, w: np.asarray(field(w)),
        (0, time),
        np.asarray(theta[name]).ravel(),
        method="DOP853",
        rtol=1e-11,
        atol=1e-13,
    )
    return solution.y[:, -1].reshape(theta[name].shape)


def test_a_network_linear_in_its_weights_follows_the_matrix_exponential_at_any_step():
    # u = Phi W (s A): Theta is constant, so u(t) - y = exp(-t Theta)(u(0) - y), with Theta from the
    # definition
    net, data = _net("linear", features=5), _data(samples=4, features=5)
    phi = np.asarray(data.inputs) / math.sqrt(5)
    theta = phi @ phi.T  # sum of s_j^2 A_j^2 is 1
    values, vectors = np.linalg.eigh(theta)
    residual = np.asarray(net.outputs(data.inputs) - data.targets)
    for time in (1e-2, 1.0, 30.0):
        run = wf.train(net, data, wf.GradientFlow(method="gram"), time=time, every=[time])
        exact = vectors @ (np.exp(-time * values) * (vectors.T @ residual))
        assert_allclose(run.model.outputs(data.inputs) - data.targets, exact, rtol=1e-9, atol=1e-12)
    assert int(run.state.steps) < 12  # from 0.5/rate on, eight times longer each


def test_the_order_is_three():
    # the local error of a method of order p falls as h^(p+1): by 16 for p = 3 when the step is
    # halved
    net, data = _net(width=5), _data(samples=4)
    net = with_parameters(net, {"weights": 1.5 * net.weights})
    targets = jnp.asarray(data.targets)
    problem = GramProblem(
        jacobian_of(net, net.embed(data.inputs)), targets, wf.losses.HalfSumSquares(), Dense()
    )
    start = problem.linearise(parameters(net))
    errors = []
    for h in (0.1, 0.05, 0.025):
        exact = _reference(net, data, wf.losses.HalfSumSquares(), h)
        errors.append(
            float(
                jnp.max(jnp.abs(CommutatorFree()(problem, start, h).end.theta["weights"] - exact))
            )
        )
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:])) - 1
    assert np.all(orders > 2.8), (orders, errors)


CASES = {
    "half sum": (_net(), _data(), wf.losses.HalfSumSquares()),
    "mean": (_net(), _data(), wf.losses.MeanSquares()),
    "half mean, two outputs": (_net(outputs=2), _data(outputs=2), wf.losses.HalfMeanSquares()),
    "mean field": (
        _net("erf", scaling=wf.scalings.MeanField()),
        _data(),
        wf.losses.HalfSumSquares(),
    ),
    "zipf": (
        _net("softplus", scaling=wf.scalings.Zipf(0.3, 0.6)),
        _data(),
        wf.losses.HalfSumSquares(),
    ),
    "more features than samples": (_net(features=9), _data(features=9), wf.losses.HalfSumSquares()),
}


@pytest.mark.parametrize(
    ("case", "method"),
    [
        *((case, "gram") for case in CASES),
        ("half sum", "krylov"),
        ("zipf", "auto"),
        ("mean field", "tsit5"),
        ("half sum", "dopri8"),
        ("half mean, two outputs", "kvaerno5"),
    ],
)
def test_all_methods_give_the_flow_of_a_tight_reference(case, method):
    net, data, loss = CASES[case]
    exact = _reference(net, data, loss, 6.0)
    run = wf.train(
        net, data, wf.GradientFlow(tolerance=1e-7, method=method), time=6.0, every=[1.0], loss=loss
    )
    assert_allclose(run.model.weights, exact, atol=1e-4)
    assert run.status is wf.Status.FINISHED


def test_cross_entropy_goes_by_the_local_quadratic_model():
    labels = wf.data.one_hot(np.array([0, 1, 2, 1, 0, 2]))
    data = wf.Dataset(_data().inputs, labels)
    net, loss = _net(outputs=3), wf.losses.CrossEntropy()
    exact = _reference(net, data, loss, 20.0)
    errors = []
    for tolerance in (1e-4, 1e-6):
        run = wf.train(
            net,
            data,
            wf.GradientFlow(tolerance=tolerance, method="gram"),
            time=20.0,
            every=[20.0],
            loss=loss,
        )
        errors.append(float(jnp.max(jnp.abs(run.model.weights - exact))))
    assert errors[1] < 2e-4
    assert errors[1] < errors[0] / 5


@pytest.mark.parametrize(
    ("loss", "outputs", "method"),
    [
        (wf.losses.HalfSumSquares(), 2, "krylov"),
        (wf.losses.LogCosh(), 2, "krylov"),
    ],
)
def test_other_losses_and_several_outputs_by_both_actions(loss, outputs, method):
    net, data = _net(outputs=outputs), _data(outputs=outputs)
    exact = _reference(net, data, loss, 4.0)
    flow = wf.GradientFlow(tolerance=1e-7, method=method)
    run = wf.train(net, data, flow, time=4.0, every=[4.0], loss=loss)
    assert_allclose(run.model.weights, exact, atol=1e-4)


@pytest.mark.parametrize(
    ("method", "time"), [("gram", 200.0), pytest.param("auto", 1e4, marks=pytest.mark.slow)]
)
def test_relu_on_real_data_neither_stalls_nor_crawls(data_folder, method, time):
    # noisy targets drive pairs onto their kinks for good; an explicit solver would take 1e5 steps
    # and more to time 1e4
    rows = wf.data.split(wf.data.uci("concrete"), (0.06, 0.94))[0].standardised()
    net = _net("relu", width=200, features=8, scaling=wf.scalings.Zipf(0.5, 0.5))
    run = wf.train(net, rows, wf.GradientFlow(method=method), time=time, every=wf.Logarithmic(8))
    assert run.status.good
    assert int(run.state.steps) < 1500
    losses = run.table.loss.values
    assert np.all(np.diff(losses) < 1e-3 * losses[:-1])
    assert losses[-1] < 1e-2 * losses[0]


def test_a_model_without_structure_goes_by_autodiff():
    net = wf.Homogeneous.init(jax.random.key(0), features=3, width=5, activation="linear")
    data = _data()
    exact = _reference(net, data, wf.losses.HalfSumSquares(), 0.3)
    run = wf.train(net, data, wf.GradientFlow(tolerance=1e-7, method="gram"), time=0.3, every=[0.3])
    assert_allclose(run.model.weights, exact, atol=1e-4)


@pytest.mark.parametrize(("tolerance", "accuracy"), [(3e-3, 5e-3), (1e-4, 5e-4)])
def test_a_stuck_preactivation_slides_along_its_kink(tolerance, accuracy):
    # one neuron, two samples. x_1 is pushed off by both sides: Filippov's solution keeps z_1 = 0
    # and moves w orthogonally to x_1, so that r_2' = -|phi_2 minus its part along phi_1|^2 r_2 =
    # -(0.8^2 / 2) r_2 with phi = x / sqrt(2).
    data = wf.Dataset([[1.0, 0.0], [0.6, 0.8]], [-2.0, 2.0])
    second = 0.5 / (0.8 / math.sqrt(2))
    net = wf.Shallow([[0.0, second]], [1.0], activation="relu")
    run = wf.train(net, data, wf.GradientFlow(tolerance, method="gram"), time=8.0, every=[2.0, 4.0])
    times = run.table.time.values
    exact = 2.0 + (1.5 * np.exp(-0.32 * times)) ** 2 / 2
    assert_allclose(run.table.loss, exact, rtol=accuracy)
    assert int(run.state.steps) < 400
    assert abs(float(run.model.weights[0, 0])) < 0.05


def test_relu_flow_agrees_with_descent_in_small_steps():
    data = wf.data.sphere_sines(jax.random.key(0), samples=15, features=6)
    net = _net("relu", width=60, features=6, scaling=wf.scalings.Zipf(0.5, 0.7))
    flow = wf.train(net, data, wf.GradientFlow(method="gram"), time=200.0, every=wf.Logarithmic(2))
    fine = wf.train(net, data, wf.GradientDescent(0.02), time=200.0, every=[10_000])
    assert flow.status is wf.Status.FINISHED
    assert_allclose(float(flow.table.loss[-1]), float(fine.table.loss[-1]), rtol=0.02)
    assert int(flow.state.evaluations) < 10_000  # what the fine descent takes


def test_stiff_flow_reaches_very_long_times_in_few_steps():
    # nearly equal inputs: condition of the Gram matrix above 1e6; an explicit solver would need
    # ~1e8 steps
    rng = np.random.default_rng(3)
    base = rng.standard_normal((10, 4))
    inputs = np.concatenate([base, base + 1e-3 * rng.standard_normal((10, 4))])
    data = wf.Dataset(inputs, np.sin(inputs @ np.array([1.0, -0.5, 0.3, 0.8])))
    run = wf.train(
        _net(width=200, features=4),
        data,
        wf.GradientFlow(tolerance=1e-3),
        time=1e8,
        every=wf.Logarithmic(1),
    )
    assert run.status.good
    assert int(run.state.evaluations) < 3000
    losses = run.table.loss.values
    assert np.all(np.diff(losses) <= 1e-12)
    assert losses[-1] < 0.1 * losses[0]


def test_interpolation_ends_as_stationary():
    run = wf.train(
        _net(width=300), _data(samples=4), wf.GradientFlow(), time=1e12, every=[1e6, 1e9]
    )
    assert run.status is wf.Status.STATIONARY
    assert float(run.table.loss[-1]) < 1e-20


def test_a_dead_network_is_stationary():
    net = wf.Shallow([[-1.0, -1.0], [-2.0, -1.0]], [1.0, -1.0], activation="relu")
    data = wf.Dataset([[1.0, 0.5], [0.3, 2.0]], [1.0, -1.0])
    run = wf.train(net, data, wf.GradientFlow(method="gram"), time=5.0, every=[1.0])
    assert run.status is wf.Status.STATIONARY
    assert_allclose(run.model.hidden, net.hidden)


def test_too_few_steps_are_a_stall():
    run = wf.train(
        _net(),
        _data(),
        wf.GradientFlow(tolerance=1e-10, method="gram", max_steps=2),
        time=5.0,
        every=[5.0],
    )
    assert run.status is wf.Status.STALLED


@pytest.mark.parametrize("method", ["gram", "auto"])
def test_several_together_are_the_same_as_each_alone(method):
    nets, data = [_net(seed=s) for s in (1, 2)], _data()
    dynamics = wf.GradientFlow(tolerance=1e-6, method=method)
    together = wf.train(nets, data, dynamics, time=40.0, every=[1.0])
    for i, net in enumerate(nets):
        alone = wf.train(net, data, dynamics, time=40.0, every=[1.0])
        assert_allclose(together.table.loss[i], alone.table.loss, rtol=1e-8)


@pytest.mark.parametrize("method", ["gram", "tsit5"])
def test_single_precision_weights_stay_single(method):
    flow = wf.GradientFlow(tolerance=1e-4, method=method)
    run = wf.train(_net(), _data(), flow, time=2.0, precision="float32")
    assert run.model.weights.dtype == jnp.float32


def test_a_population_has_no_gram_matrix():
    population = wf.populations.GaussianAbsTeacher([0.5, 0.5])
    net = wf.Homogeneous.init(jax.random.key(0), features=2, width=4)
    with pytest.raises(ValueError, match="`method` 'gram' needs training points"):
        wf.train(net, population, wf.GradientFlow(method="gram"), time=1.0)
    run = wf.train(net, population, wf.GradientFlow(tolerance=1e-5), time=0.5, every=[0.5])
    assert float(run.table.loss[-1]) < float(run.table.loss[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tolerance": 0.0}, "`tolerance` must be positive"),
        ({"method": "rk4"}, "`method` must be"),
        ({"depth": 1}, "`depth`"),
        ({"max_steps": 0}, "`max_steps`"),
    ],
)
def test_bad_options_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        wf.GradientFlow(**arguments)


def test_auto_counts_lanczos_by_its_products(monkeypatch):
    # above the entries that are decomposed a stage costs `depth` products, not entries^3; counted
    # as a decomposition, the explicit solver would keep this problem for 45,000 attempts
    monkeypatch.setattr(flow_module, "DENSE_ENTRIES", 20)
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((60, 2)) * [30.0, 0.3]
    data = wf.Dataset(inputs, np.sin(inputs[:, 0]))
    net = _net("tanh", width=3, features=2, scaling=wf.scalings.NTK())
    flow = wf.GradientFlow(tolerance=1e-3, depth=5)
    run = wf.train(net, data, flow, time=1e2, every=[1e2])
    assert bool(run.state.switched)
    assert int(run.state.diffrax.attempts) < 1_000


def test_the_old_name_of_max_steps_still_works():
    with pytest.warns(DeprecationWarning, match="`max_steps`"):
        assert wf.GradientFlow(most_steps=7).max_steps == 7
