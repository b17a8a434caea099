"""Steps with the whole Hessian: solves against the dense Hessian by autodiff, orders against tight references, and when they are taken."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

import wideflow as wf
from wideflow._core.trees import parameters, with_parameters
from wideflow.dynamics.gradient_flow.either_step import EitherStep, can_curve
from wideflow.dynamics.gradient_flow.hessian_blocks import shifted_solver, steepest
from wideflow.dynamics.gradient_flow.jacobian import tangents_of
from wideflow.dynamics.gradient_flow.linearisation import GramProblem
from wideflow.dynamics.gradient_flow.matrix_functions import Dense, Krylov
from wideflow.dynamics.gradient_flow.rodas import CurvedStep

LOSSES = (wf.losses.HalfSumSquares(), wf.losses.MeanSquares())


def _problem(outputs=None, loss=LOSSES[0], samples=5, features=3, width=6, **kwargs):
    rng = np.random.default_rng(0)
    shape = (samples,) if outputs is None else (samples, outputs)
    data = wf.Dataset(rng.standard_normal((samples, features)), 3 * rng.standard_normal(shape))
    net = wf.Shallow.init(
        jax.random.key(1), features=features, width=width, outputs=outputs,
        **{"activation": "tanh"} | kwargs,
    )  # fmt: skip
    tangents = tangents_of(net, net.embed(data.inputs))
    return net, data, GramProblem(tangents, jnp.asarray(data.targets), loss, Dense())


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
    found = solve_ivp(lambda _, w: np.asarray(field(w)), (0, times[-1]), start, method="DOP853", t_eval=times, **tight)  # fmt: skip
    return found.y.T.reshape(len(times), *net.weights.shape)


CASES = {
    "one output": _problem(),
    "three outputs, mean of squares": _problem(3, LOSSES[1]),
    "mean field": _problem(scaling=wf.scalings.MeanField(), activation="softplus"),
    "zipf": _problem(scaling=wf.scalings.Zipf(0.4, 0.6), activation="erf"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_solve_is_that_with_the_dense_hessian(case):
    net, data, problem = CASES[case]
    place = problem.place(parameters(net))
    flat = net.weights.ravel()
    (factor,) = net.rate_factors().values()
    hessian = factor * jax.hessian(_value(net, data, problem.loss))(flat)
    shift = 0.1 - min(0.0, float(jnp.linalg.eigvalsh(hessian)[0]) - steepest(problem.tangents, place))  # fmt: skip
    v = jax.random.normal(jax.random.key(3), net.weights.shape)
    exact = jnp.linalg.solve(shift * jnp.eye(flat.size) + hessian, v.ravel())
    assert_allclose(shifted_solver(problem, place, shift)(v).ravel(), exact, rtol=1e-9, atol=1e-12)


def test_a_neuron_that_leaves_counts_up_to_four_fifths_of_the_shift():
    net, data, problem = CASES["one output"]
    place, shape, shift = problem.place(parameters(net)), net.weights.shape, 0.01
    hessian = jax.hessian(_value(net, data, problem.loss))(net.weights.ravel())
    outputs = lambda w: with_parameters(net, {"weights": w}).outputs(data.inputs)
    jacobian = jax.jacobian(outputs)(net.weights).reshape(len(data), -1)
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
    assert_allclose(shifted_solver(problem, place, shift)(v).ravel(), exact, rtol=1e-8)


@pytest.mark.parametrize("case", CASES)
def test_orders(case):
    # local errors: h^5 for the step of order four, h^4 for its estimate (order three) and for the path inside
    net, data, problem = CASES[case]
    start, step, errors = problem.place(parameters(net)), CurvedStep(), []
    base = 0.15 / float(jnp.linalg.eigvalsh(start.gram)[-1] * start.curvature.kappa)
    for h in (base, base / 2, base / 4):
        inner, exact = _flow(net, data, problem.loss, [0.4 * h, h])
        taken = step(problem, start, h)
        path = step.between(problem, start, taken, h, 0.4 * h)["weights"]
        errors.append(
            [
                float(jnp.max(jnp.abs(taken.place.theta["weights"] - exact))),
                float(jnp.max(jnp.abs(taken.place.cotangent - taken.meant))),
                float(jnp.max(jnp.abs(path - inner))),
            ]
        )
    order = np.log2(np.divide(*np.array(errors)[-2:]))
    assert order[0] > 4.3, (order, errors)
    assert np.all(order[1:] > 3.3), (order, errors)


def test_the_curvature_of_the_neurons_decides():
    net, _, problem = CASES["one output"]
    place = problem.place(parameters(net))
    limit = 1 / steepest(problem.tangents, place)
    smooth, curved = (EitherStep(jnp.asarray(flag)) for flag in (False, True))
    assert int(smooth(problem, place, limit).passes) == 3
    assert int(curved(problem, place, limit).passes) == 7
    assert not smooth.should_curve(problem, place, 0.9 * limit)
    assert smooth.should_curve(problem, place, 1.1 * limit)
    assert not curved.should_curve(problem, place, 1.1 * limit)


def test_only_where_the_hessian_is_known_and_affordable():
    _, _, problem = CASES["one output"]
    assert can_curve(problem)
    rest = (problem.tangents, problem.targets)
    assert not can_curve(GramProblem(*rest, problem.loss, Krylov(4)))
    assert not can_curve(GramProblem(*rest, wf.losses.Huber(), Dense()))
    wide = _problem(samples=50, features=400, width=20_000)[2]  # 4e8 entries of a Jacobian
    assert not can_curve(wide)


def test_neurons_that_settle_fast_do_not_limit_the_step():
    # few neurons under a large residual: their own curvature is far above what is left of the Gram matrix
    net, data, problem = _problem(samples=12, features=2, width=8)
    times = [1.0, 30.0, 300.0]
    run = wf.train(net, data, wf.GradientFlow(1e-4, method="gram"), time=times[-1], every=times)
    exact = [_value(net, data, problem.loss)(w.ravel()) for w in _flow(net, data, problem.loss, times)]  # fmt: skip
    assert_allclose(run.table["loss"][1:], exact, rtol=1e-3)
    assert (
        int(run.state.evaluations) > 3 * int(run.state.gram.tried) + len(times) + 1
    )  # some steps were curved
    pace = times[-1] * float(steepest(problem.tangents, problem.place(parameters(run.model))))
    assert int(run.state.steps) < pace, pace  # explicit methods take at least half as many
