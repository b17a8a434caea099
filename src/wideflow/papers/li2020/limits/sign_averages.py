r"""Tensor orders of a conditionally symmetric law from representatives alone (li2020, Claim 3.2,
corrected).

The fully symmetric law of representatives $w$ meets a direction $\bar v$ only through the sign
average
$$M_{2j}(\bar w, \bar v) = \mathbb E_\varepsilon\Big(\sum_r\varepsilon_r\bar w_r\bar v_r\Big)^{2j},
  \qquad
  \varepsilon \text{ uniform on } \{\pm1\}^d .$$
Corrected: the printed (3.3) lacks the multinomial coefficients of this average and sums over an
index that must be fixed to $i$. With power sums $P_{2k} = \sum_r(\bar w_r\bar v_r)^{2k}$ and the
cumulants $\kappa_2, \kappa_4, \dots = 1, -2, 16, -272, \dots$ of a random sign,
$$M_{2j} = \sum_{k=1}^j\binom{2j-1}{2k-1}\kappa_{2k}P_{2k}M_{2j-2k}, \qquad M_0 = 1.$$
The recursion cancels: relative errors 1e-15 at order 4, 1e-11 at 12, useless from 20 on. Above
order 12 the moments come from the positive series
$M_{2j} = (2j)!\,[t^{2j}]\prod_r\cosh(\bar w_r\bar v_rt)$.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...._core.arc_cosine import abs_hermite_squares
from ...._core.arrays import real_array
from ...._core.errors import check_count
from ...._core.polar import polar
from ...._core.precision import double
from .hermite import checked_orders

__all__ = [
    "plateau_drift",
    "sign_cumulants",
    "sign_moments",
    "symmetric_order_field",
    "symmetric_order_losses",
]

RECURSION_LIMIT = 12  # the order above which the recursion has lost too much (measured: see above)


def sign_cumulants(count: int) -> list[int]:
    r"""$\kappa_2, \kappa_4, \dots$ of a random sign: from $M_{2j} = 1$ for a single unit
    coordinate.

    Args:
        count: how many.

    >>> sign_cumulants(6)
    [1, -2, 16, -272, 7936, -353792]
    """
    check_count("count", count, least=0)
    kappa: list[int] = []
    for j in range(1, count + 1):
        kappa.append(1 - sum(math.comb(2 * j - 1, 2 * k - 1) * kappa[k - 1] for k in range(1, j)))
    return kappa


@double
def sign_moments(left, right, order: int) -> Float[Array, "half left right"]:
    r"""$M_0, M_2, \dots, M_{order}$ of every pair of rows of `left` and `right` (usually unit
    vectors).

    Args:
        left, right: shapes (left, feature) and (right, feature).
        order: the last one, even.

    >>> sign_moments([[1.0, 1.0]], [[1.0, 1.0]], 4).ravel().tolist()  # E(e1 + e2)^2 = 2, ^4 = 8
    [1.0, 2.0, 8.0]
    """
    half = _half(order)
    x = real_array("left", left, "(left, feature)").astype(jnp.float64)
    y = real_array("right", right, f"(right, {x.shape[1]})").astype(jnp.float64)
    return _by_cumulants(x, y, half) if order <= RECURSION_LIMIT else _by_series(x, y, half)


def _half(order: int) -> int:
    check_count("order", order, least=0)
    if order % 2:
        raise ValueError(f"`order` must be even, got {order}: odd orders vanish by symmetry.")
    return order // 2


def _by_cumulants(x, y, half):
    kappa = sign_cumulants(half)
    powers = [x ** (2 * k) @ (y ** (2 * k)).T for k in range(1, half + 1)]
    moments = [jnp.ones((x.shape[0], y.shape[0]))]
    for j in range(1, half + 1):
        terms = (
            math.comb(2 * j - 1, 2 * k - 1) * kappa[k - 1] * powers[k - 1] * moments[j - k]
            for k in range(1, j + 1)
        )
        moments.append(sum(terms, start=jnp.zeros_like(moments[0])))
    return jnp.stack(moments)


def _by_series(x, y, half):
    """The coefficients of the product of hyperbolic cosines, scaled by (2j)!, coordinate by
    coordinate.
    """
    # with M'_{2j} after one more coordinate z: M'_{2j} = sum_k C(2j, 2k) z^{2k} M_{2j-2k}
    binomials = np.array(
        [
            [math.comb(2 * j, 2 * k) if k <= j else 0 for k in range(half + 1)]
            for j in range(half + 1)
        ]
    )

    def coordinate(moments, pair):
        squares = (pair[0][:, None] * pair[1][None, :]) ** 2
        powers = [squares**k for k in range(half + 1)]  # no traced exponent: derivatives at 0
        new = [
            sum(float(binomials[j, k]) * powers[k] * moments[j - k] for k in range(j + 1))
            for j in range(half + 1)
        ]
        return jnp.stack(new), None

    start = jnp.zeros((half + 1, x.shape[0], y.shape[0])).at[0].set(1.0)
    return jax.lax.scan(coordinate, start, (x.T, y.T))[0]


def _unpack(representatives, coefficients, masses):
    w = real_array("representatives", representatives).astype(jnp.float64)
    a = real_array("coefficients", coefficients).astype(jnp.float64)
    if w.ndim != 2 or a.shape != (w.shape[1],):
        raise ValueError(
            "`coefficients` must have one entry per feature of `representatives` (shape "
            f"{w.shape}), got {a.shape}."
        )
    q = jnp.full(w.shape[0], 1.0 / w.shape[0])
    if masses is not None:
        q = real_array("masses", masses, f"({w.shape[0]},)")
    r, u = polar(w)
    return w, a, q * r**2, u


@double
def symmetric_order_losses(
    representatives, coefficients, orders=(0, 2, 4, 6, 8), masses=None
) -> Float[Array, " order"]:
    r"""Raw $\ell_{2j}$ of the whole orbit population under all sign flips, from its
    representatives.

    $\ell_{2j} = \mathbb E_{w,w'}p_wp_{w'}M_{2j}(\bar w, \bar w') - 2\,\mathbb E_wp_w\sum_ia_i\bar
    w_i^{2j} + \sum a^2$, $\ell_0 = (\mathbb Ep - \sum a)^2$; odd orders vanish.

    Args:
        representatives: $w$, one a sign orbit, shape (orbit, feature).
        coefficients: $a_i$, one a feature.
        orders: the $2j$.
        masses: of the orbits; equal if None.
    """
    _, a, p, u = _unpack(representatives, coefficients, masses)
    ks = checked_orders(orders, "abs")
    top = max((k for k in ks if k % 2 == 0), default=0)
    moments = sign_moments(u, u, top)

    def loss(k):
        if k % 2:
            return jnp.zeros(())
        if k == 0:
            return (jnp.sum(p) - jnp.sum(a)) ** 2
        return p @ moments[k // 2] @ p - 2 * p @ u**k @ a + jnp.sum(a**2)

    return jnp.stack([loss(k) for k in ks])


@double
def symmetric_order_field(
    particles, representatives, coefficients, order: int, masses=None
) -> Float[Array, "particle feature"]:
    r"""$\nabla_{2j,v}$ of the fully symmetric law at `particles` (Claim 3.2; corrected
    (3.2)-(3.3)).

    Order 0: $b_0(\mathbb E\|w\|^2 - \sum a)v$; order 2: $b_2(\mathbb Ew_i^2 - a_i)v_i$. For
    $2j \ge 2$ with $F_v = \mathbb E_Pp_wM_{2j} - \sum_ia_i\bar v_i^{2j}$ and $D_{v,i} =
    \sum_{k=1}^j2k\binom{2j}{2k}\kappa_{2k}\bar v_i^{2k-1}\mathbb E_P[p_wM_{2j-2k}\bar w_i^{2k}] -
    2ja_i\bar v_i^{2j-1}$,
    $$[\nabla_{2j,v}]_i = 2c_{2j}\|v\|\,(D_{v,i} - (2j-2)F_v\bar v_i).$$

    Args:
        particles: $v$, shape (particle, feature).
        representatives: $w$, one a sign orbit, shape (orbit, feature).
        coefficients: $a_i$, one a feature.
        order: $2j$.
        masses: of the orbits; equal if None.
    """
    half = _half(order)
    _, a, p, u = _unpack(representatives, coefficients, masses)
    v = real_array("particles", particles).astype(jnp.float64)
    if v.ndim != 2 or v.shape[1] != a.shape[0]:
        raise ValueError(f"`particles` must have shape (particle, {a.shape[0]}), got {v.shape}.")
    c = float(abs_hermite_squares(order)[order])
    if order == 0:
        return 4 * c * (jnp.sum(p) - jnp.sum(a)) * v
    length, unit = polar(v)
    if order <= RECURSION_LIMIT:
        kappa, moments = sign_cumulants(half), sign_moments(unit, u, order)
        met = moments[half] @ p
        slope = sum(
            2
            * k
            * math.comb(order, 2 * k)
            * kappa[k - 1]
            * unit ** (2 * k - 1)
            * ((moments[half - k] * p) @ u ** (2 * k))
            for k in range(1, half + 1)
        )
    else:  # the derivative of the positive series
        total = lambda x: _by_series(x, u, half)[half] @ p
        met, pull = jax.vjp(total, unit)
        (slope,) = pull(jnp.ones_like(met))
    f = met - unit**order @ a
    d = slope - order * a * unit ** (order - 1)
    return 2 * c * length[:, None] * (d - (order - 2) * f[:, None] * unit)


@double
def plateau_drift(particles, coefficients) -> Float[Array, "particle feature"]:
    r"""$-\nabla_{4,v}$ in an isotropic law of unit mass: the drift on the plateau, sharp form of
    (3.5) and Prop. A.10.

    $$-[\nabla_{4,v}]_i = 8c_4v_i\Big[a_i\bar v_i^2 - \frac{3}{2d(d+2)} - \frac12\sum_ra_r\bar
      v_r^4\Big];$$
    for $a = 1/d$ a coordinate grows when its share of energy exceeds about $3/d$. Corrected: (3.5)
    lacks the minus sign.

    Args:
        particles: $v$, shape (particle, d).
        coefficients: $a$, one a coordinate.
    """
    v = real_array("particles", particles, "(particle, feature)").astype(jnp.float64)
    d = v.shape[1]
    a = real_array("coefficients", coefficients, f"({d},)").astype(jnp.float64)
    squares = polar(v)[1] ** 2
    shared = 3 / (2 * d * (d + 2)) + 0.5 * jnp.sum(a * squares**2, axis=1, keepdims=True)
    return 8 * float(abs_hermite_squares(4)[4]) * v * (a * squares - shared)
