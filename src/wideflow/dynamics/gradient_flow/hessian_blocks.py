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
from .jacobian import ShallowTangents
from .linearisation import GramProblem, Place

Weights = Float[Array, "embedded width"]
Blocks = Float[Array, "width embedded embedded"]

FAR = 0.8  # of the shift; at 1 lies the pole


def blocks(tangents: ShallowTangents, place: Place) -> Blocks:
    r"""$cB_j$."""
    t, x = tangents, tangents.features
    bent = t.activation.bend(t.preactivations(place.theta)) * t.spread(place.cotangent)
    pairs = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    return t.factor * (bent.T @ pairs).reshape(-1, x.shape[1], x.shape[1])


def steepest(tangents: ShallowTangents, place: Place) -> Float[Array, ""]:
    r"""$\max_j|cB_j|$ (Frobenius), a bound on how fast any neuron settles or leaves."""
    return jnp.sqrt(jnp.max(jnp.sum(blocks(tangents, place) ** 2, axis=(1, 2))))


def shifted_solver(
    problem: GramProblem, place: Place, shift: Float[Array, ""] | float
) -> Callable[[Weights], Weights]:
    r"""$v \mapsto (\text{shift} + c\nabla^2L)^{-1}v$.

    Negative curvature counts up to `FAR` of the shift: beyond the pole growth would come out as decay. A neuron that leaves faster is for the error
    estimate, which sees it only as far as the outputs do.
    """
    t, kappa = problem.tangents, place.curvature.kappa
    assert isinstance(t, ShallowTangents)
    values, vectors = jnp.linalg.eigh(blocks(t, place), symmetrize_input=False)
    values = shift + jnp.maximum(values, -FAR * shift)
    half = jnp.swapaxes(vectors / jnp.sqrt(values)[:, None, :], 1, 2)
    inverse = jnp.einsum("jba,jbc->jac", half, half)
    root = jnp.sqrt(t.factor * kappa)
    seen = root * place.point[:, :, None] * jnp.einsum("ia,jba->ijb", t.features, half)
    mixed = jnp.atleast_2d(t.mixed)
    rows = (seen[:, None] * mixed[:, :, None]).reshape(place.outputs.size, -1)
    inner = symmetric_product(rows) + jnp.eye(len(rows), dtype=rows.dtype)
    factor = cho_factor(inner)

    def spread(v: Weights) -> Weights:
        return jnp.einsum("jab,bj->aj", inverse, v)

    def solve(v: Weights) -> Weights:
        alone = spread(v)
        pushed = t.push(place.point, {"weights": alone})
        shared = cho_solve(factor, pushed.ravel()).reshape(pushed.shape)
        return alone - kappa * spread(t.pull(place.point, shared)["weights"])

    return solve
