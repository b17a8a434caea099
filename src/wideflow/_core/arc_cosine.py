r"""Arc-cosine pair expectations: products of absolute values and ReLUs of correlated Gaussians.

For unit vectors $u, v$ with $\rho = \langle u, v\rangle$ and $x \sim \mathcal N(0, I)$ (li2020,
section 2; the integrals are cho2009's, order one),
$$K(\rho) = \mathbb E|\langle u, x\rangle||\langle v, x\rangle|
   = \tfrac2\pi\big(\sqrt{1-\rho^2} + \rho\arcsin\rho\big), \qquad K'(\rho) =
  \tfrac2\pi\arcsin\rho,$$
$$k(\rho) = \mathbb E\,\mathrm{relu}\,\mathrm{relu} = \tfrac14\big(K(\rho) + \rho\big), \qquad
  k'(\rho) = \tfrac14\big(K'(\rho) + 1\big), \qquad
  \mathbb E\,\mathrm{relu}(\langle u,x\rangle)|\langle v,x\rangle| = \tfrac12K(\rho).$$

$K'$ has a square-root singularity at $|\rho| = 1$ (aligned or antipodal neurons), but everywhere it
is used it multiplies the tangential vector $v - \rho u$ of length $\sqrt{1-\rho^2}$, so gradients
stay finite, continuous and accurate to rounding. Automatic differentiation takes the same closed
forms (`abs_pair_with_slope`), so that first and second derivatives of whatever is built on them are
finite and right there as well.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


@jax.custom_jvp
def abs_pair_with_slope(
    cosines: Float[Array, "*shape"],
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    r"""$(K(\rho), K'(\rho))$ together: one square root and one arc sine a pair.

    Rounding can push a computed cosine outside $[-1, 1]$; it is clipped back.

    Derivatives are $K'$ and $K'' = \frac2\pi(1-\rho^2)^{-1/2}$, the latter set to 0 from
    $|\rho| = 1$ on. For unit vectors at the angle $\theta$,
    $K(\cos\theta) = \cos\theta + \frac2{3\pi}|\theta|^3 + O(|\theta|^5)$: at $\theta = 0$ two
    derivatives in the vectors are those of $K'(1)\,\rho$ alone, which is what the zero leaves.
    """
    rho = jnp.clip(cosines, -1.0, 1.0)
    # in factors: 1 - |rho| is exact from |rho| = 1/2 on, where rho^2 would round first
    sines = jnp.sqrt((1.0 - rho) * (1.0 + rho))
    slope = (2.0 / jnp.pi) * arcsin(rho)
    return (2.0 / jnp.pi) * sines + rho * slope, slope


@abs_pair_with_slope.defjvp
def _abs_pair_with_slope_jvp(primals, tangents):
    (cosines,), (change,) = primals, tangents
    value, slope = abs_pair_with_slope(cosines)
    # of the cosines as computed: those beyond 1 have square <= 0 and count as 1
    square = (1.0 - cosines) * (1.0 + cosines)
    inside = square > 0
    # the inner `where` keeps the branch that is not taken finite, for derivatives of derivatives
    curvature = jnp.where(inside, (2.0 / jnp.pi) / jnp.sqrt(jnp.where(inside, square, 1.0)), 0.0)
    return (value, slope), (slope * change, curvature * change)


# fdlibm, e_asin.c (pS0 to pS5, qS1 to qS4): |(asin x - x)/x^3 - P(x^2)/Q(x^2)| < 2^-58.75 for
# |x| < 1/2
_P = (
    1.66666666666666657415e-01,
    -3.25565818622400915405e-01,
    2.01212532134862925881e-01,
    -4.00555345006794114027e-02,
    7.91534994289814532176e-04,
    3.47933107596021167570e-05,
)
_Q = (
    1.0,
    -2.40339491173441421878e00,
    2.02094576023350569471e00,
    -6.88283971605453293030e-01,
    7.70381505559019352791e-02,
)


@jax.custom_jvp
def arcsin(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""$\arcsin$ on $[-1, 1]$ to two units in the last place, by fdlibm's rational function.

    The same as `jnp.arcsin`, whose 64-bit form runs one number at a time on CPUs; this one is
    vectorised and about six times as fast, and it is most of the work of a population gradient.
    $\arcsin x = x + x R(x^2)$ for $|x| < \frac12$, $\frac\pi2 - 2\arcsin\sqrt{(1-|x|)/2}$ beyond.
    Its derivative is $(1-x^2)^{-1/2}$: infinite at the ends.
    """
    size = jnp.abs(x)
    far = size > 0.5
    # 1 - |x| is exact for |x| > 1/2, so the half angle loses nothing at the ends
    z = jnp.where(far, 0.5 * (1.0 - size), x * x)
    base = jnp.where(far, jnp.sqrt(z), size)
    numerator, denominator = jnp.full_like(z, _P[-1]), jnp.full_like(z, _Q[-1])
    for p in _P[-2::-1]:
        numerator = numerator * z + p
    for q in _Q[-2::-1]:
        denominator = denominator * z + q
    near = base + base * (z * numerator / denominator)
    return jnp.sign(x) * jnp.where(far, 0.5 * jnp.pi - 2.0 * near, near)


@arcsin.defjvp
def _arcsin_jvp(primals, tangents):
    (x,), (change,) = primals, tangents
    return arcsin(x), change / jnp.sqrt((1.0 - x) * (1.0 + x))


def abs_pair(cosines: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""$K(\rho) = \mathbb E|\langle u,x\rangle||\langle v,x\rangle|$ at the cosine $\rho$;
    $K(0) = 2/\pi$, $K(1) = 1$.
    """
    return abs_pair_with_slope(cosines)[0]


def abs_pair_slope(cosines: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""$K'(\rho) = \frac2\pi\arcsin\rho$."""
    return abs_pair_with_slope(cosines)[1]


def abs_hermite_squares(order: int) -> np.ndarray:
    r"""$c_0, \dots, c_{order}$ with $K(\rho) = \sum_kc_k\rho^k$: the squared Hermite coefficients
    of $|z|$.

    $c_k = 2[(k-3)!!]^2/(\pi k!)$ for even $k$, by $c_{k+2} = c_k(k-1)^2/((k+1)(k+2))$ from
    $c_0 = 2/\pi$; odd ones are 0.
    """
    c = np.zeros(order + 1)
    c[0] = 2 / np.pi
    for k in range(0, order - 1, 2):
        # no factorial and no double factorial: both overflow long before the coefficients vanish
        c[k + 2] = c[k] * (k - 1) ** 2 / ((k + 1) * (k + 2))
    return c
