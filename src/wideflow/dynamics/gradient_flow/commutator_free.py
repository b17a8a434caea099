r"""A step of order three for smooth networks, and the path inside it.

Three exponentials make a commutator-free Lie-group method (celledoni2003),
$$Y_2 = e^{\frac13F_1}Y_0,\quad Y_3 = e^{\frac23F_2}Y_0,\quad Y =
  e^{-\frac1{12}F_1 + \frac34F_3}\,Y_2 ,\qquad F_i = hA(Y_i),$$
exact in the lazy regime. $Y_3$ need not be that exact: for squared losses with the Gram matrix at
hand it comes from the decay below with the drift seen at $Y_2$, which saves an eigen decomposition.
The same formula with the drift seen at $Y_3$ gives the path inside the step, and a cubic share of
what it misses at the end makes that path continuous. Elsewhere the path inside is unknown
(`CommutatorFreeAny`), and steps end where one looks.

How the output gradient decays under a Gram matrix whose eigen decomposition is at hand: frozen,
$\dot g = -\kappa\Theta g$ is solved eigenvector by eigenvector (`Spectrum`). Moving linearly,
$\dot g = -(\Lambda + uD)\,g$ is solved to first order in $D$: in the eigenbasis of the Gram matrix
at $u = 0$, $\Lambda = \mathrm{diag}(\lambda)$, with $x = s\lambda$ (Duhamel's formula, integrated
once more),
$$\int_0^s g_i\,\mathrm du = s\varphi_1(-x_i)\,g_i(0) - s^3\sum_j A(x_i, x_j)\,D_{ij}\,g_j(0),\qquad
  A(p, q) = \int_0^1 v(1-v)\,e^{-vq}\,\varphi_1(-(1-v)p)\,\mathrm dv .$$
Nothing in it grows with $\lambda$: stiff constraints come out right, and no second eigen
decomposition is needed.
"""

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .linearisation import (
    SQUARES,
    GramProblem,
    Linearisation,
    Outputs,
    UniformHessian,
    exponential,
    move,
)
from .matrix_functions import Dense, phi1, phis
from .step_base import AbstractDenseStep, AbstractStep, StepResult

Vector = Float[Array, " entry"]

EVALUATIONS = 3
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


class CommutatorFree(AbstractDenseStep):
    """Order three; three forward passes. For squared losses with the Gram matrix at hand."""

    def __call__(self, problem, start, size):
        third, frozen, g = size / 3, spectrum(problem, start), start.cotangent
        second = move(problem, start.theta, (1.0,), (start,), frozen.integral(g, third))
        middle = problem.linearise(second)
        late = problem.linearise(_drifted(problem, frozen, start, middle, third, 2 * third))
        weights, stages = (-1 / 12, 3 / 4), (start, late)
        # the last exponential starts at Y_2 = exp(F_1/3) Y_0, whose cotangent under the frozen
        # matrix is exp(-h Theta/3) g: both components of Y move by the same exponentials
        integral, after = exponential(problem, weights, stages, frozen.decayed(g, third), size)
        end = problem.linearise(move(problem, second, weights, stages, integral))
        highest_loss = jnp.maximum(middle.loss, late.loss)
        interpolant = (frozen, late.theta, late.gram)
        return StepResult(end, after, highest_loss, interpolant, jnp.asarray(EVALUATIONS))

    def empty_interpolant(self, problem, start):
        theta, gram = jax.tree.map(jnp.zeros_like, (start.theta, start.gram))
        return Spectrum(gram[0], gram), theta, gram

    def interpolate(self, problem, start, end, interpolant, size, time):
        frozen, theta, gram = interpolant
        outputs, jacobian = problem.operator.linearise(theta)
        late = dataclasses.replace(
            start, theta=theta, outputs=outputs, jacobian=jacobian, gram=gram
        )
        after = lambda span: _drifted(problem, frozen, start, late, 2 / 3 * size, span)
        # what the formula misses at the end is of order h^4, and so is a cubic share of it inside
        both = jax.lax.map(after, jnp.stack([time, size]))  # the formula is long: compiled once
        share = (time / size) ** 3
        return {
            name: inside + share * (end.theta[name] - at_end)
            for name, (inside, at_end) in both.items()
        }


class CommutatorFreeAny(AbstractStep):
    """The same order for any loss and any way to apply functions of the Gram matrix; no dense
    output.
    """

    def __call__(self, problem, start, size):
        def flow(theta, cotangent, weights, stages):
            integral, after = exponential(problem, weights, stages, cotangent, size)
            return move(problem, theta, weights, stages, integral), after

        second, g = flow(start.theta, start.cotangent, (1 / 3,), (start,))
        middle = problem.linearise(second)
        third, _ = flow(start.theta, start.cotangent, (2 / 3,), (middle,))
        late = problem.linearise(third)
        theta, g = flow(second, g, (-1 / 12, 3 / 4), (start, late))
        highest_loss = jnp.maximum(middle.loss, late.loss)
        return StepResult(problem.linearise(theta), g, highest_loss, (), jnp.asarray(EVALUATIONS))

    def empty_interpolant(self, problem, start):
        return ()


def _drifted(
    problem: GramProblem,
    frozen: Spectrum,
    start: Linearisation,
    other: Linearisation,
    distance,
    span,
):
    """The parameters after `span`, the linearisation moving in a straight line from `start` to
    `other`, `distance` away.
    """
    g, v = start.cotangent, frozen.vectors
    assert start.gram is not None  # a `Spectrum` is that of a Gram matrix at hand
    assert other.gram is not None
    assert isinstance(start.hessian, UniformHessian)  # of a squared loss
    drift = start.hessian.kappa * (other.gram - start.gram) / distance
    both = integrals(frozen.rates, v.T @ drift @ v, frozen.parts(g), span)
    integral, rising = (frozen.whole(part, g) for part in both)
    # J moves linearly too: J(u) = J + (u / distance)(J_other - J), hence the integrals of g and of
    # u g
    theta = move(problem, start.theta, (1.0,), (start,), integral - rising / distance)
    return move(problem, theta, (1.0,), (other,), rising / distance)


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
    r"""$\int_0^s g\,\mathrm du$ to first order in the drift and $\int_0^s u\,g\,\mathrm du$ to
    order zero, from $g(0)$ = `start`.
    """
    x = span * values
    of_x = phis(x, 4)
    # phi_1 and phi_2
    mean, second = of_x[:2]
    mixed = mixing(x[:, None], x[None, :], [phi[None, :] for phi in of_x])
    first = span * mean * start - span**3 * (mixed * drift) @ start
    return first, span**2 * _rising(x, mean, second) * start


def mixing(
    p: Float[Array, "..."], q: Float[Array, "..."], of_q: Sequence[Float[Array, "..."]]
) -> Float[Array, "..."]:
    r"""$A(p, q) = (\psi(q) - \int_0^1 v\,e^{-vq-(1-v)p}\,\mathrm dv)/p$ with
    $\psi(q) = \int_0^1 v e^{-vq}\,\mathrm dv$.

    `of_q` are `phis(q, 4)`.
    """
    low, gap = jnp.minimum(p, q), jnp.abs(p - q)
    of_gap = phis(gap, 2)
    # the smaller exponent in front: with q >= p what is left is int v e^{-v gap} = psi(gap), with q
    # < p it is int v e^{-(1-v) gap} = phi_2(-gap)
    both = jnp.exp(-low) * jnp.where(q >= p, _rising(gap, *of_gap), of_gap[1])
    safe = jnp.where(p < _SMALL, 1.0, p)
    # phi_1(-(1-v) p) = 1 - (1-v) p/2 + O(p^2), and int v (1-v)^2 e^{-vq} = 2 phi_3(-q) - 6
    # phi_4(-q)
    near = _humped(q, *of_q[1:3]) - p / 2 * (2 * of_q[2] - 6 * of_q[3])
    return jnp.where(p < _SMALL, near, (_rising(q, *of_q[:2]) - both) / safe)


def _rising(x, first, second):
    r"""$\psi(x) = \int_0^1 ve^{-vx}\,\mathrm dv = \varphi_1(-x) - \varphi_2(-x)$, without their
    cancellation at large $x$.
    """
    safe = jnp.where(x < 1, 1.0, x)
    # at large x both phis are near 1/x and their difference near 1/x^2; in parts no digit is lost
    return jnp.where(x < 1, first - second, (1 - jnp.exp(-safe) * (1 + safe)) / safe**2)


def _humped(x, second, third):
    r"""$\int_0^1 v(1-v)e^{-vx}\,\mathrm dv = \varphi_2(-x) - 2\varphi_3(-x)$, likewise."""
    safe = jnp.where(x < 1, 1.0, x)
    far = (1 - 2 / safe + jnp.exp(-safe) * (1 + 2 / safe)) / safe**2
    return jnp.where(x < 1, second - 2 * third, far)
