"""Structured Gram matrices against explicit Jacobians, and what is read off them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow._core.trees import parameters, with_parameters
from wideflow.observables.kernels import gram_of_features

RNG = np.random.default_rng(2)
X, T = RNG.normal(size=(5, 3)), RNG.normal(size=(4, 3))
W, A = RNG.normal(size=(9, 3)), RNG.choice([-1.0, 1.0], size=(2, 9))
Y = RNG.normal(size=5)


def jacobian_gram(model, left, right, output):
    """The definition: c J J'^T with explicit Jacobians."""

    def flat(inputs):
        def f(p):
            out = with_parameters(model, p).outputs(inputs)
            return out if out.ndim == 1 else out[:, output]

        jacobian = jax.jit(jax.jacobian(f))(parameters(model))
        return jnp.concatenate(
            [
                jnp.sqrt(model.rate_factors()[n]) * jacobian[n].reshape(len(inputs), -1)
                for n in jacobian
            ],
            axis=1,
        )

    return flat(left) @ flat(right).T


@pytest.mark.parametrize(
    "scaling", [wf.scalings.NTK(), wf.scalings.MeanField(), wf.scalings.Zipf(0.2, 0.4)], ids=str
)
@pytest.mark.parametrize("activation", ["relu", "tanh", "abs", "gelu"])
@pytest.mark.parametrize("output", [None, 1])
def test_tangent_gram_agrees_with_autodiff(scaling, activation, output):
    net = wf.Shallow(W, A[0] if output is None else A, scaling, activation)
    ours = wf.observables.tangent_gram(net, X, T, output=output or 0)
    assert_allclose(ours, jacobian_gram(net, X, T, output), rtol=1e-10, atol=1e-14)


def test_fallback_of_models_without_structure_agrees_with_the_structured_form():
    net = wf.Shallow(W, A[0], wf.scalings.Zipf(0.2, 0.4), "tanh")
    features, other = net.embed(X), net.embed(T)
    general = gram_of_features.dispatch(object)(net, features, other)
    assert_allclose(general, gram_of_features(net, features, other), rtol=1e-12)


def test_gram_with_embedding():
    net = wf.Shallow(
        RNG.normal(size=(6, 9)), A[0][:6], activation="tanh", embedding=wf.embeddings.Quadratic()
    )
    assert_allclose(wf.observables.tangent_gram(net, X), jacobian_gram(net, X, X, 0), rtol=1e-10)


def test_everything_read_off_the_gram_matrix():
    start = wf.Shallow(W, A[0], wf.scalings.Zipf(0.2, 0.4), "tanh")
    obs = wf.observables
    record = [
        obs.KernelDistance("spectral", relative=False),
        obs.KernelMinEigenvalue(),
        obs.KernelTrace(),
        obs.EffectiveRank(),
        obs.KernelAlignment(),
        obs.KernelSpectrum(),
    ]
    run = wf.train(start, wf.Dataset(X, Y), wf.GradientDescent(0.5), steps=20, record=record)
    before, after = (np.asarray(jacobian_gram(m, X, X, 0)) for m in (start, run.model))
    end = run.table.isel(step=-1)
    assert_allclose(end.kernel_drift, np.linalg.norm(after - before, 2), rtol=1e-10)
    assert_allclose(end.kernel_spectrum, np.linalg.eigvalsh(after), rtol=1e-8, atol=1e-14)
    assert_allclose(end.kernel_gap, np.linalg.eigvalsh(after)[0], rtol=1e-8, atol=1e-14)
    assert_allclose(end.kernel_trace, np.trace(after), rtol=1e-12)
    assert_allclose(
        end.effective_rank, np.trace(after) ** 2 / np.linalg.norm(after) ** 2, rtol=1e-12
    )
    assert_allclose(
        end.kernel_alignment, Y @ after @ Y / np.linalg.norm(after) / (Y @ Y), rtol=1e-12
    )
    assert float(run.table.kernel_drift[0]) < 1e-14


def test_watching_the_first_samples_only():
    start = wf.Shallow(W, A[0])
    run = wf.train(
        start,
        wf.Dataset(X, Y),
        wf.GradientDescent(0.5),
        steps=1,
        record=[wf.observables.KernelSpectrum(samples=3)],
    )
    expected = np.linalg.eigvalsh(np.asarray(jacobian_gram(start, X[:3], X[:3], 0)))
    assert_allclose(run.table.kernel_spectrum[0], expected, rtol=1e-9, atol=1e-14)


def test_movement_and_activity():
    start = wf.Shallow(W, A[0], activation="tanh")
    obs = wf.observables
    record = [
        obs.WeightMovement(),
        obs.LargestMovement(),
        obs.FeatureMovement(),
        obs.ActiveFraction((-0.5, 0.5)),
        obs.ParameterMovement(),
        obs.Risk(),
        obs.TestRisk(),
        obs.TestLoss(),
    ]
    test = wf.Dataset(T, np.ones(4))
    run = wf.train(
        start, wf.Dataset(X, Y), wf.GradientDescent(0.5), steps=20, record=record, test=test
    )
    moved = np.linalg.norm(np.asarray(run.model.hidden) - W, axis=1)
    h0, h1 = X @ W.T / 3**0.5, X @ np.asarray(run.model.hidden).T / 3**0.5
    end = run.table.isel(step=-1)
    assert_allclose(end.weight_movement, moved, rtol=1e-12)
    assert_allclose(end.largest_movement, moved.max(), rtol=1e-12)
    assert_allclose(end.feature_movement, np.abs(h1 - h0).mean(), rtol=1e-12)
    assert_allclose(end.active_fraction, np.mean(np.abs(h1) < 0.5), rtol=1e-12)
    assert_allclose(end.parameter_movement, np.linalg.norm(moved) / np.linalg.norm(W), rtol=1e-12)
    assert_allclose(end.risk, np.mean((np.asarray(run.model.outputs(X)) - Y) ** 2), rtol=1e-12)
    error = np.asarray(run.model.outputs(T)) - 1
    assert_allclose(
        [end.test_risk, end.test_loss], [np.mean(error**2), np.sum(error**2) / 2], rtol=1e-12
    )


@pytest.mark.parametrize("size", [1e12, 1e150])
def test_a_kernel_that_vanishes_has_rank_and_alignment_zero(size):
    """Targets of 1e12 saturate every tanh unit in one step: 0/0 once made NaN of a run that
    finished.
    """
    data = wf.Dataset(np.eye(3), size * np.array([1.0, -1.0, 2.0]))
    net = wf.Shallow.init(0, features=3, width=4, activation="tanh")
    record = [
        wf.observables.EffectiveRank(),
        wf.observables.KernelAlignment(),
        wf.observables.KernelTrace(),
    ]
    table = wf.train(net, data, wf.GradientDescent(0.1), steps=2, record=record).table
    assert float(table["kernel_trace"][-1]) == 0
    assert float(table["effective_rank"][-1]) == 0
    assert float(table["kernel_alignment"][-1]) == 0
    assert np.isfinite(table["kernel_alignment"]).all()
