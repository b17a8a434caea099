"""Steps with the whole Hessian: solves against the dense Hessian by autodiff, orders against tight
references, and when they are taken.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

import wideflow as wf
from wideflow._core.trees import parameters, with_parameters
from wideflow.dynamics.gradient_flow.exponential_integrator import (
    ExponentialIntegrator,
    can_use_rodas,
)
from wideflow.dynamics.gradient_flow.jacobian import jacobian_of
from wideflow.dynamics.gradient_flow.linearisation import GramProblem
from wideflow.dynamics.gradient_flow.matrix_functions import Dense, Krylov
from wideflow.dynamics.gradient_flow.rodas import Rodas, largest_norm, shifted_solver

LOSSES = (wf.losses.HalfSumSquares(), wf.losses.MeanSquares())


def _problem(outputs=None, loss=LOSSES[0], samples=5, features=3, width=6, **kwargs):
    rng = np.random.default_rng(0)
    shape = (samples,) if outputs is None else (samples, outputs)
    data = wf.Dataset(rng.standard_normal((samples, features)), 3 * rng.standard_normal(shape))
    net = wf.Shallow.init(
        jax.random.key(1),
        features=features,
        width=width,
        outputs=outputs,
        **{"activation": "tanh"} | kwargs,
    )
    operator = jacobian_of(net, net.embed(data.inputs))
    return net, data, GramProblem(operator, jnp.asarray(data.targets), loss, Dense())


def _value(net, data, loss):
    shape = net.weights.shape

    def value(flat):
        moved = with_parameters(net, {"weights": jnp.asarray(flat).reshape(shape)})
        return loss(moved.outputs(data.inputs), data.targets)

    return value


def _flow(net, data, loss, times):
    """SciPy's DOP853 on the gradient by autodiff."""
    (factor,) = net.rate_factors().values()
    field = jax.jit(lambda w: -factor * jax.grad(_value(net, data, loss))(w))
    start, tight = np.asarray(net.weights).ravel(), {"rtol": 1e-11, "atol": 1e-13}
    solution = solve_ivp(
        lambda _, w: np.asarray(field(w)),
        (0, times[-1]),
        start,
        method="DOP853",
        t_eval=times,
        **tight,
    )
    return solution.y.T.reshape(len(times), *net.weights.shape)


CASES = {
    "one output": _problem(),
    "three outputs, mean of squares": _problem(3, LOSSES[1]),
    "mean field": _problem(scaling=wf.scalings.MeanField(), activation="softplus"),
    "zipf": _problem(scaling=wf.scalings.Zipf(0.4, 0.6), activation="erf"),
}


linearise = eqx.filter_jit(lambda problem, theta: problem.linearise(theta))
solve = eqx.filter_jit(lambda problem, here, shift, v: shifted_solver(problem, here, shift)(v))
step = eqx.filter_jit(lambda problem, start, h: Rodas()(problem, start, h))


@pytest.mark.parametrize("case", CASES)
def test_a_solve_is_that_with_the_dense_hessian(case):
    net, data, problem = CASES[case]
    here = linearise(problem, parameters(net))
    flat = net.weights.ravel()
    (factor,) = net.rate_factors().values()
    hessian = factor * jax.jit(jax.hessian(_value(net, data, problem.loss)))(flat)
    shift = 0.1 - min(
        0.0, float(jnp.linalg.eigvalsh(hessian)[0]) - largest_norm(problem.operator, here)
    )
    v = jax.random.normal(jax.random.key(3), net.weights.shape)
    exact = jnp.linalg.solve(shift * jnp.eye(flat.size) + hessian, v.ravel())
    assert_allclose(solve(problem, here, shift, v).ravel(), exact, rtol=1e-9, atol=1e-12)


def test_a_neuron_that_leaves_counts_up_to_four_fifths_of_the_shift():
    net, data, problem = CASES["one output"]
    here, shape, shift = linearise(problem, parameters(net)), net.weights.shape, jnp.asarray(0.01)
    hessian = jax.jit(jax.hessian(_value(net, data, problem.loss)))(net.weights.ravel())
    outputs = lambda w: with_parameters(net, {"weights": w}).outputs(data.inputs)
    jacobian = jax.jit(jax.jacobian(outputs))(net.weights).reshape(len(data), -1)
    own = np.array(hessian - jacobian.T @ jacobian).reshape(*shape, *shape)
    clipped = np.zeros_like(own)
    for j in range(net.width):
        values, vectors = np.linalg.eigh(own[:, j, :, j])
        clipped[:, j, :, j] = vectors * np.maximum(values, -0.8 * shift) @ vectors.T
    assert np.abs(clipped - own).max() > 0.1
    whole = (
        shift * np.eye(hessian.shape[0]) + jacobian.T @ jacobian + clipped.reshape(hessian.shape)
    )
    v = jax.random.normal(jax.random.key(3), shape)
    exact = np.linalg.solve(whole, np.ravel(v))
    assert_allclose(solve(problem, here, shift, v).ravel(), exact, rtol=1e-8)


@pytest.mark.parametrize("case", CASES)
def test_orders(case):
    # local errors: h^5 for the step of order four, h^4 for its estimate (order three) and for the
    # path inside
    net, data, problem = CASES[case]
    start, errors = linearise(problem, parameters(net)), []
    base = 0.15 / float(jnp.linalg.eigvalsh(start.gram)[-1] * start.hessian.kappa)
    sizes = [base, base / 2, base / 4]
    times = sorted(part * h for h in sizes for part in (0.4, 1.0))
    reference = dict(zip(times, _flow(net, data, problem.loss, times), strict=True))
    for h in sizes:
        inner, exact = reference[0.4 * h], reference[h]
        result = step(problem, start, jnp.asarray(h))
        path = Rodas().interpolate(problem, start, result.end, result.interpolant, h, 0.4 * h)[
            "weights"
        ]
        errors.append(
            [
                float(jnp.max(jnp.abs(result.end.theta["weights"] - exact))),
                float(jnp.max(jnp.abs(result.end.cotangent - result.predicted_gradient))),
                float(jnp.max(jnp.abs(path - inner))),
            ]
        )
    order = np.log2(np.divide(*np.array(errors)[-2:]))
    assert order[0] > 4.3, (order, errors)
    assert np.all(order[1:] > 3.3), (order, errors)


def test_failures_at_stiff_blocks_bring_in_the_whole_hessian():
    net, _, problem = CASES["one output"]
    here, integrator = (
        linearise(problem, parameters(net)),
        ExponentialIntegrator(1e-4, kinked=False),
    )
    limit, yes, no = 1 / largest_norm(problem.operator, here), jnp.asarray(True), jnp.asarray(False)
    assert int(integrator._step(problem, here, limit, no).evaluations) == 3
    assert int(integrator._step(problem, here, limit, yes).evaluations) == 7
    assert not integrator._blames_blocks(problem, here, 0.9 * limit, yes)
    assert integrator._blames_blocks(problem, here, 1.1 * limit, yes)
    assert not integrator._blames_blocks(problem, here, 1.1 * limit, no)


def test_only_where_the_hessian_is_known_and_affordable():
    _, _, problem = CASES["one output"]
    assert can_use_rodas(problem)
    rest = (problem.operator, problem.targets)
    assert not can_use_rodas(GramProblem(*rest, problem.loss, Krylov(4)))
    assert not can_use_rodas(GramProblem(*rest, wf.losses.Huber(), Dense()))
    wide = _problem(samples=50, features=400, width=2_000)[2]  # 4e7 entries of a Jacobian
    assert not can_use_rodas(wide)


def test_neurons_that_settle_fast_do_not_limit_the_step():
    # few neurons under a large residual: their own curvature is far above what is left of the Gram
    # matrix
    net, data, problem = _problem(samples=12, features=2, width=8)
    times = [1.0, 30.0, 300.0]
    run = wf.train(net, data, wf.GradientFlow(1e-4, method="gram"), time=times[-1], every=times)
    exact = [
        _value(net, data, problem.loss)(w.ravel()) for w in _flow(net, data, problem.loss, times)
    ]
    assert_allclose(run.table["loss"][1:], exact, rtol=1e-3)
    assert (
        int(run.state.evaluations) > 3 * int(run.state.exponential.attempts) + 1
    )  # some steps took the whole Hessian
    pace = times[-1] * float(
        largest_norm(problem.operator, problem.linearise(parameters(run.model)))
    )
    assert int(run.state.steps) < pace, pace  # explicit methods take at least half as many
