r"""Infinite width at time zero: the neurons' law $\mathcal N(0, I/d)$ in closed form (li2020,
section 2; Claim 2.1).

The absolute-value learner of this law is radial, $f_P(x) = \mu_d\|x\|$ with
$\mu_d = \Gamma(\frac d2)/(\sqrt\pi\,\Gamma(\frac{d+1}2))$.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.arc_cosine import abs_pair_with_slope
from ...._core.arrays import real_array
from ...._core.errors import check_count
from ...._core.gamma_ratio import gamma_ratio
from ...._core.polar import polar
from ...._core.precision import double
from .hermite import target_moments

__all__ = ["gaussian_cloud_field", "gaussian_cloud_loss", "radial_mean", "width_excess"]


def radial_mean(features: int) -> float:
    r"""$\mu_d = \Gamma(d/2)/(\sqrt\pi\,\Gamma((d+1)/2)) = \mathbb E|\bar w_1|$.

    Args:
        features: $d$.

    >>> round(radial_mean(2), 12)  # mean of |cos|: 2 / pi
    0.636619772368
    """
    check_count("features", features)
    return gamma_ratio(features / 2) / math.sqrt(math.pi)


@double
def gaussian_cloud_loss(coefficients, features: int | None = None) -> Float[Array, ""]:
    r"""$L_\infty = \mathbb Ef^{*2} + d\mu_d^2(1 - 2\sum a)$ of the law $\mathcal N(0, I/d)$,
    learner `abs`.

    Args:
        coefficients: $a_k$.
        features: $d$; as many as coefficients if None.

    >>> import numpy as np
    >>> round(30 * float(gaussian_cloud_loss(np.full(30, 1 / 30))), 5)
    0.04246
    """
    a = real_array("coefficients", coefficients, "(feature)").astype(jnp.float64)
    d = a.shape[0] if features is None else features
    check_count("features", d, least=a.shape[0], remedy="Each coefficient needs a direction.")
    return target_moments(a)[1] + d * radial_mean(d) ** 2 * (1 - 2 * jnp.sum(a))


@double
def gaussian_cloud_field(particles, coefficients) -> Float[Array, "particle feature"]:
    r"""$g(v) = 4v(d\mu_d^2 - \sum_ka_kK(\bar v_k)) - 2\|v\|\sum_ka_kK'(\bar v_k)(e_k - \bar v_k\bar
    v)$.

    Args:
        particles: $v$, shape (particle, feature).
        coefficients: $a_k$ of the first coordinate directions.
    """
    v = real_array("particles", particles, "(particle, feature)").astype(jnp.float64)
    a = real_array("coefficients", coefficients, "(feature)").astype(jnp.float64)
    if a.shape[0] > v.shape[1]:
        raise ValueError(
            f"`particles` must have at least {a.shape[0]} features, got shape {v.shape}."
        )
    d = v.shape[1]
    r, unit = polar(v)
    axes = unit[:, : a.shape[0]]
    value, slope = abs_pair_with_slope(axes)
    pull = jnp.pad(slope * a, ((0, 0), (0, d - a.shape[0])))
    tangent = pull - jnp.sum(slope * a * axes, axis=1, keepdims=True) * unit
    return 4 * v * (d * radial_mean(d) ** 2 - value @ a)[:, None] - 2 * r[:, None] * tangent


def width_excess(features: int, width: int) -> float:
    r"""$\mathbb E_WL(W) - L_\infty = (1 + 2/d - d\mu_d^2)/m$ for $m$ neurons drawn from
    $\mathcal N(0, I/d)$ (Claim 2.1).

    Args:
        features: $d$.
        width: $m$.

    >>> round(10 * width_excess(10, 10), 2)
    0.53
    """
    check_count("width", width)
    return (1 + 2 / features - features * radial_mean(features) ** 2) / width
