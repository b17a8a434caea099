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

from ..._core.trees import Parameters
from ..losses import AbstractLoss
from .jacobian import AbstractTangents
from .matrix_functions import AbstractAction
from .output_hessian import AbstractCurvature, Uniform, curvature
from .phi_functions import phi1, phi2, phi3

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
        return self.product_map(weights, places)(v)

    def product_map(self, weights: Sequence[float], places: Sequence[Place]):
        r"""$v \mapsto \sum_i a_i\Theta_i v$."""
        if self.action.dense:
            matrix = _combine(weights, places)
            return lambda v: (matrix @ v.ravel()).reshape(v.shape)
        maps = [self.tangents.gram_map(place.point) for place in places]
        return lambda v: sum((a * f(v) for a, f in zip(weights, maps)), start=jnp.zeros_like(v))


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
    bend, uniform = places[-1].curvature, isinstance(places[-1].curvature, Uniform)
    act = problem.action(_operator(problem, weights, places))

    def phis(v: Outputs, k: int) -> list[tuple[Outputs, Outputs]]:
        r"""$\varphi_k(-hH\sum a_i\Theta_i)\,v$ and $\varphi_{k+1}$ of the same, for every size $h$."""
        if uniform:
            start, scale, used = v, bend.kappa, PHI[k : k + 2]
        else:  # phi_k(-hHM)v = v/k! - hB phi_{k+1}(-hBMB) BMv: no inverse of B is needed
            start, scale, used = bend.times(problem.product(weights, places, v)), 1.0, PHI[k + 1 : k + 3]  # fmt: skip
        functions = [(lambda x, f=f, h=h: f(scale * h * x)) for h in sizes for f in used]
        found = [w.reshape(v.shape) for w in act(start.ravel(), functions)]
        both = list(zip(found[::2], found[1::2]))
        if uniform:
            return both
        part = lambda order, h, w: v / math.factorial(order) - h * bend.times(w)
        return [(part(k, h, a), part(k + 1, h, b)) for h, (a, b) in zip(sizes, both)]

    free = [(h * mean, after) for h, (after, mean) in zip(sizes, phis(cotangent, 0))]
    if forcing is None:
        return free
    return [
        (integral + h**2 * twice, after + h * once)
        for h, (integral, after), (once, twice) in zip(sizes, free, phis(forcing, 1))
    ]


def _operator(problem: GramProblem, weights, places):
    r"""$M$, or $BMB$ where the curvature is not uniform: a matrix or the map."""
    bend = places[-1].curvature
    uniform = isinstance(bend, Uniform)
    if problem.action.dense:
        return _combine(weights, places) if uniform else bend.around(_combine(weights, places))

    product = problem.product_map(weights, places)

    def apply(v):
        v = v.reshape(places[0].cotangent.shape)
        return (product(v) if uniform else bend.times(product(bend.times(v)))).ravel()

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
