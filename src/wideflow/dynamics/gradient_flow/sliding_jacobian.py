r"""The Jacobian of a shallow network some of whose pairs (sample, neuron) slide along their kink.

A pair slides at $z_{ij} = \phi_i\cdot w_j = 0$ with whatever slope keeps it there, so its neuron moves in the complement of $\phi_i$. With
$Q_j$ an orthonormal basis of the inputs along which neuron $j$ slides, and $S$ the slopes of the other pairs,
$$J_j = s_jA_j\,\mathrm{diag}(S_j)\,\Phi\,(I - Q_jQ_j^\top),\qquad
\Theta = c\,\Phi\Phi^\top\odot(S\,\mathrm{diag}(s^2A^2)\,S^\top) - c\sum_j s_j^2A_j^2\,\mathrm{diag}(S_j)\,\Phi Q_jQ_j^\top\Phi^\top\mathrm{diag}(S_j).$$
No slope of a sliding pair enters: the linearisation holds for any cotangent that keeps the pair sliding.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..._core.node_products import symmetric_product
from .jacobian import AbstractJacobian, ShallowJacobian, gram_map_in_blocks

Pairs = Float[Array, "sample width"]
Constraints = Float[Array, "rank embedded width"]

MAX_CONSTRAINTS = 8  # a neuron (chosen); pairs beyond them keep their mean slopes
SHARES = 4  # of the width: a block of constraints (chosen)
DEPENDENT = 1e-8  # an input whose square lies outside the earlier ones by a smaller share is no new constraint: sqrt(eps)


class SlidingPoint(eqx.Module):
    """What the Jacobian needs: mean slopes and active constraints $Q_j$ (orthonormal for each neuron, or 0); and the slopes at the point itself."""

    slopes: Pairs
    mean_slopes: Pairs
    constraints: Constraints


class SlidingJacobian(AbstractJacobian):
    """The Jacobian `unconstrained`, followed by the projection onto the complement of the active constraints."""

    unconstrained: ShallowJacobian

    def linearise(self, theta):
        outputs, slopes = self.unconstrained.linearise(theta)
        size, width = theta["weights"].shape
        nothing = jnp.zeros((min(MAX_CONSTRAINTS, size), size, width), slopes.dtype)
        return outputs, SlidingPoint(slopes, slopes, nothing)

    def vjp(self, jacobian: SlidingPoint, cotangent):
        return _complement(jacobian, self.unconstrained.vjp(jacobian.mean_slopes, cotangent))

    def jvp(self, jacobian: SlidingPoint, tangent):
        return self.unconstrained.jvp(jacobian.mean_slopes, _complement(jacobian, tangent))

    def gram_map(self, jacobian: SlidingPoint):
        return gram_map_in_blocks(
            self.unconstrained, SlidingJacobian, jacobian
        ) or super().gram_map(jacobian)

    def gram(self, jacobian: SlidingPoint):
        r"""$\Theta$ by the formula above.

        Few of the `rank x width` columns of $Q$ are in use. Sorted to the front, they are subtracted block by block until none is left;
        the block's size divides the width, so that the last block ends with the last column.
        """
        t, width = self.unconstrained, jacobian.mean_slopes.shape[1]
        size = width // SHARES if width % SHARES == 0 else width
        columns = jnp.swapaxes(jacobian.constraints, 0, 1).reshape(
            jacobian.constraints.shape[1], -1
        )
        used = jnp.any(columns != 0, axis=0)
        order = jnp.argsort(~used, stable=True)
        outputs = jnp.atleast_2d(t.mixed)

        def without(block, gram):
            block_columns = jax.lax.dynamic_slice_in_dim(order, block * size, size)
            neuron = block_columns % width
            along = jacobian.mean_slopes[:, neuron] * (t.features @ columns[:, block_columns])
            rows = along[:, None, :] * outputs[:, neuron]
            return gram - t.factor * symmetric_product(rows.reshape(-1, size))

        return jax.lax.fori_loop(
            0, -(-jnp.sum(used) // size), without, t.gram(jacobian.mean_slopes)
        )


def _complement(jacobian: SlidingPoint, tangent):
    weights = tangent["weights"]
    parts = jnp.einsum("kdm,dm->km", jacobian.constraints, weights)
    return {"weights": weights - jnp.einsum("kdm,km->dm", jacobian.constraints, parts)}


def active_constraints(features, sliding: Bool[Array, "sample width"]) -> Constraints:
    """Orthonormal bases of the inputs along which neurons slide, the input farthest from those before it first."""
    size, width = features.shape[1], sliding.shape[1]
    capacity = min(MAX_CONSTRAINTS, size)
    squares = jnp.sum(features**2, axis=1, keepdims=True)

    def going(carry):
        count, _, outside = carry
        return (count < capacity) & jnp.any(outside > DEPENDENT * squares)

    def add(carry):
        # one step of Gram-Schmidt for all neurons at once, with pivoting: `outside` holds the squared length that
        # each sliding input still has outside the span of the constraints found so far, 0 for inputs that do not slide
        count, constraints, outside = carry
        farthest = jnp.argmax(outside, axis=0)
        new = features[farthest].T
        for _ in range(2):  # orthogonalising twice is enough (Kahan)
            new = new - jnp.einsum("kdm,kem,em->dm", constraints, constraints, new)
        left = jnp.take_along_axis(outside, farthest[None], axis=0)[0]
        length = jnp.linalg.norm(new, axis=0)
        independent = left > DEPENDENT * squares[farthest, 0]
        new = jnp.where(independent, new / jnp.where(independent, length, 1.0), 0.0)
        outside = jnp.where(independent, outside - (features @ new) ** 2, 0.0)
        return count + 1, constraints.at[count].set(new), outside

    nothing = jnp.zeros((capacity, size, width), features.dtype)
    start = (jnp.zeros((), int), nothing, jnp.where(sliding, squares, 0.0))
    return jax.lax.while_loop(going, add, start)[1]
