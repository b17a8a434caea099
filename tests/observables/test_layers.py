"""Feature and gradient kernels, movement layer by layer, sharpness: against products by hand and
dense Hessians.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow._core.architecture import mlp
from wideflow._core.lanczos import largest_eigenvalues
from wideflow._core.trees import parameters, with_parameters

RNG = np.random.default_rng(0)
DATA = wf.Dataset(RNG.normal(size=(6, 5)), RNG.normal(size=6))
look = wf.observables


@pytest.fixture(scope="module")
def run():
    net = wf.Deep.init(0, mlp(2, 8, "tanh", bias_std=0.1), 5, "mean-field")
    record = [
        look.LayerFeatureMovement(),
        look.FeatureKernelDrift(),
        look.GradientKernelDrift(),
        look.FeatureAlignment(),
        look.ArrayMovement(),
        look.ArrayMovement("frobenius"),
        look.ArrayMovement("spectral"),
        look.Sharpness(depth=200),
        look.EffectiveRank(),
        look.LinearisationGap(),
    ]
    relative = look.LayerFeatureMovement(relative=True)

    def relative_movement(shot):
        return relative(shot)

    record.append(relative_movement)
    return wf.train(net, DATA, wf.GradientDescent(0.02), steps=10, every=10, record=record)


def test_kernels_multiply_to_the_tangent_kernel():
    net = wf.Deep.init(0, mlp(2, 8, "tanh"), 5)
    phi, g = look.feature_kernels(net, DATA.inputs), look.gradient_kernels(net, DATA.inputs)
    parts = look.tangent_gram_parts(net, DATA.inputs)
    x = DATA.inputs @ DATA.inputs.T / 5  # NTK: factor^2 x fan-in = 1 in every layer
    assert_allclose(parts["weight_1"], x * g["layer_1"], rtol=1e-10)
    assert_allclose(parts["weight_2"], phi["layer_1"] * g["layer_2"], rtol=1e-10)
    assert_allclose(parts["weight_3"], phi["layer_2"], rtol=1e-10)
    assert_allclose(g["layer_3"], 1.0)


def test_movements_of_a_run(run):
    start, end = run.start, run.model
    h0, h1 = start.preactivations(DATA.inputs), end.preactivations(DATA.inputs)
    moved = [np.sqrt(np.mean((h1[name] - h0[name]) ** 2)) for name in ("layer_1", "layer_2")]
    assert_allclose(run.table.layer_feature_movement[-1], moved, rtol=1e-10)
    size = [np.sqrt(np.mean(h0[name] ** 2)) for name in ("layer_1", "layer_2")]
    assert_allclose(run.table.relative_movement[-1], np.array(moved) / size, rtol=1e-10)
    changes = [np.asarray(getattr(end, n) - getattr(start, n)) for n in start.trained]
    assert_allclose(run.table.array_movement_frobenius[-1], [np.linalg.norm(c) for c in changes])
    assert_allclose(run.table.array_movement_spectral[-1], [np.linalg.norm(c, 2) for c in changes])
    before = [np.linalg.norm(getattr(start, n)) for n in start.trained]
    assert_allclose(
        run.table.array_movement_relative[-1],
        [np.linalg.norm(c) / b for c, b in zip(changes, before)],
    )


def test_kernel_drifts_of_a_run(run):
    for name, function in (
        ("feature_kernel_drift", look.feature_kernels),
        ("gradient_kernel_drift", look.gradient_kernels),
    ):
        first, last = (function(m, DATA.inputs) for m in (run.start, run.model))
        expected = [np.linalg.norm(last[k] - first[k]) / np.linalg.norm(first[k]) for k in first]
        assert_allclose(run.table[name][-1], expected, rtol=1e-8, atol=1e-14)
    assert_allclose(run.table.feature_kernel_drift[0], 0, atol=1e-14)


def test_alignment_with_the_targets(run):
    # CKA of linear kernels is |X'Y|^2 / (|X'X| |Y'Y|) with centred columns
    features = np.tanh(np.asarray(run.model.preactivations(DATA.inputs)["layer_2"]))
    x, y = features - features.mean(0), (DATA.targets - DATA.targets.mean())[:, None]
    expected = np.sum((x.T @ y) ** 2) / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y))
    assert float(run.table.feature_alignment[-1, 1]) == pytest.approx(expected, rel=1e-10)


def test_sharpness_is_the_hessians_largest_eigenvalue(run):
    net = run.model
    theta, factors = parameters(net), net.rate_factors()
    flat, unravel = ravel_pytree(theta)
    roots = ravel_pytree({n: jnp.full(theta[n].shape, factors[n] ** 0.5) for n in theta})[0]

    def loss(vector):
        outputs = with_parameters(net, unravel(vector)).respond(jnp.asarray(DATA.inputs))
        return jnp.sum((outputs - DATA.targets) ** 2) / 2

    hessian = np.asarray(jax.jit(jax.hessian(loss))(flat)) * np.outer(roots, roots)
    top = np.linalg.eigvalsh(hessian)[::-1]
    assert float(run.table.sharpness[-1]) == pytest.approx(top[0], rel=1e-8)
    assert_allclose(look.hessian_eigenvalues(net, DATA, 3, depth=60), top[:3], rtol=1e-6)


def test_equal_eigenvalues_come_as_often_as_they_are_there():
    """A Krylov space holds one direction of each eigenvalue, and closes after three here."""
    rng = np.random.default_rng(5)
    directions, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    expected = [3.0, 3.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    matrix = jnp.asarray(directions * expected @ directions.T)
    values = largest_eigenvalues(lambda v: matrix @ v, jnp.asarray(rng.normal(size=8)), 40, 8)
    assert_allclose(values, expected, atol=1e-13)


def test_a_hessian_of_low_rank_has_eigenvalues_zero_and_none_invented():
    # ReLU bends nowhere, so that the Hessian of half the sum of squares is J'J (12 x 12): its
    # eigenvalues are the three of JJ', and nine zeros
    net = wf.Shallow.init(0, features=3, width=4)
    data = wf.Dataset(np.eye(3), [0.3, -0.5, 0.8])
    gram = np.linalg.eigvalsh(wf.observables.tangent_gram(net, data.inputs))[::-1]
    values = wf.observables.hessian_eigenvalues(net, data, 12)
    assert_allclose(values, [*gram, *np.zeros(9)], atol=1e-14)


@pytest.mark.parametrize("rank", [1, 3, 12])
def test_lanczos_on_operators_of_low_rank(rank):
    rows = RNG.normal(size=(rank, 12))
    matrix = jnp.asarray(rows.T @ rows) - 5 * jnp.eye(
        12
    )  # the largest need not be the largest in size
    values = largest_eigenvalues(lambda v: matrix @ v, jnp.asarray(RNG.normal(size=12)), 30)
    assert float(values[0]) == pytest.approx(np.linalg.eigvalsh(matrix)[-1], rel=1e-10)


def test_a_kernel_of_zero_that_stays_zero_has_not_moved():
    """tanh' underflows at pre-activations of 1e8: no gradient, so nothing moves."""
    net = wf.Shallow(1e8 * np.ones((2, 1)), [1.0, -1.0], activation="tanh")
    data = wf.Dataset([[1.0], [2.0]], [0.3, -0.5])
    record = [wf.observables.KernelDistance()]
    run = wf.train(net, data, wf.GradientDescent(0.1), steps=2, record=record)
    assert_allclose(run.table.kernel_change, [0.0, 0.0, 0.0], atol=0)


def test_models_without_layers_are_told_so():
    net = wf.Shallow.init(0, features=5, width=4)
    with pytest.raises(ValueError, match="looks into the layers of a `Deep` network, got Shallow"):
        look.feature_kernels(net, DATA.inputs)
    with pytest.raises(ValueError, match="`norm` must be"):
        look.ArrayMovement("nuclear")
