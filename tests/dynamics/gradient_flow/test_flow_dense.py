"""Records between the solver's steps: the formula under a drifting Gram matrix, and that records
cut no step.
"""

import functools

import diffrax
import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

import wideflow as wf
from wideflow._core.trees import parameters, with_parameters
from wideflow.dynamics.gradient_flow.commutator_free import integrals, mixing
from wideflow.dynamics.gradient_flow.matrix_functions import phis


@pytest.mark.parametrize("p", [0.0, 1e-5, 9e-4, 2e-3, 0.7, 30.0, 1e7])
@pytest.mark.parametrize("q", [0.0, 1e-6, 0.4, 0.7, 25.0, 1e6])
def test_mixing_is_its_integral(p, q):
    def integrand(v):
        y = (1 - v) * p
        return v * (1 - v) * mpmath.exp(-v * q) * (-mpmath.expm1(-y) / y if y else 1)

    with mpmath.workdps(30):
        exact = mpmath.quad(integrand, [0, 1e-7, 1e-5, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-3, 1 - 1e-6, 1])
    of_q = phis(jnp.asarray(q), 4)
    assert_allclose(float(mixing(jnp.asarray(p), jnp.asarray(q), of_q)), float(exact), rtol=1e-6)


def test_integrals_are_those_of_the_linear_equation_to_second_order_in_the_drift():
    rng = np.random.default_rng(0)
    values, start = np.array([0.0, 0.3, 4.0, 60.0]), rng.standard_normal(4)
    rows = rng.standard_normal((4, 4))
    errors = []
    for size in (0.02, 0.01):
        drift = size * (rows + rows.T)

        def field(u, y, drift=drift):
            g = y[:4]
            return np.concatenate([-(values * g + u * drift @ g), g])

        exact = solve_ivp(
            field, (0, 1.5), np.r_[start, np.zeros(4)], rtol=1e-11, atol=1e-13, method="LSODA"
        ).y[4:, -1]
        first, _ = integrals(*map(jnp.asarray, (values, drift, start, 1.5)))
        errors.append(np.max(np.abs(first - exact)))
    assert errors[0] < 1e-2
    assert 3.5 < errors[0] / errors[1] < 4.5


def _problem(activation="tanh", outputs=None):
    rng = np.random.default_rng(0)
    shape = (6,) if outputs is None else (6, outputs)
    data = wf.Dataset(rng.standard_normal((6, 3)), rng.standard_normal(shape))
    net = wf.Shallow.init(
        jax.random.key(1), features=3, width=12, activation=activation, outputs=outputs
    )
    return with_parameters(net, {"weights": 1.5 * net.weights}), data


@pytest.mark.parametrize(
    ("method", "activation"),
    [("gram", "tanh"), ("auto", "tanh"), ("tsit5", "tanh")],
)
def test_records_cut_no_step(method, activation):
    net, data = _problem(activation)
    flow = wf.GradientFlow(1e-4, method=method)
    ends = np.arange(1, 11) * 4.0
    seldom = wf.train(net, data, flow, time=40.0, every=ends)
    often = wf.train(net, data, flow, time=40.0, every=0.1)
    assert often.table.sizes["step"] == 401
    np.testing.assert_array_equal(often.table.step, np.arange(401))
    assert int(often.table.solver_steps[-1]) == int(often.state.steps)
    assert int(often.state.steps) == int(seldom.state.steps) < 200
    assert_allclose(often.table.loss[40::40], seldom.table.loss[1:], rtol=1e-10)


@pytest.mark.parametrize(("method", "activation"), [("gram", "relu"), ("krylov", "tanh")])
def test_records_end_steps_whose_inside_is_unknown(method, activation):
    # the path then depends on the records, but by no more than the tolerance lets every step be off
    net, data = _problem(activation)
    flow = wf.GradientFlow(1e-4, method=method)
    seldom = wf.train(net, data, flow, time=40.0, every=[40.0])
    often = wf.train(net, data, flow, time=40.0, every=1.0)
    assert int(often.state.steps) >= 40
    assert np.all(np.diff(often.table.loss) < 0)
    assert_allclose(often.table.loss[-1], seldom.table.loss[-1], rtol=5e-3)


def _reference(net, data, times):
    """Losses by Diffrax's Dopri8 at a tight tolerance, from the gradient by autodiff."""

    def loss(weights):
        outputs = with_parameters(net, {"weights": weights}).outputs(data.inputs)
        return jnp.sum((outputs - data.targets) ** 2) / 2

    with jax.enable_x64(True):
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda _, w, __: -jax.grad(loss)(w)),
            diffrax.Dopri8(),
            0.0,
            times[-1],
            1e-3,
            parameters(net)["weights"],
            saveat=diffrax.SaveAt(ts=jnp.asarray(times)),
            stepsize_controller=diffrax.PIDController(rtol=1e-12, atol=1e-13),
            max_steps=100_000,
        )
        return np.asarray(jax.vmap(loss)(found.ys))


@functools.cache
def _losses_along(outputs):
    return _reference(*_problem(outputs=outputs), np.linspace(0.0, 20.0, 201))


@pytest.mark.parametrize(("method", "outputs"), [("gram", None), ("gram", 2), ("tsit5", None)])
def test_records_inside_steps_are_those_of_a_tight_reference(method, outputs):
    # at two tolerances: what lies between the steps converges as the steps do
    net, data = _problem(outputs=outputs)
    exact, errors = _losses_along(outputs), []
    for tolerance in (1e-3, 1e-6):
        run = wf.train(net, data, wf.GradientFlow(tolerance, method=method), time=20.0, every=0.1)
        assert int(run.state.steps) < 150  # so most records lie inside steps
        errors.append(np.max(np.abs(run.table.loss / exact - 1)))
    assert errors[0] < 2e-2, errors
    assert errors[1] < 1e-4, errors
    assert errors[1] < errors[0] / 20, errors
