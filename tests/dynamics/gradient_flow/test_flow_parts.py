"""The parts of the exponential flow: phi functions, Jacobians and Gram matrices, Lanczos,
curvature, slopes at kinks.
"""

import functools
import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import expm, null_space

import wideflow as wf
from wideflow._core.trees import parameters, with_parameters
from wideflow.dynamics.gradient_flow import filippov, jacobian as jacobian_module
from wideflow.dynamics.gradient_flow.filippov import (
    Filippov,
    SlidingJacobian,
    SlidingPoint,
    active_constraints,
    mean_slopes,
)
from wideflow.dynamics.gradient_flow.jacobian import jacobian_of
from wideflow.dynamics.gradient_flow.linearisation import GramProblem, exponentials, output_hessian
from wideflow.dynamics.gradient_flow.matrix_functions import Dense, Krylov, phi1, phi2


@pytest.mark.parametrize("x", [0.0, 1e-12, 1e-5, 0.03, 0.0999, 0.1, 2.5, 40.0, 1e9])
def test_phi_functions_are_those_of_mpmath(x):
    with mpmath.workdps(50):
        exact1 = (1 - mpmath.exp(-mpmath.mpf(x))) / x if x else mpmath.mpf(1)
        exact2 = (1 - exact1) / x if x else mpmath.mpf(1) / 2
    assert_allclose(float(phi1(jnp.asarray(x))), float(exact1), rtol=1e-14)
    assert_allclose(float(phi2(jnp.asarray(x))), float(exact2), rtol=1e-13)


def _models():
    key = jax.random.key(1)
    yield "one output", wf.Shallow.init(key, features=3, width=7, activation="tanh")
    yield "three outputs", wf.Shallow.init(key, features=3, width=7, outputs=3, activation="tanh")
    yield (
        "mean field",
        wf.Shallow.init(
            key, features=3, width=7, scaling=wf.scalings.MeanField(), activation="erf"
        ),
    )
    yield "by autodiff", wf.Homogeneous.init(key, features=3, width=4, activation="abs")


@pytest.mark.parametrize("model", [pytest.param(m, id=name) for name, m in _models()])
def test_pull_push_and_gram_are_the_jacobians(model):
    inputs = jax.random.normal(jax.random.key(2), (5, 3))
    features, theta = model.embed(inputs), parameters(model)
    operator = jacobian_of(model, features)
    outputs, point = operator.linearise(theta)
    assert_allclose(outputs, model.outputs(inputs), rtol=1e-13)
    outputs_of = lambda p: with_parameters(model, p).outputs(inputs)
    whole = jax.jit(jax.jacobian(outputs_of))(theta)["weights"]
    jacobian = whole.reshape(outputs.size, -1)
    factor = model.rate_factors()["weights"]
    v = jax.random.normal(jax.random.key(3), outputs.shape)
    pulled = operator.vjp(point, v)["weights"]
    assert_allclose(pulled.ravel(), factor * (v.ravel() @ jacobian), rtol=1e-11, atol=1e-13)
    pushed = operator.jvp(point, {"weights": pulled})
    assert_allclose(pushed.ravel(), jacobian @ pulled.ravel(), rtol=1e-11, atol=1e-13)
    assert_allclose(operator.gram(point), factor * jacobian @ jacobian.T, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("rank", [2, 6])
def test_lanczos_agrees_with_the_eigen_decomposition_also_when_it_ends_early(rank):
    rows = jax.random.normal(jax.random.key(4), (6, rank))
    matrix, v = rows @ rows.T, jnp.arange(1.0, 7.0)
    functions = [lambda x: jnp.exp(-x), lambda x: phi1(3 * x)]
    exact = Dense()(matrix)(v, functions)
    found = Krylov(6)(lambda w: matrix @ w)(v, functions)
    for result, witness in zip(found, exact, strict=True):
        assert_allclose(result, witness, atol=1e-12)


def test_lanczos_grows_until_nothing_is_missing():
    # eigenvalues 0.1, 0.2, ... 30: a stiff exponential needs more dimensions than an easy one, and
    # neither all 300
    values, v = jnp.arange(1, 301) / 10, jnp.ones(300)

    @functools.partial(jax.jit, static_argnums=0)
    def decayed(depth, span):
        return Krylov(depth)(lambda w: values * w)(v, [lambda x: jnp.exp(-span * x)])[0]

    for span, most in ((0.01, 20), (1.0, 60), (30.0, 200)):
        found = decayed(300, span)
        assert_allclose(found, jnp.exp(-span * values), atol=1e-9)
        assert_allclose(found, decayed(most, span), atol=1e-15)


def test_lanczos_of_an_eigenvector_and_of_zero():
    matrix = jnp.diag(jnp.array([3.0, 1.0, 0.0]))
    for v in (jnp.array([0.0, 2.0, 0.0]), jnp.zeros(3)):
        (result,) = Krylov(3)(lambda w: matrix @ w)(v, [lambda x: jnp.exp(-x)])
        assert_allclose(result, math.exp(-1) * v, atol=1e-15)


def test_curvature_of_the_squares_is_their_factor():
    u, y = jnp.ones((4, 2)), jnp.zeros((4, 2))
    for loss, factor in (
        (wf.losses.HalfSumSquares(), 1),
        (wf.losses.MeanSquares(), 2 / 8),
        (wf.losses.HalfMeanSquares(), 1 / 4),
    ):
        assert_allclose(output_hessian(loss, u, y).kappa, factor)


def test_curvature_of_cross_entropy_is_its_hessian():
    u = jax.random.normal(jax.random.key(5), (3, 4))
    y = jnp.eye(4)[jnp.array([0, 2, 2])]
    loss = wf.losses.CrossEntropy()
    hessian = jax.jit(jax.hessian(lambda v: loss(v.reshape(3, 4), y)))(u.ravel())
    root = output_hessian(loss, u, y)
    assert_allclose(root.congruence(jnp.eye(12)), hessian, atol=1e-14)
    v = jax.random.normal(jax.random.key(6), (3, 4))
    assert_allclose(root.sqrt(root.sqrt(v)).ravel(), hessian @ v.ravel(), atol=1e-14)


@pytest.mark.parametrize("loss", [wf.losses.MeanSquares(), wf.losses.CrossEntropy()])
@pytest.mark.parametrize("action", [Dense(), Krylov(8)])
def test_a_forced_cotangent_is_that_of_the_matrix_exponential(loss, action):
    # (g, its integral, f) obey one linear system, whose exponential SciPy takes
    net = wf.Shallow.init(jax.random.key(1), features=3, width=5, outputs=2, activation="tanh")
    features = net.embed(jax.random.normal(jax.random.key(2), (4, 3)))
    targets = jnp.eye(2)[jnp.array([0, 1, 1, 0])]
    problem = GramProblem(jacobian_of(net, features), targets, loss, action)
    here = problem.linearise({"weights": net.weights})
    forcing = jax.random.normal(jax.random.key(3), (4, 2))
    gram = problem.operator.gram(here.jacobian)
    decay = np.stack([here.hessian.apply(row.reshape(4, 2)).ravel() for row in gram], axis=1)
    one, zero = np.eye(8), np.zeros((8, 8))
    system = np.block([[-decay, zero, one], [one, zero, zero], [zero, zero, zero]])
    start = np.concatenate([here.cotangent.ravel(), np.zeros(8), forcing.ravel()])
    sizes = (0.3, 5.0)
    found = exponentials(problem, (1.0,), (here,), here.cotangent, sizes, forcing)
    for size, (integral, after) in zip(sizes, found, strict=True):
        exact = expm(size * system) @ start
        assert_allclose(after.ravel(), exact[:8], rtol=1e-8, atol=1e-10)
        assert_allclose(integral.ravel(), exact[8:16], rtol=1e-8, atol=1e-10)


def _euler(z, rest, own, low, high, steps=200_000):
    """The mean slope along dz = (rest + s own) dt with s jumping at 0, by many small steps."""
    total = 0.0
    for _ in range(steps):
        s = high if z > 0 else low
        total += s
        z += (rest + s * own) / steps
    return total / steps, z


@pytest.mark.parametrize(
    ("z", "rest", "own"),
    [
        (0.5, 0.3, -0.2),
        (0.5, -0.3, -0.7),
        (0.2, 0.4, -1.5),
        (-0.3, 0.9, -1.6),
        (-0.3, 0.9, 0.5),
        (-0.3, -0.9, 0.5),
    ],
)
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 1.0)])
def test_mean_slopes_are_those_of_many_small_steps(z, rest, own, low, high):
    # stays, crosses, slides from above, slides from below, crosses upwards, stays below
    first = high if z > 0 else low
    arrays = (jnp.full((1, 1), a) for a in (z, first, own, rest + first * own))
    mean, _ = mean_slopes(*arrays, jnp.asarray(low), jnp.asarray(high))
    witness, _ = _euler(z, rest, own, low, high, steps=20_000)
    assert_allclose(float(mean[0, 0]), witness, atol=5e-4)


@pytest.mark.parametrize("width", [5, 8])  # 8: constraints in blocks of 2
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_held_network_moves_in_the_complement_of_what_holds_it(outputs, width):
    # pairs that slide are constraints z_ij = 0; the Gram matrix under constraints, neuron by
    # neuron, from SciPy's null spaces
    rng = np.random.default_rng(3)
    inputs, sliding = rng.standard_normal((6, 4)), rng.random((6, width)) < 0.3
    inputs[5] = inputs[0] - 2 * inputs[1]  # adds no direction where both others are held
    sliding[:, 0], sliding[[0, 1, 5], 1], sliding[:, 2] = True, True, False
    weights = rng.standard_normal((outputs, width)) if outputs > 1 else rng.standard_normal(width)
    net = wf.Shallow(rng.standard_normal((width, 4)), weights, activation="relu")
    features = net.embed(inputs)
    mean = jnp.asarray(rng.random((6, width)))
    constraints = jax.jit(active_constraints)(features, jnp.asarray(sliding))
    operator, point = (
        SlidingJacobian(jacobian_of(net, features)),
        SlidingPoint(mean, mean, constraints),
    )
    factor, mixed = (
        operator.unconstrained.factor,
        np.asarray(operator.unconstrained.mixed).reshape(outputs, width),
    )
    exact = np.zeros((6, outputs, 6, outputs))
    for j in range(width):
        free = null_space(np.asarray(features)[sliding[:, j]]) if sliding[:, j].any() else np.eye(4)
        way = np.asarray(mean)[:, [j]] * (np.asarray(features) @ free)
        exact += factor * np.einsum("ia,na,k,l->iknl", way, way, mixed[:, j], mixed[:, j])
    exact = exact.reshape(6 * outputs, -1)
    gram = eqx.filter_jit(lambda operator, point: operator.gram(point))
    assert_allclose(gram(operator, point), exact, atol=1e-12)
    v = jnp.asarray(rng.standard_normal((6, outputs) if outputs > 1 else 6))
    pulled = operator.vjp(point, v)
    assert_allclose(jnp.where(sliding, features @ pulled["weights"], 0.0), 0.0, atol=1e-12)
    assert_allclose(operator.jvp(point, pulled).ravel(), exact @ v.ravel(), atol=1e-12)


def test_every_activation_with_kinks_has_its_kink_at_zero():
    table = wf.activations.TABLE
    kinks = set(
        itertools.chain.from_iterable(wf.activations.activation(name).kinks for name in table)
    )
    assert kinks == {0.0}


@eqx.filter_jit
def _step(problem, theta, size):
    return Filippov()(problem, problem.linearise(theta), size)


@pytest.mark.parametrize(("seed", "accuracy"), [(0, 7e-3), (1, 5e-5), (7, 5e-4)])
def test_a_neuron_is_followed_through_its_kinks(seed, accuracy):
    # so light that the residual stands still: its polygon through 11, 3 and 2 kinks against Euler
    # in 40,000 steps. Slopes that were averaged over the step in one piece miss its end by 5e-2,
    # 4e-3 and 9e-3 of the way.
    rng = np.random.default_rng(seed)
    light, steps = 1e-4, 40_000
    inputs, targets = rng.standard_normal((20, 3)), rng.standard_normal(20)
    net = wf.Shallow(rng.standard_normal((1, 3)), [light], activation="relu")
    x, size = np.asarray(net.embed(inputs)), 0.5 / light
    problem = GramProblem(
        SlidingJacobian(jacobian_of(net, jnp.asarray(x))),
        jnp.asarray(targets),
        wf.losses.HalfSumSquares(),
        Dense(),
    )
    result = _step(problem, {"weights": net.weights}, size)
    start = w = np.asarray(net.weights[:, 0])
    for _ in range(steps):
        z = x @ w
        residual = light * np.maximum(z, 0) - targets
        w = w - size / steps * light * (x.T @ (residual * (z > 0)))
    found = np.asarray(result.end.theta["weights"][:, 0])
    assert np.linalg.norm(found - w) < accuracy * np.linalg.norm(w - start)


@pytest.mark.parametrize("outputs", [None, 2])
def test_neurons_may_be_followed_in_blocks(monkeypatch, outputs):
    # 37 neurons in 4 blocks, the last one padded
    rng = np.random.default_rng(2)
    shape = (37,) if outputs is None else (outputs, 37)
    net = wf.Shallow(
        rng.standard_normal((37, 3)), rng.choice([-1.0, 1.0], shape), activation="relu"
    )
    features, targets = (
        net.embed(rng.standard_normal((20, 3))),
        rng.standard_normal((20, *shape[:-1])),
    )
    operator = SlidingJacobian(jacobian_of(net, features))
    problem = GramProblem(operator, jnp.asarray(targets), wf.losses.HalfSumSquares(), Dense())
    step = lambda: eqx.filter_jit(lambda *args: Filippov()(*args))  # compiled anew for each `BLOCK`
    here = eqx.filter_jit(lambda problem, theta: problem.linearise(theta))(
        problem, {"weights": net.weights}
    )
    whole = step()(problem, here, 2.0)
    assert jnp.any(whole.end.jacobian.constraints != 0)  # some pairs slide
    monkeypatch.setattr(filippov, "BLOCK", 1_500)  # of 5,920 bytes
    assert filippov.block_count(features, net.weights, filippov.BLOCK) == 4
    jax.tree.map(lambda a, b: assert_allclose(a, b, atol=1e-12), step()(problem, here, 2.0), whole)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("outputs", [None, 2])
def test_the_gram_matrix_may_be_applied_in_blocks(monkeypatch, held, outputs):
    # 37 neurons in 4 blocks, the last one padded, against the matrix itself
    rng = np.random.default_rng(4)
    shape = (37,) if outputs is None else (outputs, 37)
    net = wf.Shallow(rng.standard_normal((37, 3)), rng.standard_normal(shape))
    features, mean = net.embed(rng.standard_normal((20, 3))), jnp.asarray(rng.random((20, 37)))
    free = jacobian_of(net, features)
    sliding = jnp.asarray(rng.random((20, 37)) < 0.1)
    point = SlidingPoint(mean, mean, active_constraints(features, sliding)) if held else mean
    operator = SlidingJacobian(free) if held else free
    monkeypatch.setattr(jacobian_module, "BLOCK", 1_500)  # of 5,920 bytes
    v = jnp.asarray(rng.standard_normal((20, *shape[:-1])))
    assert "4,20,10]" in str(
        jax.make_jaxpr(lambda v: operator.gram_map(point)(v))(v)
    )  # the cut slopes
    assert_allclose(
        operator.gram_map(point)(v).ravel(), operator.gram(point) @ v.ravel(), rtol=1e-10
    )
