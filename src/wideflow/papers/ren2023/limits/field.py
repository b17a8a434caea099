r"""Vector field of the infinite-width learner: a spherically symmetric first layer is one number.

If the law of the first layer is spherically symmetric then $F(x) = \alpha \lVert x \rVert$, no
neuron turns and all norms grow at one rate (Section 4 and B.4), so the state is
$(\alpha, (w_j, b_j)_{j \le m_2})$:
$$\dot\alpha = 4 g\, \alpha\, E\{S r\}, \qquad \dot w_j = \alpha\, E\{(f_* - f) r 1_j\}, \qquad \dot
  b_j = E\{(f_* - f) 1_j\},$$
with $g = C_\Gamma/\sqrt d$ and $S = (f_* - f) \frac1{m_2} \sum_j w_j 1_j$. Corrected: the identity
of B.4 is printed with a factor 2 too much, and the growth of the norm in C.17 with the wrong sign.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import roots_jacobi

from ...._core.precision import double
from ..laws.base import AbstractRadialLaw
from ..laws.rays import cut, projected, ray_integrals, steepest
from ..laws.thresholds import Thresholds, as_thresholds

__all__ = ["ReducedState", "reduced_field", "reduced_loss"]

ANGLES = 64  # Gauss-Jacobi nodes of an average over directions (chosen)


class ReducedState(NamedTuple):
    r"""$\alpha$ and the second-layer particles $(w_j, b_j)$.

    Attributes:
        alpha: $\alpha$.
        w: $w_j$, shape (second,).
        b: $b_j$, likewise.
    """

    alpha: Float[Array, ""]
    w: Float[Array, " width"]
    b: Float[Array, " width"]


@double
@eqx.filter_jit
def reduced_field(law: AbstractRadialLaw, state: ReducedState, clip=None) -> ReducedState:
    r"""Time derivative of the state under the population gradient, projected by the bounds `clip`
    if given.

    Args:
        law: of the radius.
        state: $\alpha$, $w$ and $b$.
        clip: `Thresholds`, three numbers in their order, or None.
    """
    clip = as_thresholds(clip)
    return _free_field(law, state) if clip.off else _projected_field(law, state, clip)


def _free_field(law: AbstractRadialLaw, state: ReducedState) -> ReducedState:
    alpha, w, b = state
    ray = ray_integrals(law, alpha, w, b)
    return ReducedState(4 * law.gain * alpha * ray.pull, alpha * ray.first, ray.zeroth)


def _projected_field(law: AbstractRadialLaw, state: ReducedState, clip: Thresholds) -> ReducedState:
    r"""Each sample's gradient projected before averaging.

    A sample at radius $r$ and angle $\angle(v_1, x)$ with $y = \cos^2$ pulls a first-layer neuron
    of norm $n$ with strength $|S| n r \sqrt{1 + 3y}$, whence
    $$\dot n = K_d \int_0^1 (1 - y)^{(d-3)/2} E_r \Pi_{R/\sqrt{1+3y}}[S n r]\, dy, \qquad
      K_d = \Gamma(d/2) / (\sqrt\pi\, \Gamma((d-1)/2)),$$
    by Gauss-Jacobi quadrature; where no projection can be active the integral is $2 g n E\{S r\}$.
    """
    alpha, w, b = state
    pieces = cut(alpha, w, b)
    norm = jnp.sqrt(alpha / law.gain)
    share = pieces.active @ w / w.shape[0]

    def expect(c, bound, power):
        return projected(law, c, pieces.p, pieces.q, pieces.low, pieces.high, bound, power)

    w_speed = pieces.active.T @ expect(alpha, clip.weight, 1)
    b_speed = pieces.active.T @ expect(1.0, clip.bias, 0)

    y, weights = _angles(law.d)

    def clipped(_):
        bounds = clip.first / np.sqrt(1 + 3 * y)[:, None]
        return weights @ expect(share * norm, bounds, 1).sum(1)

    def free(_):
        return 2 * law.gain * expect(share * norm, jnp.inf, 1).sum()

    # |g| <= 2 |S| n r, as y <= 1
    inactive = 2 * norm * steepest(pieces, share) <= clip.first
    norm_speed = jax.lax.cond(inactive, free, clipped, None)
    return ReducedState(2 * law.gain * norm * norm_speed, w_speed, b_speed)


def _angles(d: int):
    r"""Nodes $y$ and weights, $K_d$ included, of $K_d \int_0^1 (1 - y)^{(d-3)/2} g(y)\, dy$."""
    if d == 1:  # every input lies on the neuron's own line, half of them on its side
        return np.ones(1), np.ones(1)
    exponent = (d - 3) / 2
    nodes, weights = roots_jacobi(ANGLES, exponent, 0.0)
    total = (
        math.exp(math.lgamma(d / 2) - math.lgamma((d - 1) / 2))
        / math.sqrt(math.pi)
        / (exponent + 1)
    )
    return 0.5 * (nodes + 1), total * weights / weights.sum()


@double
@eqx.filter_jit
def reduced_loss(law: AbstractRadialLaw, state: ReducedState) -> Float[Array, ""]:
    r"""$L = \frac12 E(f_* - f)^2$; infinite where a neuron grows along the tail of a heavy-tailed
    law.

    Args:
        law: of the radius.
        state: $\alpha$, $w$ and $b$.
    """
    return ray_integrals(law, state.alpha, state.w, state.b).loss
