r"""A loss on fixed training points as the linear system of the Gram-matrix exponential flow.

Along gradient flow the parameters and the output gradient $g$ obey a linear system whose matrix moves only as fast as features do,
$$\dot\theta = -cJ(\theta)^\top g,\qquad \dot g = -H\,\Theta(\theta)\,g,\qquad \Theta = JcJ^\top .$$
Frozen for a time $h$, it is solved by $\theta - cJ^\top h\varphi_1(-hH\Theta)g$ and $e^{-hH\Theta}g$, for any $h$: stiffness never limits the
step. `smooth_step` and `kinked_step` are made of such exponentials.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._core.trees import Parameters
from .curvature import AbstractCurvature, Uniform, curvature
from .losses import AbstractLoss
from .phi_functions import phi1, phi2
from .spectral_action import AbstractAction
from .tangents import AbstractTangents

Outputs = Float[Array, " sample *output"]


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

    def place_at(self, theta: Parameters, outputs: Outputs, point: PyTree) -> Place:
        cotangent = self.loss.value_and_gradient(outputs, self.targets)[1]
        bend = curvature(self.loss, outputs, self.targets)
        gram = self.tangents.gram(point) if self.action.dense else None
        return Place(theta, outputs, cotangent, bend, point, gram)

    def product(self, weights: Sequence[float], places: Sequence[Place], v: Outputs) -> Outputs:
        r"""$\sum_i a_i\Theta_i v$."""
        if self.action.dense:
            return (_combine(weights, places) @ v.ravel()).reshape(v.shape)
        t = self.tangents
        terms = (a * t.push(p.point, t.pull(p.point, v)) for a, p in zip(weights, places))
        return sum(terms, start=jnp.zeros_like(v))


def exponential(
    problem: GramProblem,
    weights: Sequence[float],
    places: Sequence[Place],
    cotangent: Outputs,
    size,
) -> tuple[Outputs, Outputs]:
    r"""$h\varphi_1(-hH\sum a_i\Theta_i)\,g$, the time integral of the cotangent, and $g$ after the step."""
    return exponentials(problem, weights, places, cotangent, [size])[0]


def exponentials(
    problem: GramProblem,
    weights: Sequence[float],
    places: Sequence[Place],
    cotangent: Outputs,
    sizes: Sequence,
) -> list[tuple[Outputs, Outputs]]:
    """The same after steps of several sizes, from one decomposition."""
    shape, bend = cotangent.shape, places[-1].curvature

    def act(operator, v: Outputs, *kinds) -> list[tuple[Outputs, ...]]:
        functions = [(lambda x, f=f, h=h: f(h * x)) for h in sizes for f in kinds]
        found = [w.reshape(shape) for w in problem.action(operator, v.ravel(), functions)]
        return [tuple(found[i : i + len(kinds)]) for i in range(0, len(found), len(kinds))]

    if isinstance(bend, Uniform):
        kappa = bend.kappa
        operator = _operator(problem, weights, places, lambda apply, v: apply(v), lambda m: m)
        both = act(operator, cotangent, lambda x: phi1(kappa * x), lambda x: jnp.exp(-kappa * x))
        return [(h * mean, after) for h, (mean, after) in zip(sizes, both)]
    # phi_k(-hHM)g = g/k! - hB phi_{k+1}(-hBMB) BMg: no inverse of B is needed
    operator = _operator(
        problem, weights, places, lambda apply, v: bend.times(apply(bend.times(v))), bend.around
    )
    start = bend.times(problem.product(weights, places, cotangent))
    part = lambda h, v: cotangent - h * bend.times(v)
    return [
        (h * part(h, twice), part(h, once))
        for h, (once, twice) in zip(sizes, act(operator, start, phi1, phi2))
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
