r"""The functions $\varphi_k$ of exponential integrators on the decaying side, $x \mapsto \varphi_k(-x)$, $x \ge 0$."""

import jax.numpy as jnp
from jaxtyping import Array, Float

_SMALL = 0.1  # below it phi2's difference loses digits; ten terms of its series reach 1e-17


def phi1(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$\varphi_1(-x) = (1 - e^{-x})/x$, 1 at 0: the mean of $e^{-sx}$ over $s \in [0, 1]$."""
    safe = jnp.where(x == 0, 1.0, x)
    return jnp.where(x == 0, 1.0, -jnp.expm1(-safe) / safe)


def phi2(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$\varphi_2(-x) = (1 - \varphi_1(-x))/x = (e^{-x} - 1 + x)/x^2$, 1/2 at 0."""
    series = jnp.ones_like(x)
    for k in range(11, 2, -1):  # 1/2 - x/6 + x^2/24 - ...
        series = 1 - x / k * series
    safe = jnp.where(x < _SMALL, 1.0, x)
    return jnp.where(x < _SMALL, series / 2, (1 - phi1(safe)) / safe)
