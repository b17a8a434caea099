r"""The whole Hessian of a squared loss of a shallow network: the Gram part and one block a neuron.

$$\nabla^2L = \kappa J^\top J + \bigoplus_j B_j,\qquad B_j = \sum_i (g_i\cdot s_jA_j)\,\sigma''(z_{ij})\,\phi_i\phi_i^\top .$$
The blocks are how fast a neuron settles while the residual stands still. Exponentials of the Gram matrix do not know them; where they decide
the step, a solve with the whole costs a Gram matrix weighted neuron by neuron and its Cholesky factor (Woodbury's formula).
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float

from ..._core.symmetric_product import symmetric_product
from .jacobian import ShallowJacobian
from .linearisation import GramProblem, Linearisation

Weights = Float[Array, "embedded width"]
Blocks = Float[Array, "width embedded embedded"]

FAR = 0.8  # of the shift (chosen); at 1 lies the pole


def blocks(network: ShallowJacobian, start: Linearisation) -> Blocks:
    r"""$cB_j$."""
    x = network.features
    second = network.activation.bend(network.preactivations(start.theta))
    weights = second * network.spread(start.cotangent)
    pairs = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    return network.factor * (weights.T @ pairs).reshape(-1, x.shape[1], x.shape[1])


def largest_norm(network: ShallowJacobian, start: Linearisation) -> Float[Array, ""]:
    r"""$\max_j|cB_j|$ (Frobenius), a bound on how fast any neuron settles or leaves."""
    return jnp.sqrt(jnp.max(jnp.sum(blocks(network, start) ** 2, axis=(1, 2))))


def shifted_solver(
    problem: GramProblem, start: Linearisation, shift: Float[Array, ""] | float
) -> Callable[[Weights], Weights]:
    r"""$v \mapsto (\text{shift} + c\nabla^2L)^{-1}v$.

    Negative curvature counts up to `FAR` of the shift: beyond the pole growth would come out as decay. A neuron that leaves faster is for the error
    estimate, which sees it only as far as the outputs do.
    """
    network, kappa = problem.operator, start.hessian.kappa
    assert isinstance(network, ShallowJacobian)
    # D = shift + cB is block-diagonal, with D^-1 = R^T R; the Gram part c kappa J^T J is added by Woodbury's formula,
    # (D + J^T J)^-1 = D^-1 - D^-1 J^T (I + J D^-1 J^T)^-1 J D^-1, whose inner matrix is the product of `rows` = J R^T with itself
    values, vectors = jnp.linalg.eigh(blocks(network, start), symmetrize_input=False)
    values = shift + jnp.maximum(values, -FAR * shift)
    root = jnp.swapaxes(vectors / jnp.sqrt(values)[:, None, :], 1, 2)
    inverse = jnp.einsum("jba,jbc->jac", root, root)
    scale = jnp.sqrt(network.factor * kappa)
    features = (
        scale * start.jacobian[:, :, None] * jnp.einsum("ia,jba->ijb", network.features, root)
    )
    mixed = jnp.atleast_2d(network.mixed)
    rows = (features[:, None] * mixed[:, :, None]).reshape(start.outputs.size, -1)
    factor = cho_factor(symmetric_product(rows) + jnp.eye(len(rows), dtype=rows.dtype))

    def solve_blocks(v: Weights) -> Weights:
        return jnp.einsum("jab,bj->aj", inverse, v)

    def solve(v: Weights) -> Weights:
        alone = solve_blocks(v)
        outputs = network.jvp(start.jacobian, {"weights": alone})
        shared = cho_solve(factor, outputs.ravel()).reshape(outputs.shape)
        return alone - kappa * solve_blocks(network.vjp(start.jacobian, shared)["weights"])

    return solve
