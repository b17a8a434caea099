"""Activations that the field theory can take: continuous, with every kink declared."""

import jax.numpy as jnp
import numpy as np

from ..._core.activations import Activation

REACH = 6.0  # where activations are checked
POINTS = 24_001  # the trapezoid rule is exact to 1e-6 there


def check_continuous(activation: Activation) -> None:
    r"""Refuses activations that jump, or whose slope jumps where no kink is declared.

    $\sigma$ must be the integral of $\sigma'$, and $\sigma'$ that of $\sigma''$ plus the declared
    jumps.
    """
    z = np.linspace(-REACH, REACH, POINTS) + 1e-7  # the grid misses kinks at round numbers
    value, slope, bend = (
        np.asarray(f(jnp.asarray(z)), float)
        for f in (activation, activation.derivative, activation.second)
    )
    # 1e-2 of the range: far above the trapezoid rule's error, far below any jump worth the name
    scale = max(np.ptp(value), 1e-12)
    if not abs(value[-1] - value[0] - np.trapezoid(slope, z)) <= 1e-2 * scale:
        raise ValueError(
            f"`activation` must be continuous, got {activation!r}, which is not the integral of "
            "its derivative: "
            "its features jump and have no response. Use a smooth one such as 'tanh' or 'erf'."
        )
    jumps = sum(float(j) for k, j in zip(activation.kinks, _jumps(activation)) if abs(k) < REACH)
    change = slope[-1] - slope[0] - np.trapezoid(bend, z) - jumps
    if not abs(change) <= 1e-2 * max(np.ptp(slope), 1e-12):
        raise ValueError(
            f"`activation` must declare its kinks, got {activation!r}, whose slope jumps by "
            f"{change:.3g} in all where none "
            "is declared. Use a named activation such as 'relu', or give `Activation` its `kinks`."
        )


def _jumps(activation: Activation) -> tuple:
    """How much the slope jumps at each kink."""
    slope, side = activation.derivative, 1e-6
    return tuple(
        slope(jnp.asarray(k + side)) - slope(jnp.asarray(k - side)) for k in activation.kinks
    )
