r"""How the output gradient decays under a Gram matrix whose eigen decomposition is at hand: frozen, or moving linearly.

Frozen, $\dot g = -\kappa\Theta g$ is solved eigenvector by eigenvector (`Spectrum`). Moving, $\dot g = -(\Lambda + uD)\,g$ is solved to first order in $D$:
in the eigenbasis of the Gram matrix at $u = 0$, $\Lambda = \mathrm{diag}(\lambda)$, with $x = s\lambda$ (Duhamel's formula, integrated once more),
$$\int_0^s g_i\,\mathrm du = s\varphi_1(-x_i)\,g_i(0) - s^3\sum_j A(x_i, x_j)\,D_{ij}\,g_j(0),\qquad
  A(p, q) = \int_0^1 v(1-v)\,e^{-vq}\,\varphi_1(-(1-v)p)\,\mathrm dv .$$
Nothing in it grows with $\lambda$: stiff constraints come out right, and no second eigen decomposition is needed.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .linearisation import GramProblem, Linearisation, Outputs
from .matrix_functions import Dense, phi1, phis
from .output_hessian import SQUARES, UniformHessian

Vector = Float[Array, " entry"]

_SMALL = 1e-3  # below it A's difference loses digits; two terms in p reach 1e-7 of a correction


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
    assert isinstance(problem.action, Dense)  # as `has_spectrum` says, with the two below
    assert isinstance(start.hessian, UniformHessian)
    assert start.gram is not None
    return Spectrum(*problem.action.decompose(start.hessian.kappa * start.gram))


def integrals(
    values: Vector,
    drift: Float[Array, "entry entry"],
    start: Vector,
    span: Float[Array, ""] | float,
) -> tuple[Vector, Vector]:
    r"""$\int_0^s g\,\mathrm du$ to first order in the drift and $\int_0^s u\,g\,\mathrm du$ to order zero, from $g(0)$ = `start`."""
    x = span * values
    mean, second = phis(x, 2)
    first = span * mean * start - span**3 * (mixing(x[:, None], x[None, :]) * drift) @ start
    return first, span**2 * _rising(x, mean, second) * start


def mixing(p: Float[Array, "..."], q: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$A(p, q) = (\psi(q) - \int_0^1 v\,e^{-vq-(1-v)p}\,\mathrm dv)/p$ with $\psi(q) = \int_0^1 v e^{-vq}\,\mathrm dv$."""
    low, gap = jnp.minimum(p, q), jnp.abs(p - q)
    of_gap, of_q = phis(gap, 2), phis(q, 4)
    both = jnp.exp(-low) * jnp.where(q >= p, _rising(gap, *of_gap), of_gap[1])
    safe = jnp.where(p < _SMALL, 1.0, p)
    near = _humped(q, *of_q[1:3]) - p / 2 * (2 * of_q[2] - 6 * of_q[3])
    return jnp.where(p < _SMALL, near, (_rising(q, *of_q[:2]) - both) / safe)


def _rising(x, first, second):
    r"""$\psi(x) = \int_0^1 ve^{-vx}\,\mathrm dv = \varphi_1(-x) - \varphi_2(-x)$, without their cancellation at large $x$."""
    safe = jnp.where(x < 1, 1.0, x)
    return jnp.where(x < 1, first - second, (1 - jnp.exp(-safe) * (1 + safe)) / safe**2)


def _humped(x, second, third):
    r"""$\int_0^1 v(1-v)e^{-vx}\,\mathrm dv = \varphi_2(-x) - 2\varphi_3(-x)$, likewise."""
    safe = jnp.where(x < 1, 1.0, x)
    far = (1 - 2 / safe + jnp.exp(-safe) * (1 + 2 / safe)) / safe**2
    return jnp.where(x < 1, second - 2 * third, far)
