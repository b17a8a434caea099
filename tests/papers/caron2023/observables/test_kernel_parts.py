import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf

obs = wf.observables
DATA = wf.data.sphere_sines(jax.random.key(1), samples=6, features=4, noise=0.1)
ZIPF = wf.scalings.Zipf(0.3, 0.6)


def network(activation="tanh", scaling=ZIPF, **options):
    return wf.Shallow.init(
        2, features=4, width=30, scaling=scaling, activation=activation, **options
    )


def gram_of(net, node_weights):
    """J J^T of f(x) = sum_j sqrt(lambda_j) a_j sigma(<w_j, x> / sqrt d), by automatic
    differentiation.
    """
    a = np.asarray(net.output)

    def outputs(w):
        z = jnp.asarray(DATA.inputs) @ w / 2.0  # d = 4
        return net.activation(z) @ (jnp.sqrt(node_weights) * a)

    rows = np.asarray(jax.jacobian(outputs)(net.weights)).reshape(len(DATA), -1)
    return rows @ rows.T


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_parts_are_the_tangent_kernels_of_the_two_partial_networks(activation):
    net = network(activation)
    parts = obs.kernel_parts(net, DATA.inputs)
    for part, weights in zip(parts, ZIPF.split(30), strict=True):
        assert_allclose(part, gram_of(net, weights), rtol=1e-12, atol=1e-15)
    assert_allclose(sum(parts), obs.tangent_gram(net, DATA.inputs), rtol=1e-12)


@pytest.mark.parametrize(
    ("scaling", "gamma"),
    [(wf.scalings.NTK(), 1.0), (wf.scalings.Weights([0.5] + [0.5 / 29] * 29, gamma=0.2), 0.2)],
)
def test_every_scaling_with_an_equal_share_has_parts(scaling, gamma):
    net = network(scaling=scaling, output_scale=3.0)  # output weights other than signs count
    symmetric, asymmetric = obs.kernel_parts(net, DATA.inputs)
    assert_allclose(symmetric, gram_of(net, np.full(30, gamma / 30)), rtol=1e-12)
    assert_allclose(symmetric + asymmetric, obs.tangent_gram(net, DATA.inputs), rtol=1e-12)
    assert np.all(np.abs(asymmetric) <= 1e-15) == (gamma == 1.0)


def test_along_a_run_they_are_those_of_the_network_then():
    net, record = network(), [obs.KernelMinEigenvalue(), obs.KernelDistance("spectral", False)]
    for part in ("symmetric", "asymmetric"):
        kinds = (obs.KernelPart, obs.KernelPartMinEigenvalue, obs.KernelPartDistance)
        record += [kind(0.3, part) for kind in kinds]
    run = wf.train(net, DATA, wf.GradientDescent(2.0), steps=30, every=10, record=record)
    table, drifts = run.table, []
    for name, weights in zip(("symmetric", "asymmetric"), ZIPF.split(30), strict=True):
        start, end = (gram_of(model, weights) for model in (net, run.model))
        assert_allclose(table[f"{name}_kernel"][-1], end, rtol=1e-10, atol=1e-15)
        assert_allclose(table[f"{name}_gap"][-1], np.linalg.eigvalsh(end)[0], atol=1e-14)
        drifts.append(np.linalg.norm(end - start, 2))
        assert_allclose(table[f"{name}_drift"][[0, -1]], [0, drifts[-1]], rtol=1e-9, atol=1e-15)
    # Weyl: a positive semi-definite part can only raise the smallest eigenvalue
    assert np.all(table["symmetric_gap"] <= table["kernel_gap"] + 1e-15)
    assert table["kernel_drift"][-1] <= sum(drifts) * (1 + 1e-9)
    # and 0.7 of the weights on few nodes move the kernel more than 0.3 on all of them
    assert 0 < drifts[0] < drifts[1]


def test_what_has_no_parts_says_so():
    with pytest.raises(ValueError, match="`model` must have node weights with an equal share"):
        obs.kernel_parts(network(scaling=wf.scalings.MeanField()), DATA.inputs)
    with pytest.raises(ValueError, match="a network of one output, got 2"):
        obs.kernel_parts(network(outputs=2), DATA.inputs)
    with pytest.raises(ValueError, match="`part` must be"):
        obs.KernelPart(0.5, "first")
    with pytest.raises(ValueError, match="`gamma` must"):
        obs.KernelPart(1.5)
