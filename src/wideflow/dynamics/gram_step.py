r"""One step of the Gram-matrix exponential flow.

Along gradient flow the parameters and the output gradient $g$ obey a linear system whose matrix moves only as fast as features do,
$$\dot\theta = -cJ(\theta)^\top g,\qquad \dot g = -H\,\Theta(\theta)\,g,\qquad \Theta = JcJ^\top .$$
Frozen for a time $h$, it is solved by $\theta - cJ^\top h\varphi_1(-hH\Theta)g$ and $e^{-hH\Theta}g$, for any $h$: stiffness never limits the
step. For smooth networks three such exponentials make a commutator-free Lie-group method of order three (celledoni2003):
$$Y_2 = e^{\frac13F_1}Y_0,\quad Y_3 = e^{\frac23F_2}Y_0,\quad Y = e^{-\frac1{12}F_1 + \frac34F_3}\,Y_2 ,\qquad F_i = hA(Y_i).$$
With kinks a second exponential with the mean slopes of the first (`kink_slopes`) takes their place. Both are exact in the lazy regime.

The error estimate costs nothing: the propagated $g$ must equal the gradient at the new outputs; the difference is the defect.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._core.trees import Parameters
from .curvature import AbstractCurvature, Uniform, curvature
from .kink_slopes import mean_slopes
from .losses import AbstractLoss
from .phi_functions import phi1, phi2
from .spectral_action import AbstractAction
from .tangents import AbstractTangents, ShallowTangents

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
    shape, bend = cotangent.shape, places[-1].curvature
    if isinstance(bend, Uniform):
        rate = size * bend.kappa
        operator = _operator(problem, weights, places, lambda apply, v: apply(v), lambda m: m)
        mean, after = problem.action(
            operator, cotangent.ravel(), [lambda x: phi1(rate * x), lambda x: jnp.exp(-rate * x)]
        )
        return size * mean.reshape(shape), after.reshape(shape)
    # phi_k(-hHM)g = g/k! - hB phi_{k+1}(-hBMB) BMg: no inverse of B is needed
    operator = _operator(
        problem, weights, places, lambda apply, v: bend.times(apply(bend.times(v))), bend.around
    )
    start = bend.times(problem.product(weights, places, cotangent))
    once, twice = problem.action(
        operator, start.ravel(), [lambda x: phi1(size * x), lambda x: phi2(size * x)]
    )
    after = cotangent - size * bend.times(once.reshape(shape))
    return size * (cotangent - size * bend.times(twice.reshape(shape))), after


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


def _move(problem, theta, weights, places, integral):
    for a, place in zip(weights, places):
        pulled = problem.tangents.pull(place.point, a * integral)
        theta = {name: theta[name] - pulled[name] for name in theta}
    return theta


def smooth_step(problem: GramProblem, place: Place, size) -> tuple[Place, Outputs]:
    """The place after a step of order three, and the cotangent it was meant to have."""

    def flow(theta, cotangent, weights, places):
        integral, after = exponential(problem, weights, places, cotangent, size)
        return _move(problem, theta, weights, places, integral), after

    second, g = flow(place.theta, place.cotangent, (1 / 3,), (place,))
    middle = problem.place(second)
    third, _ = flow(place.theta, place.cotangent, (2 / 3,), (middle,))
    late = problem.place(third)
    theta, g = flow(second, g, (-1 / 12, 3 / 4), (place, late))
    return problem.place(theta), g


def kinked_step(problem: GramProblem, place: Place, size) -> tuple[Place, Outputs]:
    """The same for a shallow network with a kink at 0: predict, average the slopes, step once more."""
    t = problem.tangents
    assert isinstance(t, ShallowTangents)
    low, high = (t.activation.slope(jnp.asarray(side)) for side in (-1.0, 1.0))
    z = t.preactivations(place.theta)
    integral, _ = exponential(problem, (1.0,), (place,), place.cotangent, size)
    moved = -(t.features @ t.pull(place.point, integral)["weights"])
    own = -jnp.diagonal(t.inner)[:, None] * t.spread(integral)
    mean, end = mean_slopes(z, place.point, own, moved, low, high)
    averaged = problem.place_at(place.theta, place.outputs, mean)
    integral, g = exponential(problem, (1.0,), (averaged,), place.cotangent, size)
    theta = _move(problem, place.theta, (1.0,), (averaged,), integral)
    now = t.preactivations(theta)
    partial = (end > low) & (end < high)
    slopes = jnp.where(partial, end, t.activation.slope(now))
    return problem.place_at(theta, t.respond(now), slopes), g
