r"""Radial integrals of the learner's residual along a ray, as sums of partial moments.

On the ray $x = r\bar x$ with first-layer value $\varphi = F(\bar x)$ the network is
$f(r) = \frac1{m_2} \sum_j \mathrm{ReLU}(w_j \varphi r + b_j)$. Cut at $r = 1$ and at every kink
$-b_j/(w_j \varphi)$, the residual $f_* - f$ of the target $f_* = \max(1 - r, 0)$ is $p + q r$ on
each piece, so that every expectation is a sum of differences of $M_0, M_1, M_2$.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .base import AbstractRadialLaw


class Pieces(NamedTuple):
    """The residual $p + q r$ on the pieces of one ray, and which second-layer neurons are active
    there.
    """

    edges: Float[Array, " edge"]
    p: Float[Array, " piece"]
    q: Float[Array, " piece"]
    active: Bool[Array, "piece width"]

    @property
    def low(self):
        return self.edges[:-1]

    @property
    def high(self):
        return self.edges[1:]


class RayIntegrals(NamedTuple):
    r"""Expectations over the radius on one ray, nothing projected.

    `first[j]` $= E_r\{(f_* - f)\, r\, 1_j\}$, `zeroth[j]` $= E_r\{(f_* - f)\, 1_j\}$ with $1_j$ the
    activity of neuron $j$, `pull` $= E_r\{S r\}$ with $S = (f_* - f) \frac1{m_2}\sum_j w_j 1_j$,
    and `loss` $= \frac12 E_r (f_* - f)^2$.
    """

    first: Float[Array, " width"]
    zeroth: Float[Array, " width"]
    pull: Float[Array, ""]
    loss: Float[Array, ""]


def middles(low, high):
    """A point inside every interval, the last of which may be endless."""
    return jnp.where(jnp.isinf(high), 2 * low + 1, 0.5 * (low + high))


def cut(phi, w, b) -> Pieces:
    r"""The pieces of the ray with $F(\bar x) = \varphi$; a neuron without a kink adds an empty one
    at 0.
    """
    slope = w * phi
    kink = -b / jnp.where(slope == 0, 1.0, slope)
    kink = jnp.where((slope != 0) & (kink > 0) & jnp.isfinite(kink), kink, 0.0)
    ends = jnp.array([0.0, 1.0, jnp.inf])
    edges = jnp.sort(jnp.concatenate([kink, ends]))
    inside = middles(edges[:-1], edges[1:])
    active = b + slope * inside[:, None] > 0
    target = (inside < 1).astype(kink.dtype)
    share = active / w.shape[0]
    return Pieces(edges, target - share @ b, -target - phi * (share @ w), active)


def guarded(coefficient, moment):
    """Their product, where nothing times a divergent moment is nothing.

    The moment is replaced and not the product: a coefficient that happens to be 0 keeps the
    derivative `moment`, and 0 times infinity appears in no derivative either.
    """
    return coefficient * jnp.where((coefficient == 0) & jnp.isinf(moment), 0.0, moment)


def ray_integrals(law: AbstractRadialLaw, phi, w, b) -> RayIntegrals:
    pieces = cut(phi, w, b)
    p, q = pieces.p, pieces.q
    m0, m1, m2 = (jnp.diff(m) for m in law.moments(pieces.edges))
    first = guarded(pieces.active, (guarded(p, m1) + guarded(q, m2))[:, None]).sum(0)
    zeroth = guarded(pieces.active, (guarded(p, m0) + guarded(q, m1))[:, None]).sum(0)
    # an endless piece with q != 0 has infinite loss, whatever the sign of p
    squares = (
        guarded(p**2, m0)
        + guarded(2 * p * q, jnp.where(jnp.isinf(m2), 0.0, m1))
        + guarded(q**2, m2)
    )
    return RayIntegrals(first, zeroth, jnp.mean(w * first), 0.5 * squares.sum())


def projected(law: AbstractRadialLaw, c, p, q, low, high, bound, power: int):
    r"""$E[\Pi_R[c (p + q r) r^k] 1\{\mathrm{low} \le r < \mathrm{high}\}]$, $k$ = `power` 0 or 1,
    $R$ = `bound`.

    The interval is split at the real roots of $c (p + q r) r^k = \pm R$; between two of them the
    projected integrand is $\pm R$ or the polynomial itself. All arguments broadcast.
    """
    c, p, q, low, high, bound = jnp.broadcast_arrays(c, p, q, low, high, bound)
    reached = (c != 0) & jnp.isfinite(bound)  # elsewhere nothing is projected
    level = jnp.where(reached, bound, 0.0) / jnp.abs(jnp.where(reached, c, 1.0))
    roots = [root for sign in (1, -1) for root in _roots(p, q, sign * level, power)]
    inner = [
        jnp.clip(jnp.where(reached & ~jnp.isnan(root), root, low), low, high) for root in roots
    ]
    edges = jnp.sort(jnp.stack([low, *inner, high], axis=-1), axis=-1)
    r = middles(edges[..., :-1], edges[..., 1:])
    c, p, q, bound = c[..., None], p[..., None], q[..., None], bound[..., None]
    value = c * (p + q * r) * r**power
    m = [jnp.diff(moment, axis=-1) for moment in law.moments(edges)]
    acts = jnp.abs(value) > bound
    c = jnp.where(acts, 0.0, c)  # so that no derivative meets an infinite moment of what is clipped
    free = guarded(c * p, m[power]) + guarded(c * q, m[power + 1])
    clipped = jnp.sign(value) * guarded(jnp.where(jnp.isinf(bound), 0.0, bound), m[0])
    return jnp.where(acts, clipped, free).sum(-1)


def _roots(p, q, level, power: int):
    r"""Real roots of $(p + q r) r^k$ = `level`; nan for what is not a root, or a double one, where
    nothing crosses the level.
    """
    if power == 0:
        return (_ratio(level - p, q),)
    discriminant = p**2 + 4 * q * level
    real = discriminant > 0
    size = jnp.sqrt(jnp.where(real, discriminant, 1.0))
    half = 0.5 * (p + jnp.where(p < 0, -1.0, 1.0) * size)
    return tuple(jnp.where(real, root, jnp.nan) for root in (_ratio(level, half), _ratio(-half, q)))


def _ratio(top, bottom):
    """The quotient, or nan beyond 1e100; derivatives never see the divisions that are not used."""
    near = jnp.abs(top) < 1e100 * jnp.abs(bottom)
    return jnp.where(near, jnp.where(near, top, 0.0) / jnp.where(near, bottom, 1.0), jnp.nan)


def steepest(pieces: Pieces, c):
    r"""$\sup_r |c (p + q r) r|$ over the pieces, with one `c` a piece; infinite on an endless
    piece.
    """
    vertex = jnp.clip(
        -pieces.p / jnp.where(pieces.q == 0, 1.0, 2 * pieces.q), pieces.low, pieces.high
    )
    points = jnp.stack(
        [pieces.low, jnp.where(jnp.isfinite(vertex), vertex, pieces.low), pieces.high]
    )
    line = pieces.p + guarded(pieces.q, points)
    return jnp.max(guarded(jnp.abs(c * line), points))


def largest(pieces: Pieces, on):
    r"""$\sup |p + q r|$ over the pieces on which a neuron is active."""
    ends = jnp.stack([pieces.low, pieces.high])
    line = jnp.abs(pieces.p + jnp.where(pieces.q == 0, 0.0, pieces.q * ends))
    return jnp.max(jnp.where(on & (pieces.low < pieces.high), line, 0.0))
