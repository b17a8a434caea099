r"""What kinks and curvature do along a run: flipped and stuck masks, decay rates, the velocity of
the tangent Gram (caron2023).

The ReLU flow is not a classical solution of $\dot u = -\widehat\Theta\,(u-y)$: pre-activations
reach zero and slide along it (errata of Lemma D.1). A descent with small steps then alternates the
mask of such a stuck pair, and the matrix that governs the decay is
$\widehat\Theta(\bar S) = \frac1dXX^\top\odot\bar S\,\mathrm{diag}(\lambda)\,\bar S^\top$ with
$\bar S\in[0,1]$ the mask averaged over many steps (the Filippov selection), not the one with the
hard mask. `MaskAveraging` measures $\bar S$, and `Sliding` sets both rates beside the observed one.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from ...._core.arrays import real_array
from ...._core.errors import check_kind
from ...._core.precision import double
from ....data.dataset import DatasetObjective
from ....dynamics.base import AbstractDynamics
from ....dynamics.losses import HalfSumSquares
from ....models.shallow import Shallow
from ....observables.base import (
    AbstractObservable,
    SampleSnapshot,
    ShallowSnapshot,
    one_residual,
    probe_features,
)
from ....observables.kernels import gram_of_features
from ....training.train import train


class Flips(AbstractObservable):
    r"""$F_t = \#\{(i,j):\sigma'(Z_{ij}(t))\ne\sigma'(Z_{ij}(0))\}$, for activations of constant
    slope on each side of a kink.
    """

    name: str = eqx.field(static=True, default="flips")
    label: str = eqx.field(static=True, default="flipped (input, node) pairs")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot: ShallowSnapshot):
        now, start = (
            _slopes(m, probe_features(snapshot, None)) for m in (snapshot.model, snapshot.start)
        )
        return jnp.sum(now != start).astype(jnp.float64)


class GradientChange(AbstractObservable):
    r"""$\Phi = \frac1d\sum_i|x_i|^2\sum_j\lambda_j(\sigma'(Z_{ij}(t))-\sigma'(Z_{ij}(0)))^2 =
    \lVert\nabla f(W_t)-\nabla f(W_0)\rVert_F^2$, for output weights $A$ other than signs with
    $\lambda_j\sum_kA_{kj}^2$ for $\lambda_j$.
    """

    name: str = eqx.field(static=True, default="gradient_change")
    label: str = eqx.field(static=True, default="‖∇f(W_t) − ∇f(W_0)‖²")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot: ShallowSnapshot):
        features = probe_features(snapshot, None)
        mixed = jnp.atleast_2d(snapshot.model.scales * snapshot.model.output)
        weights = jnp.sum(mixed**2, axis=0)
        return gradient_change(snapshot.model, snapshot.start, features, weights)


class DecayRate(AbstractObservable):
    r"""$2\,r^\top\widehat\Theta r/r^\top r$: the rate $-\mathrm d\log L/\mathrm dt$ that the
    tangent Gram promises at this moment.
    """

    name: str = eqx.field(static=True, default="decay_rate")
    label: str = eqx.field(static=True, default="2 rᵀΘr / rᵀr")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot: SampleSnapshot):
        features = probe_features(snapshot, None)
        gram = gram_of_features(snapshot.model, features, features).astype(jnp.float64)
        residual = one_residual(snapshot)
        return decay_rate(gram, residual.astype(jnp.float64))


class SmallestPreactivation(AbstractObservable):
    r"""$\min_{ij}|Z_{ij}|$: below about $10^{-7}$ rounding decides a ReLU's mask and two programs
    may part.
    """

    name: str = eqx.field(static=True, default="smallest_preactivation")
    label: str = eqx.field(static=True, default="min |Z|")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot: ShallowSnapshot):
        return jnp.min(jnp.abs(probe_features(snapshot, None) @ snapshot.model.weights))


class KernelSpeed(AbstractObservable):
    r"""$\lVert\mathrm d\widehat\Theta/\mathrm dt\rVert_2$ by `kernel_velocity`; smooth
    activations.
    """

    name: str = eqx.field(static=True, default="kernel_speed")
    label: str = eqx.field(static=True, default="‖dΘ/dt‖₂")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot: ShallowSnapshot):
        one_residual(snapshot)
        velocity = _velocity(
            snapshot.model, probe_features(snapshot, None), snapshot.objective.targets
        )
        return jnp.max(jnp.abs(jnp.linalg.eigvalsh(velocity.astype(jnp.float64))))


@double
def kernel_velocity(model: Shallow, inputs, targets) -> Float[Array, "sample sample"]:
    r"""$\mathrm d\widehat\Theta/\mathrm dt$ under gradient flow on the half sum of squares,
    exactly, for smooth $\sigma$ and any weights.

    $\dot Z = \frac1dXX^\top(S\odot(y-u)1^\top)\,\mathrm{diag}(\sqrt\lambda a)$,
    $B = \sigma''(Z)\odot\dot Z$, $\dot{\widehat\Theta} =
    \frac1dXX^\top\odot(B\,\mathrm{diag}(\lambda)S^\top + S\,\mathrm{diag}(\lambda)B^\top)$.

    Args:
        model: a `Shallow` network with one output.
        inputs: $X$, shape (sample, feature).
        targets: $y$, shape (sample,).
    """
    if model.output.ndim != 1:
        raise ValueError(
            f"`model` must have one output without an axis, got {len(model.output)} outputs."
        )
    if model.activation.kinks:
        raise ValueError(
            "`model` must have a smooth activation for its kernel to have a velocity, got "
            f"{model.activation.name!r}."
        )
    features = model.embed(real_array("inputs", inputs, "(sample, feature)"))
    return _velocity(model, features, real_array("targets", targets, f"({len(features)},)"))


def _velocity(model: Shallow, features, targets):
    z = features @ model.weights
    mixed = model.scales * model.output
    slopes, products = model.activation.slope(z), features @ features.T
    remaining = targets - model.activation.value(z) @ mixed
    bends = model.activation.bend(z) * (
        products @ (slopes * remaining[:, None] * mixed) * model.rate_factor
    )
    half = (bends * (model.rate_factor * mixed**2)) @ slopes.T
    return products * (half + half.T)


def gradient_change(model: Shallow, start: Shallow, features, node_weights):
    r"""$\Phi$ of `GradientChange` with node weights of choice, such as one part of a split
    scaling.
    """
    difference = (_slopes(model, features) - _slopes(start, features)) ** 2 @ node_weights
    return jnp.sum(jnp.sum(features**2, axis=1) * difference)


def decay_rate(
    gram: Float[Array, "sample sample"], residual: Float[Array, " sample"]
) -> Float[Array, ""]:
    r"""$2\,r^\top\Theta r/r^\top r$."""
    return 2.0 * residual @ gram @ residual / jnp.vdot(residual, residual)


def _slopes(model: Shallow, features):
    return model.activation.slope(features @ model.weights)


class MaskState(NamedTuple):
    """State of `MaskAveraging`: the inner dynamics' state, the sum of masks and the number of
    steps.
    """

    inner: PyTree
    total: Float[Array, "sample width"]
    count: Array

    @property
    @double
    def mean(self) -> Float[Array, "sample width"]:
        return self.total / self.count


class MaskAveraging(AbstractDynamics):
    r"""Another dynamics, with $\sigma'(Z)$ at the training inputs summed over its steps: the
    averaged mask $\bar S$ of a window.

    Args:
        dynamics: what moves the network.
    """

    dynamics: AbstractDynamics

    def __check_init__(self):
        check_kind("dynamics", self.dynamics, AbstractDynamics, "a dynamics, such as `SGD(0.1)`")

    def init(self, model: Shallow, objective: DatasetObjective, key):
        mask = jnp.zeros_like(objective.features @ model.weights)
        return MaskState(self.dynamics.init(model, objective, key), mask, jnp.zeros((), mask.dtype))

    def step(self, model: Shallow, state, objective: DatasetObjective):
        total = state.total + _slopes(model, objective.features)
        moved, inner = self.dynamics.step(model, state.inner, objective)
        return moved, MaskState(inner, total, state.count + 1)

    def duration(self, state, model):
        return self.dynamics.duration(state.inner, model)


class Sliding(NamedTuple):
    r"""A window of descent seen three ways (rates are $-\mathrm d\log L/\mathrm dt$ or lower bounds
    of it).

    Attributes:
        observed: from the losses at both ends of the window.
        hard: $2\lambda_{\min}(\widehat\Theta)$ with the 0/1 mask at the end of the window.
        averaged: $2\lambda_{\min}(\widehat\Theta(\bar S))$ with the averaged mask.
        stuck: pairs whose mean mask lies strictly between 0.02 and 0.98.
        pairs: all (input, node) pairs.
        mask: $\bar S$. model: the network after the window.
    """

    observed: float
    hard: float
    averaged: float
    stuck: int
    pairs: int
    mask: Float[np.ndarray, "sample width"]
    model: Shallow


@double
def sliding(model: Shallow, data, dynamics: AbstractDynamics, steps: int = 300) -> Sliding:
    """Runs a window of `steps` steps on the half sum of squares and compares hard and averaged
    masks with the observed decay.

    Args:
        model: where the window begins.
        data: the training set.
        dynamics: a descent, whose masks are averaged.
        steps: the length of the window.
    """
    run = train(
        model, data, MaskAveraging(dynamics), steps=steps, every=steps, loss=HalfSumSquares()
    )
    losses, times = run.table["loss"].values, run.table["time"].values
    observed = math.log(losses[0] / losses[-1]) / (times[-1] - times[0])
    mask = run.state.mean.astype(jnp.float64)
    features = run.model.embed(data.inputs).astype(jnp.float64)
    weights = run.model.rate_factor * (run.model.scales * run.model.output).astype(jnp.float64) ** 2
    hard, averaged = (
        2.0 * float(jnp.linalg.eigvalsh((features @ features.T) * ((s * weights) @ s.T))[0])
        for s in (_slopes(run.model, features), mask)
    )
    stuck = int(jnp.sum((mask > 0.02) & (mask < 0.98)))
    return Sliding(observed, hard, averaged, stuck, mask.size, np.asarray(mask), run.model)
