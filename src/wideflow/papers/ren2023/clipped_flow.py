r"""Clipped flow: every sample's mean-field gradient is projected before the average is taken."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..._core.errors import check_flag, check_positive
from ..._core.precision import double
from ..._core.randomness import named_key
from ..._core.trees import zeros_of
from ..._core.types import Key
from ...dynamics.base import AbstractDynamics
from .laws.thresholds import Thresholds, as_thresholds
from .separator.samples import Field, sample_field

SQUARES = ("HalfSumSquares", "HalfMeanSquares")


class ClippedState(eqx.Module):
    """Length of the next step, and what was projected so far.

    Attributes:
        count: steps taken.
        key: of the fresh samples; step k draws from it folded with k.
        field: velocity, projected pairs and batch loss of the last step (zero before the first).
        rate: length of the next step.
        held: pairs projected in all steps taken, for first layer, weights, biases.
        held_steps: in how many of them any was.
    """

    count: Int[Array, ""]
    key: Key
    field: Field
    rate: Float[Array, ""]
    held: Float[Array, "3"]
    held_steps: Int[Array, "3"]


class ClippedFlow(AbstractDynamics):
    r"""$\dot v_1 = E\,\Pi_{R_{v_1}}[g_{v_1}]$, $\dot v_2 = E\,\Pi_{R_{v_2}}[g_{v_2}]$,
    $\dot r_2 = E\,\Pi_{R_{r_2}}[g_{r_2}]$, in explicit steps (equation (4)).

    $g$ are one sample's mean-field gradients of $\frac12(f_* - f)^2$ for a `DepthSeparator`: a
    vector for a first-layer neuron, numbers for a second-layer weight and bias; $\Pi_R$ is the
    projection on the ball of radius $R$, per sample and neuron, before the average. The average
    runs over a `Radial` population, by its estimator, or over the samples of a dataset. Time
    belongs to $L = \frac12 E(f_* - f)^2$, a mean, also where `train` records another multiple of
    it.

    Args:
        rate: length of a step $\eta$; the longest one with `adaptive` or `resolve`.
        first, weight, bias: the bounds $R_{v_1}, R_{v_2}, R_{r_2}$; default $10d, d^3, 10$, `inf`
            for no projection.
        adaptive: shorten steps to $1/(2\lambda)$, $\lambda = M_0(\rho) + A^2 M_2(\rho)$ (see
            `step_bound`); needs a `Radial` population. Without negative weights on a heavy-tailed
            law $\lambda$ is infinite and the bound is not used.
        resolve: shorten steps to $0.1 \max(|\bar w_2|, \delta_2)/|\dot{\bar w}_2|$ with the
            velocity of the step before, so that Stage 1 is resolved.
        heun: take the mean of the velocities at both ends of an explicit step (second order).
    """

    longest: Float[Array, ""]
    first: float | None = eqx.field(static=True)
    weight: float | None = eqx.field(static=True)
    bias: float | None = eqx.field(static=True)
    adaptive: bool = eqx.field(static=True)
    resolve: bool = eqx.field(static=True)
    heun: bool = eqx.field(static=True)

    @double
    def __init__(
        self,
        rate: float,
        first: float | None = None,
        weight: float | None = None,
        bias: float | None = None,
        *,
        adaptive: bool = False,
        resolve: bool = False,
        heun: bool = False,
    ):
        check_positive(
            "rate", rate, "For its limit of infinite width use `limits.radial.reduced_flow`."
        )
        for name, bound in (("first", first), ("weight", weight), ("bias", bias)):
            if bound is not None and not (isinstance(bound, float) and bound == math.inf):
                check_positive(name, bound, "Infinity switches the projection off.")
        for name, flag in (("adaptive", adaptive), ("resolve", resolve), ("heun", heun)):
            check_flag(name, flag)
        self.longest = jnp.asarray(float(rate))
        self.first, self.weight, self.bias = first, weight, bias
        self.adaptive, self.resolve, self.heun = adaptive, resolve, heun

    @property
    def rate(self) -> Float[Array, ""]:
        """The constant step, NaN where steps vary."""
        return (
            jnp.full_like(self.longest, jnp.nan) if self.adaptive or self.resolve else self.longest
        )

    def thresholds(self, d: int) -> Thresholds:
        """The bounds in dimension `d`, defaults filled in."""
        own, standard = (self.first, self.weight, self.bias), Thresholds.standard(d)
        return as_thresholds([s if g is None else g for g, s in zip(own, standard, strict=True)])

    def init(self, model, objective, key):
        _check(model, objective, self.adaptive)
        key = named_key(key, "batches")
        if self.resolve:
            field = eqx.filter_jit(self.velocity)(model, objective, jax.random.fold_in(key, 0))
        else:
            field = zeros_of(self.velocity, model, objective, key)
        rate = self._length(model, objective, field)
        return ClippedState(
            jnp.zeros((), int), key, field, rate, jnp.zeros(3, field.pairs.dtype), jnp.zeros(3, int)
        )

    def velocity(self, model, objective, key: Key) -> Field:
        """The projected velocity at `model`."""
        clip = self.thresholds(model.first.shape[1])
        if hasattr(objective, "field"):
            return objective.field(model, clip, key)
        learner = (model.first, model.second_weight, model.second_bias)
        return sample_field(*learner, objective.features, objective.targets, clip)

    def step(self, model, state, objective):
        key = jax.random.fold_in(state.key, state.count)
        field = self.velocity(model, objective, key)
        moved = _move(model, field, state.rate)
        if self.heun:
            second = self.velocity(moved, objective, key)
            first, weight, bias = (
                0.5 * (a + b) for a, b in zip(field[:3], second[:3], strict=True)
            )
            mean = field._replace(first=first, weight=weight, bias=bias)
            moved = _move(model, mean, state.rate)
        rate = self._length(moved, objective, field)
        held, held_steps = state.held + field.pairs, state.held_steps + (field.pairs > 0)
        return moved, ClippedState(state.count + 1, state.key, field, rate, held, held_steps)

    def duration(self, state, model):
        return state.rate

    def _length(self, model, objective, field: Field):
        rate = self.longest
        if self.adaptive:
            bound = objective.step_bound(model)
            rate = jnp.where(jnp.isfinite(bound), jnp.minimum(rate, 0.5 / bound), rate)
        if self.resolve:
            w, b = model.second_weight, model.second_bias
            spread = jnp.hypot(jnp.ptp(w), jnp.ptp(b))
            scale = jnp.maximum(jnp.abs(w.mean()), spread)
            rate = jnp.minimum(
                rate, 0.1 * scale / jnp.maximum(jnp.abs(field.weight.mean()), 1e-300)
            )
        return rate.astype(self.longest.dtype)


def _move(model, field: Field, rate):
    where = lambda m: [m.first, m.second_weight, m.second_bias]
    steps = zip(where(model), field[:3], strict=True)
    return eqx.tree_at(where, model, [a + (rate * v).astype(a.dtype) for a, v in steps])


def _check(model, objective, adaptive: bool) -> None:
    if not {"first", "second_weight", "second_bias"} <= set(model.trained):
        raise ValueError(
            f"`ClippedFlow` moves a `DepthSeparator`, got {type(model).__name__}; use "
            "`GradientDescent` or `SGD`."
        )
    if hasattr(objective, "field"):
        return
    if adaptive:
        raise ValueError(
            "`adaptive` needs the moments of a law: train on `populations.Radial`, or leave it out."
        )
    if not hasattr(objective, "features") or type(objective.loss).__name__ not in SQUARES:
        raise ValueError(
            "`ClippedFlow` needs half squares of residuals on a dataset or a `Radial` population; "
            f"got {objective.describe()}."
        )
