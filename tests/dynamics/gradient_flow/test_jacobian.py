r"""The Gram matrix $J c J^\top$ of a network's Jacobian operator, against the Jacobian itself by
autodiff.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow._core.trees import parameters, with_parameters
from wideflow.dynamics.gradient_flow.jacobian import jacobian_of

A = wf.architecture
X = np.random.default_rng(5).standard_normal((5, 4))
CHAINS = {
    "two outputs, biases": (wf.mlp(2, 6, "tanh", outputs=2, bias_std=0.3), "maximal-update"),
    "a frozen layer": (
        A.Chain(
            A.Dense(7, trained=False), A.Activate("erf"), A.Dense(5), A.Activate("erf"), A.Dense(1)
        ),
        "mean-field",
    ),
    "convolution": (A.Chain(A.Conv(3, (2,)), A.Activate("tanh"), A.Flatten(), A.Dense(1)), "ntk"),
}


@pytest.mark.parametrize("name", CHAINS)
def test_gram_of_deep_networks_at_moved_parameters(name):
    chain, parametrisation = CHAINS[name]
    features = (4, 1) if name == "convolution" else 4
    with jax.enable_x64(True):
        net = wf.Deep.init(2, chain, features, parametrisation)
        embedded = net.embed(X)
        # at other parameters than those of the model that the operator was built with
        theta = jax.tree.map(lambda a: 1.3 * a + 0.1, parameters(net))
        rows = jax.jit(jax.jacrev(lambda t: with_parameters(net, t).respond(embedded).ravel()))(
            theta
        )
        factors, size = net.rate_factors(), net.outputs(X).size
        flat = {key: rows[key].reshape(size, -1) for key in rows}
        expected = sum(factors[key] * flat[key] @ flat[key].T for key in flat)
        operator = jacobian_of(net, embedded)
        gram = operator.gram(theta)
        assert_allclose(gram, expected, rtol=1e-11, atol=1e-13)
        vector = jnp.cos(jnp.arange(size)).reshape(net.outputs(X).shape)
        assert_allclose(operator.gram_map(theta)(vector).ravel(), gram @ vector.ravel(), rtol=1e-11)
