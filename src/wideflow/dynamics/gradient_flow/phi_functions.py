r"""The functions $\varphi_k$ of exponential integrators on the decaying side, $x \mapsto \varphi_k(-x)$, $x \ge 0$.

$$\varphi_k(-x) = \int_0^1 e^{-vx}\,\frac{(1-v)^{k-1}}{(k-1)!}\,\mathrm dv .$$
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

_SMALL = 1.0  # below it the recursion loses digits; twenty terms of the series reach 1e-18


def phi1(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$\varphi_1(-x) = (1 - e^{-x})/x$, 1 at 0: the mean of $e^{-sx}$ over $s \in [0, 1]$."""
    safe = jnp.where(x == 0, 1.0, x)
    return jnp.where(x == 0, 1.0, -jnp.expm1(-safe) / safe)


def phi2(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$\varphi_2(-x) = (1 - \varphi_1(-x))/x = (e^{-x} - 1 + x)/x^2$, 1/2 at 0."""
    return _next(2, x, phi1)


def phi3(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$\varphi_3(-x) = (\frac12 - \varphi_2(-x))/x$, 1/6 at 0."""
    return _next(3, x, phi2)


def phi4(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$\varphi_4(-x) = (\frac16 - \varphi_3(-x))/x$, 1/24 at 0."""
    return _next(4, x, phi3)


def _next(k: int, x, before):
    series = jnp.ones_like(x)
    for j in range(k + 18, k, -1):  # 1/k! - x/(k+1)! + x^2/(k+2)! - ...
        series = 1 - x / j * series
    safe = jnp.where(x < _SMALL, 1.0, x)
    recursion = (1 / math.factorial(k - 1) - before(safe)) / safe
    return jnp.where(x < _SMALL, series / math.factorial(k), recursion)
