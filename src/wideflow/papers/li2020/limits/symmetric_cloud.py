r"""Infinite width with conditional symmetry: clouds of neurons closed under sign flips (li2020,
section 3.1, App. A, B).

A law $P$ is conditionally symmetric when independent sign flips of the coordinates (in the target's
basis) leave it unchanged (corrected: Definition 3.1 must condition on $w_{-i}$, not $w_{-j}$). Then
$\mathbb E ww^\top$ is diagonal, order 1 vanishes and the update keeps the property (Claim 3.1).
Here $P$ is the orbit of finitely many representatives under a finite group $G$ of sign vectors.
Only representatives move, in the exact field of their orbit (all orders at once), which commutes
with $G$ because the target does. Tracers are particles that feel the field and make none: they are
what the neurons of a finite network would do at infinite width (`coupling`).
"""

import functools
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.linalg import hadamard

from ...._core.arc_cosine import abs_pair
from ...._core.arrays import real_array
from ...._core.errors import (
    check_between,
    check_callable,
    check_choice,
    check_count,
    check_flag,
    check_kind,
    check_positive,
)
from ...._core.memory import budget
from ...._core.polar import polar
from ...._core.precision import AbstractResult, double
from ...._core.randomness import named_key, normal
from ...._core.tiles import by_rows
from ...._core.types import Key
from .hermite import field, population_gradient, target_moments

__all__ = [
    "CloudRun",
    "Coupling",
    "SymmetricCloud",
    "coupling",
    "evolve",
    "sign_group",
    "truncated",
]

GROUPS = ("full", "hadamard", "pairs")


def sign_group(features: int, kind: str = "full", variant: str = "abs") -> np.ndarray:
    r"""Sign vectors $G$, shape (group, feature), closed under elementwise products.

    "full": exact conditional symmetry, $2^{d-1}$ rows for `abs` (where $w$ and $-w$ are one
    neuron), $2^d$ for ReLU. "hadamard": rows of the Sylvester-Hadamard matrix of order
    $2^{\lceil\log_2d\rceil}$ on $d$ columns (with their negatives for ReLU): $\mathbb Eww^\top$
    exactly diagonal at any $d$, higher odd moments partly removed. "pairs": $\pm1$ alone, which
    removes order 1.

    Args:
        features: $d$.
        kind: "full", "hadamard" or "pairs".
        variant: the learner: "abs", "relu2" or "relu1".

    >>> sign_group(2).tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    check_count("features", features)
    check_choice("kind", kind, GROUPS)
    check_choice("variant", variant, ("abs", "relu1", "relu2"))
    if kind == "pairs":
        return np.array([[1.0], [-1.0]]) * np.ones(features)
    if kind == "full":
        if features > 16:
            raise ValueError(
                f"`kind` 'full' has 2^(d-1) signs, too many for d = {features}. Use 'hadamard'."
            )
        bits = np.arange(2 ** (features - 1))[:, None] >> np.arange(features - 2, -1, -1) & 1
        group = np.concatenate([np.ones((len(bits), 1)), 1.0 - 2.0 * bits], axis=1)
    else:
        order = 2 ** math.ceil(math.log2(features)) if features > 1 else 1
        group = hadamard(order)[:, :features].astype(float)
    return group if variant == "abs" else np.concatenate([group, -group])


class SymmetricCloud(AbstractResult):
    r"""The uniform law on the orbit $\{s\circ w : s \in G, w \in \text{representatives}\}$.

    Args:
        representatives: shape (particle, feature).
        signs: the group $G$, shape (group, feature), from `sign_group`.
        variant: the learner, see `hermite`.
    """

    representatives: Float[Array, "particle feature"]
    signs: Float[Array, "group feature"]
    variant: str = eqx.field(static=True)

    @double
    def __init__(self, representatives, signs=None, variant: str = "abs"):
        w = real_array("representatives", representatives)
        if w.ndim != 2:
            raise ValueError(
                f"`representatives` must have shape (particle, feature), got {w.shape}."
            )
        if signs is None or isinstance(signs, str):
            signs = sign_group(w.shape[1], signs or "full", variant)
        s = real_array("signs", signs).astype(jnp.float64)
        if s.ndim != 2 or s.shape[1] != w.shape[1]:
            raise ValueError(f"`signs` must have shape (group, {w.shape[1]}), got {s.shape}.")
        check_choice("variant", variant, ("abs", "relu1", "relu2"))
        self.representatives, self.signs, self.variant = w.astype(jnp.float64), s, variant

    @classmethod
    @double
    def init(
        cls,
        key: Key,
        *,
        features: int,
        particles: int,
        signs: str = "full",
        variant: str = "abs",
        balanced: bool = True,
    ) -> "SymmetricCloud":
        r"""Representatives from $\mathcal N(0, I/d)$; `balanced` rescales columns so that
        $\mathbb Ew_i^2 = 1/d$ exactly.

        Args:
            features: $d$.
            particles: how many representatives.
            signs: the kind of group, as in `sign_group`.
            variant: the learner, see `hermite`.
            balanced: whether columns are rescaled.
        """
        check_count("features", features)
        check_count("particles", particles)
        check_flag("balanced", balanced)
        w = normal(named_key(key, "representatives"), (particles, features)) / features**0.5
        if balanced:
            w = w / jnp.sqrt(features * jnp.mean(w**2, axis=0))
        return cls(w, sign_group(features, signs, variant), variant)

    @double
    def orbit(self) -> Float[Array, "neuron feature"]:
        """All neurons, representatives varying fastest."""
        return (self.signs[:, None, :] * self.representatives).reshape(-1, self.signs.shape[1])

    @double
    def field(
        self, particles, coefficients, memory: int | str | None = None
    ) -> Float[Array, "particle feature"]:
        r"""$\nabla_vL_\infty(P)$ at `particles`: the mean-field gradient, all orders."""
        return field(particles, self.orbit(), coefficients, variant=self.variant, memory=memory)

    @double
    def loss(self, coefficients, memory: int | str | None = None) -> Float[Array, ""]:
        r"""$L_\infty(P)$, from pairs (representative, orbit) alone: the group makes all rows of an
        orbit alike.
        """
        return _cloud_loss(
            self, real_array("coefficients", coefficients).astype(jnp.float64), budget(memory)
        )

    @double
    def second_moments(self) -> Float[Array, " feature"]:
        r"""$\mathbb Ew_i^2$, the diagonal of $\mathbb Eww^\top$."""
        return jnp.mean(self.representatives**2, axis=0)


@functools.partial(jax.jit, static_argnames="memory")
def _cloud_loss(cloud, a, memory):
    orbit = cloud.orbit()
    relu = cloud.variant != "abs"
    even = 0.5 if cloud.variant == "relu1" else 1.0
    p = even * jnp.sum(cloud.representatives**2, axis=1)
    p_orbit = jnp.tile(p, cloud.signs.shape[0]) / orbit.shape[0]
    _, unit = polar(orbit)

    def rows(u):
        cosines = u @ unit.T
        kernel = abs_pair(cosines) + (cosines if relu else 0.0)
        return kernel @ p_orbit - 2 * abs_pair(u[:, : a.shape[0]]) @ a

    mixed = by_rows(rows, unit[: p.shape[0]], bytes_per_row=32 * sum(orbit.shape), memory=memory)
    return jnp.mean(p * mixed) + target_moments(a)[1]


class CloudRun(NamedTuple):
    r"""Records of an evolving cloud; the last axis of the arrays is the feature.

    Attributes:
        times: of the records, shape (time,).
        losses: $L_\infty$ of the cloud, shape (time,).
        representatives: shape (time, particle, feature).
        tracers: shape (time, tracer, feature), or None.
    """

    times: np.ndarray
    losses: np.ndarray
    representatives: np.ndarray
    tracers: np.ndarray | None


@double
def evolve(
    cloud: SymmetricCloud,
    coefficients,
    rate: float | int,
    steps: int,
    *,
    every: int | None = None,
    tracers=None,
    cap: float | int = math.inf,
    memory: int | str | None = None,
) -> tuple[SymmetricCloud, CloudRun]:
    r"""(Truncated) mean-field descent of a cloud:
    $v \leftarrow v - \eta\,\mathbb 1\{\|v\|^2 \le \text{cap}\}\nabla_vL_\infty(P)$, eq. (2.6).

    Args:
        rate: mean-field $\eta$; time is `rate` times steps.
        every: steps between records, default a hundredth.
        tracers: passive particles, moved in the same field.
        cap: truncation $1/\lambda$ of $\|v\|^2$.
        cloud: where it starts.
        coefficients: $a$ of the target, one a feature.
        steps: how many.
        memory: the budget for pair matrices, such as "512M".
    """
    check_kind("cloud", cloud, SymmetricCloud, "a `SymmetricCloud`")
    check_positive("rate", rate)
    check_count("steps", steps, least=0)
    check_between("cap", cap, 0, math.inf, remedy="Infinity truncates nothing.")
    every = max(1, steps // 100) if every is None else every
    check_count("every", every)
    d = cloud.signs.shape[1]
    a = real_array("coefficients", coefficients, f"({d},)").astype(jnp.float64)
    passive = jnp.zeros((0, d))
    if tracers is not None:
        passive = real_array("tracers", tracers, f"(particle, {d})").astype(jnp.float64)
    memory = budget(memory)
    marks = np.unique(np.append(np.arange(0, steps + 1, every), steps))
    records, done = [], 0
    for mark in marks:
        cloud, passive = _advance(cloud, passive, a, rate, cap, jnp.asarray(mark - done), memory)
        done = mark
        records.append(
            (
                mark * rate,
                float(_cloud_loss(cloud, a, memory)),
                np.asarray(cloud.representatives),
                np.asarray(passive),
            )
        )
    times, losses, representatives, followed = (
        np.array(column) for column in zip(*records, strict=True)
    )
    return cloud, CloudRun(times, losses, representatives, None if tracers is None else followed)


@functools.partial(jax.jit, static_argnames="memory")
def _advance(cloud, passive, a, rate, cap, count, memory):
    n = cloud.representatives.shape[0]

    def body(_, particles):
        moving = eqx.tree_at(lambda c: c.representatives, cloud, particles[:n])
        slope = moving.field(particles, a, memory)
        return particles - rate * truncated(particles, slope, cap)

    moved = jax.lax.fori_loop(0, count, body, jnp.concatenate([cloud.representatives, passive]))
    return eqx.tree_at(lambda c: c.representatives, cloud, moved[:n]), moved[n:]


def truncated(particles, slope, cap):
    r"""The update of particles with $\|v\|^2$ above `cap` dropped (not rescaled).

    Args:
        particles: $v$, shape (particle, feature).
        slope: their gradient, likewise.
        cap: the largest $\|v\|^2$ that still moves.
    """
    return jnp.where(jnp.sum(particles**2, axis=1, keepdims=True) <= cap, slope, 0.0)


def _population_descent(w, a, variant):
    return population_gradient(w, a, variant=variant)


@functools.partial(jax.jit, static_argnames=("descent", "variant"))
def _advance_network(w, a, rate, cap, count, descent, variant):
    return jax.lax.fori_loop(
        0, count, lambda _, w: w - rate * truncated(w, descent(w, a, variant), cap), w
    )


class Coupling(NamedTuple):
    r"""$\xi_i = \tilde w_i - w_i$ along a run: the finite network against its own neurons as
    tracers at infinite width.

    Attributes:
        times: of the records, shape (time,).
        mean: $\frac1m\sum_i\|\xi_i\|^2$, shape (time,).
        largest: $\max_i\|\xi_i\|^2$, shape (time,).
        network: $w_i$ moved in their own field, shape (time, width, feature).
        tracers: $\tilde w_i$, moved in the cloud's, likewise.
    """

    times: np.ndarray
    mean: np.ndarray
    largest: np.ndarray
    network: np.ndarray
    tracers: np.ndarray


@double
def coupling(
    weights,
    cloud: SymmetricCloud,
    coefficients,
    rate: float | int,
    steps: int,
    *,
    every: int | None = None,
    cap: float | int = math.inf,
    gradient=None,
) -> Coupling:
    r"""Moves `weights` twice, as the network they are and as tracers in the cloud's field, and
    compares (App. B).

    Reports $\frac1m\sum\|\xi_i\|^2$ and $\max\|\xi_i\|^2$; at a fixed time the former goes like
    $1/m$ (Lemmas B.1-B.3).

    Args:
        gradient: the network's mean-field gradient as a function of (weights, coefficients,
            variant); default the exact population's. With the gradient of a sample, $\xi$ holds the
            sampling error too.
        weights: $w_i$ at time 0, shape (width, feature).
        cloud: the law of infinite width.
        coefficients: $a$ of the target, one a feature.
        rate, steps, every, cap: as in `evolve`.
    """
    check_kind("cloud", cloud, SymmetricCloud, "a `SymmetricCloud`")
    d = cloud.signs.shape[1]
    a = real_array("coefficients", coefficients, f"({d},)").astype(jnp.float64)
    w = real_array("weights", weights, f"(width, {d})").astype(jnp.float64)
    if gradient is not None:
        check_callable("gradient", gradient, "a function of (weights, coefficients, variant)")
    descent = _population_descent if gradient is None else gradient
    _, run = evolve(cloud, a, rate, steps, every=every, tracers=w, cap=cap)
    network, before = [], 0
    for mark in np.rint(run.times / rate).astype(int):
        w = _advance_network(w, a, rate, cap, jnp.asarray(mark - before), descent, cloud.variant)
        before = mark
        network.append(np.asarray(w))
    net = np.array(network)
    assert run.tracers is not None  # they were given
    squares = np.sum((net - run.tracers) ** 2, axis=2)
    return Coupling(run.times, squares.mean(axis=1), squares.max(axis=1), net, run.tracers)
