r"""Arc-cosine pair expectations: products of absolute values and ReLUs of correlated Gaussians.

For unit vectors $u, v$ with $\rho = \langle u, v\rangle$ and $x \sim \mathcal N(0, I)$ (li2020, section 2;
the integrals are cho2009's, order one),
$$K(\rho) = \mathbb E|\langle u, x\rangle||\langle v, x\rangle|
   = \tfrac2\pi\big(\sqrt{1-\rho^2} + \rho\arcsin\rho\big), \qquad K'(\rho) = \tfrac2\pi\arcsin\rho,$$
$$k(\rho) = \mathbb E\,\mathrm{relu}\,\mathrm{relu} = \tfrac14\big(K(\rho) + \rho\big), \qquad
  k'(\rho) = \tfrac14\big(K'(\rho) + 1\big), \qquad
  \mathbb E\,\mathrm{relu}(\langle u,x\rangle)|\langle v,x\rangle| = \tfrac12K(\rho).$$

$K'$ has a square-root singularity at $|\rho| = 1$ (aligned or antipodal neurons), but everywhere it is used it
multiplies the tangential vector $v - \rho u$ of length $\sqrt{1-\rho^2}$, so gradients stay finite, continuous
and accurate to rounding. They must be taken from these closed forms: automatic differentiation of $K$ twice, or
through the clipping below, is not safe there.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

__all__ = [
    "abs_hermite_squares",
    "abs_pair",
    "abs_pair_slope",
    "abs_pair_with_slope",
    "relu_pair",
    "relu_pair_slope",
]


def abs_pair_with_slope(
    cosines: Float[Array, "*shape"],
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    r"""$(K(\rho), K'(\rho))$ together: one square root and one arc tangent a pair.

    Rounding can push a computed cosine outside $[-1, 1]$; it is clipped back.
    """
    rho = jnp.clip(cosines, -1.0, 1.0)
    sines = jnp.sqrt((1.0 - rho) * (1.0 + rho))
    slope = (2.0 / jnp.pi) * jnp.arctan2(rho, sines)
    return (2.0 / jnp.pi) * sines + rho * slope, slope


def abs_pair(cosines: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""$K(\rho) = \mathbb E|\langle u,x\rangle||\langle v,x\rangle|$ at the cosine $\rho$; $K(0) = 2/\pi$, $K(1) = 1$."""
    return abs_pair_with_slope(cosines)[0]


def abs_pair_slope(cosines: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""$K'(\rho) = \frac2\pi\arcsin\rho$."""
    return abs_pair_with_slope(cosines)[1]


def relu_pair(cosines: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""$k(\rho) = \mathbb E\,\mathrm{relu}(\langle u,x\rangle)\,\mathrm{relu}(\langle v,x\rangle) = (K(\rho) + \rho)/4$."""
    return (abs_pair(cosines) + cosines) / 4.0


def relu_pair_slope(cosines: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""$k'(\rho) = (K'(\rho) + 1)/4 = (\pi - \arccos\rho)/(2\pi)$."""
    return (abs_pair_slope(cosines) + 1.0) / 4.0


def abs_hermite_squares(order: int) -> np.ndarray:
    r"""$c_0, \dots, c_{order}$ with $K(\rho) = \sum_kc_k\rho^k$: the squared Hermite coefficients of $|z|$.

    $c_k = 2[(k-3)!!]^2/(\pi k!)$ for even $k$, by $c_{k+2} = c_k(k-1)^2/((k+1)(k+2))$ from $c_0 = 2/\pi$; odd ones are 0.
    """
    c = np.zeros(order + 1)
    c[0] = 2 / np.pi
    for k in range(0, order - 1, 2):
        c[k + 2] = c[k] * (k - 1) ** 2 / ((k + 1) * (k + 2))
    return c
