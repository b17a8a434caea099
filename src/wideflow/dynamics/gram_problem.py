r"""A loss on fixed training points as the linear system of the Gram-matrix exponential flow.

Along gradient flow the parameters and the output gradient $g$ obey a linear system whose matrix moves only as fast as features do,
$$\dot\theta = -cJ(\theta)^\top g,\qquad \dot g = -H\,\Theta(\theta)\,g,\qquad \Theta = JcJ^\top .$$
Frozen for a time $h$, it is solved by $\theta - cJ^\top h\varphi_1(-hH\Theta)g$ and $e^{-hH\Theta}g$, for any $h$: stiffness never limits the
step. `smooth_step` and `kinked_step` are made of such exponentials.
"""

import math
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._core.trees import Parameters
from .curvature import AbstractCurvature, Uniform, curvature
from .losses import AbstractLoss
from .phi_functions import phi1, phi2, phi3
from .spectral_action import AbstractAction
from .tangents import AbstractTangents

Outputs = Float[Array, " sample *output"]

PHI = (lambda x: jnp.exp(-x), phi1, phi2, phi3)


class Place(eqx.Module):
    """Parameters with their outputs, output gradient, curvature, and linearisation."""

    theta: Parameters
    outputs: Outputs
    cotangent: Outputs
    curvature: AbstractCurvature
    point: PyTree
    gram: Float[Array, "entry entry"] | None


class GramProblem(eqx.Module):
    """A loss on fixed training points, linearised where asked."""

    tangents: AbstractTangents
    targets: Outputs
    loss: AbstractLoss
    action: AbstractAction

    def place(self, theta: Parameters) -> Place:
        outputs, point = self.tangents.at(theta)
        return self.place_at(theta, outputs, point)

    def place_at(self, theta: Parameters, outputs: Outputs, point: PyTree, gram=None) -> Place:
        """`gram` where it is known already."""
        cotangent = self.loss.value_and_gradient(outputs, self.targets)[1]
        bend = curvature(self.loss, outputs, self.targets)
        if gram is None and self.action.dense:
            gram = self.tangents.gram(point)
        return Place(theta, outputs, cotangent, bend, point, gram)

    def product(self, weights: Sequence[float], places: Sequence[Place], v: Outputs) -> Outputs:
        r"""$\sum_i a_i\Theta_i v$."""
        if self.action.dense:
            return (_combine(weights, places) @ v.ravel()).reshape(v.shape)
        t = self.tangents
        terms = (a * t.push(p.point, t.pull(p.point, v)) for a, p in zip(weights, places))
        return sum(terms, start=jnp.zeros_like(v))


def exponential(
    problem: GramProblem, weights: Sequence[float], places: Sequence[Place], cotangent: Outputs,
    size, forcing: Outputs | None = None,
) -> tuple[Outputs, Outputs]:  # fmt: skip
    r"""$h\varphi_1(-hH\sum a_i\Theta_i)\,g$, the time integral of the cotangent, and $g$ after the step.

    With a `forcing` $f$ those of $\dot g = -H\sum a_i\Theta_i\,g + f$.
    """
    return exponentials(problem, weights, places, cotangent, [size], forcing)[0]


def exponentials(
    problem: GramProblem, weights: Sequence[float], places: Sequence[Place], cotangent: Outputs,
    sizes: Sequence, forcing: Outputs | None = None,
) -> list[tuple[Outputs, Outputs]]:  # fmt: skip
    """The same after steps of several sizes, from one decomposition."""
    bend = places[-1].curvature
    sources = [cotangent] if forcing is None else [cotangent, forcing]
    orders = range(len(sources))  # h^k phi_k and h^(k+1) phi_(k+1) act on the k-th

    def act(operator, starts: Sequence[Outputs], shift: int, scale) -> list[list[list[Outputs]]]:
        """phi_(k+shift) and phi_(k+1+shift) of the k-th start, for every size."""
        asked = [
            (v.ravel(), [(lambda x, f=PHI[k + shift + i], h=h: f(scale * h * x)) for h in sizes for i in (0, 1)])
            for k, v in enumerate(starts)
        ]  # fmt: skip
        found = problem.action(operator, asked)
        shaped = [[w.reshape(cotangent.shape) for w in vectors] for vectors in found]
        return [[v[2 * j : 2 * j + 2] for v in shaped] for j in range(len(sizes))]

    if isinstance(bend, Uniform):
        operator = _operator(problem, weights, places, lambda apply, v: apply(v), lambda m: m)
        pairs = act(operator, sources, 0, bend.kappa)
    else:  # phi_k(-hHM)v = v/k! - hB phi_{k+1}(-hBMB) BMv: no inverse of B is needed
        operator = _operator(
            problem, weights, places, lambda apply, v: bend.times(apply(bend.times(v))), bend.around
        )
        starts = [bend.times(problem.product(weights, places, v)) for v in sources]
        pairs = [
            [
                [v / math.factorial(k + i) - h * bend.times(w) for i, w in enumerate(pair)]
                for k, (v, pair) in enumerate(zip(sources, found))
            ]
            for h, found in zip(sizes, act(operator, starts, 1, 1.0))
        ]
    return [
        (sum(h ** (k + 1) * found[k][1] for k in orders), sum(h**k * found[k][0] for k in orders))
        for h, found in zip(sizes, pairs)
    ]


def _operator(problem, weights, places, around_map, around_matrix):
    if problem.action.dense:
        return around_matrix(_combine(weights, places))
    shape = places[0].cotangent.shape

    def apply(v):
        whole = around_map(lambda w: problem.product(weights, places, w), v.reshape(shape))
        return whole.ravel()

    return apply


def _combine(weights, places):
    terms = (a * p.gram for a, p in zip(weights, places))
    return sum(terms, start=jnp.zeros(()))


def move(problem, theta, weights, places, integral) -> Parameters:
    r"""$\theta - \sum_i a_i\,cJ_i^\top\bar g$."""
    for a, place in zip(weights, places):
        pulled = problem.tangents.pull(place.point, a * integral)
        theta = {name: theta[name] - pulled[name] for name in theta}
    return theta
