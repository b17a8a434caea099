r"""The output Hessian $H$ of a loss: along any flow the output gradient $g$ obeys $\dot g = -H(u)\,\Theta\,g$.

For squared losses $H = \kappa I$ and a step with frozen $\Theta$ is exact. For any other convex loss $H$ is block-diagonal over
samples and frozen over a step (the local quadratic model); its symmetric root $B$ makes $B\Theta B$ symmetric.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...data.objective import Loss
from ..losses import HalfMeanSquares, HalfSumSquares, MeanSquares

SQUARES = (HalfSumSquares, MeanSquares, HalfMeanSquares)


class AbstractOutputHessian(eqx.Module):
    """$H$ at given outputs."""

    @abc.abstractmethod
    def largest_eigenvalue(self) -> Float[Array, ""]:
        """The largest eigenvalue of $H$."""

    @abc.abstractmethod
    def apply(self, v: Float[Array, " sample *output"]) -> Float[Array, " sample *output"]:
        r"""$Hv$."""


class UniformHessian(AbstractOutputHessian):
    r"""$H = \kappa I$."""

    kappa: Float[Array, ""]

    def largest_eigenvalue(self):
        return self.kappa

    def apply(self, v):
        return self.kappa * v


class BlockHessian(AbstractOutputHessian):
    r"""$H = B^2$, one symmetric block $B$ a sample."""

    root: Float[Array, "sample output output"]

    def largest_eigenvalue(self):
        return jnp.max(jnp.sum(self.root**2, axis=(1, 2)))

    def apply(self, v):
        return self.sqrt(self.sqrt(v))

    def sqrt(self, v: Float[Array, " sample *output"]) -> Float[Array, " sample *output"]:
        r"""$Bv$."""
        flat = v.reshape(self.root.shape[:2])
        return jnp.einsum("nkl,nl->nk", self.root, flat).reshape(v.shape)

    def congruence(self, matrix: Float[Array, "entry entry"]) -> Float[Array, "entry entry"]:
        r"""$B\Theta B$."""
        n, k, _ = self.root.shape
        four = matrix.reshape(n, k, n, k)
        return jnp.einsum("iab,ibjc,jcd->iajd", self.root, four, self.root).reshape(matrix.shape)


def output_hessian(loss: Loss, outputs, targets) -> UniformHessian | BlockHessian:
    """$H$ of `loss` at `outputs`; negative eigenvalues (losses that are not convex) count as 0."""
    if isinstance(loss, SQUARES):
        one, zero = jnp.ones_like(outputs), jnp.zeros_like(outputs)
        return UniformHessian(loss.value_and_gradient(one, zero)[1].ravel()[0])
    count = 1 if outputs.ndim == 1 else outputs.shape[1]

    def gradient(u):
        return loss.value_and_gradient(u, targets)[1]

    def column(k):  # samples do not mix, so one direction serves every sample's block at once
        direction = jnp.zeros((outputs.shape[0], count), outputs.dtype).at[:, k].set(1.0)
        tangent = jax.jvp(gradient, (outputs,), (direction.reshape(outputs.shape),))[1]
        return tangent.reshape(-1, count)

    blocks = jnp.stack([column(k) for k in range(count)], axis=2)
    values, vectors = jnp.linalg.eigh((blocks + blocks.swapaxes(1, 2)) / 2)
    roots = jnp.sqrt(jnp.maximum(values, 0.0))
    return BlockHessian(jnp.einsum("nak,nk,nbk->nab", vectors, roots, vectors))
