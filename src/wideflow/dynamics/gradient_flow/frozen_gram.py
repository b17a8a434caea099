r"""The output gradient under a frozen Gram matrix whose eigen decomposition is at hand: $\dot g = -\kappa\Theta g$."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .linearisation import GramProblem, Linearisation, Outputs
from .output_hessian import SQUARES
from .phi_functions import phi1


class Spectrum(eqx.Module):
    r"""$\kappa\Theta = V\,\mathrm{diag}(\text{rates})\,V^\top$."""

    rates: Float[Array, " entry"]
    vectors: Float[Array, "entry entry"]

    def parts(self, v: Outputs) -> Float[Array, " entry"]:
        r"""$V^\top v$."""
        return self.vectors.T @ v.ravel()

    def whole(self, parts: Float[Array, " entry"], like: Outputs) -> Outputs:
        r"""$V$ times `parts`, in the shape of `like`."""
        return (self.vectors @ parts).reshape(like.shape)

    def integral(self, start: Outputs, span) -> Outputs:
        r"""$\int_0^s g\,\mathrm du$."""
        return self.whole(span * phi1(span * self.rates) * self.parts(start), start)

    def decayed(self, start: Outputs, span) -> Outputs:
        r"""$g(s)$."""
        return self.whole(jnp.exp(-span * self.rates) * self.parts(start), start)


def has_spectrum(problem: GramProblem) -> bool:
    """Whether the Gram matrix is decomposed and alone decides the decay (squared losses)."""
    return problem.action.dense and isinstance(problem.loss, SQUARES)


def spectrum(problem: GramProblem, start: Linearisation) -> Spectrum:
    return Spectrum(*problem.action.decompose(start.hessian.kappa * start.gram))
