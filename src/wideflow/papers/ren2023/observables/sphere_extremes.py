r"""Extremes of the first layer over the sphere, by ascent and descent rather than by sampling.

$F$ is convex and 1-homogeneous, so
$\bar x \leftarrow \nabla F(\bar x)/\lVert \nabla F(\bar x) \rVert$ never lowers it; downhill,
tangent steps of shrinking length are taken and the lowest value is kept. Random directions
underestimate the spread grossly: at $d = 100$, $m_1 = 512$ the largest deviation found by 20 000 of
them is 0.26, by ascent 0.80 (itself a lower bound).
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.errors import as_key, check_count, check_kind
from ...._core.polar import polar
from ...._core.precision import double
from ...._core.types import Key
from ..depth_separator import DepthSeparator
from ..laws.base import sphere


class Extremes(NamedTuple):
    r"""Lowest and highest $F(\bar x)$ found, with the directions at which they were.

    Attributes:
        low, high: the two values.
        low_direction, high_direction: unit vectors, shape (feature,).
    """

    low: Float[Array, ""]
    high: Float[Array, ""]
    low_direction: Float[Array, " feature"]
    high_direction: Float[Array, " feature"]


def _layer(first, length, x):
    h = x @ first.T
    value = jnp.maximum(h, 0) @ length / first.shape[0]
    slope = ((h > 0) * length) @ first / first.shape[0]
    return value, slope


@double
def sphere_extremes(
    model, key: int | Key | None = None, *, starts: int = 64, iterations: int = 200
) -> Extremes:
    r"""Extremes of $F(\bar x)$ of a `DepthSeparator` over unit $\bar x$, from the best of neurons,
    their opposites and random points.

    Args:
        model: the network whose first layer gives $F$.
        starts: how many random points.
        iterations: steps of the ascent and of the descent.
    """
    check_kind("model", model, DepthSeparator, "a `DepthSeparator`")
    check_count("starts", starts)
    check_count("iterations", iterations)
    key = jax.random.key(0) if key is None else as_key(key)
    return _extremes(model.first, key, starts, iterations)


@eqx.filter_jit
def _extremes(first, key, starts: int, iterations: int) -> Extremes:
    length, unit = polar(first)
    random = sphere(key, 2 * starts, first.shape[1]).astype(first.dtype)
    pool = jnp.concatenate([unit, -unit, random])
    values = _layer(first, length, pool)[0]
    order = jnp.argsort(values)
    lowest = jnp.concatenate([pool[order[:starts]], random[:starts]])
    highest = jnp.concatenate([pool[order[-starts:]], random[starts:]])

    def up(_, x):
        slope = _layer(first, length, x)[1]
        size = jnp.linalg.norm(slope, axis=1, keepdims=True)
        return jnp.where(size > 0, slope / jnp.where(size > 0, size, 1), x)

    def down(i, carry):
        x, best, where = carry
        value, slope = _layer(first, length, x)
        better = value < best
        best, where = jnp.where(better, value, best), jnp.where(better[:, None], x, where)
        tangent = slope - jnp.sum(slope * x, axis=1, keepdims=True) * x
        size = jnp.linalg.norm(tangent, axis=1, keepdims=True)
        angle = 0.3 * (1e-3) ** (i / iterations)  # from 0.3 down to 3e-4
        moved = x - angle * tangent / jnp.where(size > 0, size, 1)
        return moved / jnp.linalg.norm(moved, axis=1, keepdims=True), best, where

    top = jax.lax.fori_loop(0, iterations, up, highest)
    tops = _layer(first, length, top)[0]
    best = jnp.full(lowest.shape[0], jnp.inf, first.dtype)
    _, bottoms, bottom = jax.lax.fori_loop(0, iterations, down, (lowest, best, lowest))
    i, j = jnp.argmin(bottoms), jnp.argmax(tops)
    return Extremes(bottoms[i], tops[j], bottom[i], top[j])
