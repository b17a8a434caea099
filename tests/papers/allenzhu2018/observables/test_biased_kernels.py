"""Structured tangent kernels against plain Jacobians; last-layer features by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow import observables as obs
from wideflow._core.trees import parameters, with_parameters


def learner(kind, outputs):
    net = kind.init(jax.random.key(0), features=4, width=7, output_std=0.8, outputs=outputs)
    moved = {
        name: 0.3 * jax.random.normal(jax.random.key(i), value.shape)
        for i, (name, value) in enumerate(parameters(net).items(), 1)
    }
    return with_parameters(net, moved)


@pytest.mark.parametrize("outputs", [None, 2])
@pytest.mark.parametrize("kind", [wf.BiasedTwoLayer, wf.BiasedThreeLayer])
def test_tangent_gram_is_that_of_the_jacobian(kind, outputs):
    net = learner(kind, outputs)
    x, z = (
        wf.data.padded_sphere(jax.random.key(5), 5, 3),
        wf.data.padded_sphere(jax.random.key(6), 3, 3),
    )
    output = 0 if outputs is None else 1

    def rows(inputs):
        def values(p):
            out = with_parameters(net, p).respond(inputs)
            return out if outputs is None else out[:, output]

        jacobian = jax.jacobian(values)(parameters(net))
        return jnp.concatenate([j.reshape(len(inputs), -1) for j in jacobian.values()], axis=1)

    assert_allclose(
        obs.tangent_gram(net, x, z, output=output), rows(x) @ rows(z).T, rtol=1e-11, atol=1e-13
    )
    assert_allclose(
        obs.tangent_gram(net, x, output=output), rows(x) @ rows(x).T, rtol=1e-11, atol=1e-13
    )


def test_last_layer_features_by_hand():
    two = wf.BiasedTwoLayer([[1.0, 0.0], [0.0, -1.0]], [0.0, 2.0], [1.0, 0.5])
    assert_allclose(obs.last_layer_features(two, [[3.0, 1.0]]), [[3.0, 1.0]])
    three = wf.BiasedThreeLayer(
        [[1.0], [-1.0]], [0.0, 1.0], [[1.0, 2.0], [-1.0, 0.0]], [-1.0, 0.0], [3.0, 1.0]
    )
    # x = 0.5: u = (0.5, 0.5), q = (0.5, -0.5)
    assert_allclose(obs.last_layer_features(three, [[0.5]]), [[0.5, 0.0]])
    assert_allclose(obs.last_layer_gram(three, np.array([[0.5]])), [[0.25]])
