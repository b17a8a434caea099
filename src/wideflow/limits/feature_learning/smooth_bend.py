r"""$\sigma''$ as responses need it: at a kink a narrow normal density of the slope's jump.

The response $\langle \sigma''(h) z \rangle$ of a kinked activation is the jump times the density of $h$ at the kink times the mean of $z$
there. Autodiff knows nothing of it. It is not zero once training has made $z$ depend on $h$, so it is estimated with a kernel of some
standard deviations (bias of second order in the width, variance $1/(S \cdot \text{width})$). In the probes' recursion such kernels are multiplied over
time and would make rare neurons count for everything; there they are broader.
"""

import jax.numpy as jnp
import numpy as np

from ..._core.activations import Activation

WIDTH = 0.1  # chosen: bias of order WIDTH^2 of a term that is itself a correction, and a tenth of the neurons count
PROBE_WIDTH = 0.5  # chosen: the least at which error bars of rich relu networks stay small; second-order terms only
REACH, POINTS = (
    6.0,
    24_001,
)  # where activations are checked; the trapezoid rule is exact to 1e-6 there


def smooth_bend(activation: Activation, h, variance, share: float):
    """$\\sigma''(h)$ with the kinks' share; the width is `share` times the root of `variance` (one a row of `h`)."""
    bend = activation.second(h)
    width = share * jnp.sqrt(jnp.maximum(variance, jnp.finfo(h.dtype).tiny))[:, None]
    for kink, jump in zip(activation.kinks, _jumps(activation)):
        bend = bend + jump * jnp.exp(-0.5 * ((h - kink) / width) ** 2) / (
            width * np.sqrt(2 * np.pi)
        )
    return bend


def check_continuous(activation: Activation) -> None:
    r"""Refuses activations that jump, or whose slope jumps where no kink is declared.

    $\sigma$ must be the integral of $\sigma'$, and $\sigma'$ that of $\sigma''$ plus the declared jumps.
    """
    z = np.linspace(-REACH, REACH, POINTS) + 1e-7  # the grid misses kinks at round numbers
    value, slope, bend = (
        np.asarray(f(jnp.asarray(z)), float)
        for f in (activation, activation.derivative, activation.second)
    )
    scale = max(np.ptp(value), 1e-12)
    if not abs(value[-1] - value[0] - np.trapezoid(slope, z)) <= 1e-2 * scale:
        raise ValueError(
            f"`activation` must be continuous, got {activation!r}, which is not the integral of its derivative: "
            "its features jump and have no response. Use a smooth one such as 'tanh' or 'erf'."
        )
    jumps = sum(float(j) for k, j in zip(activation.kinks, _jumps(activation)) if abs(k) < REACH)
    change = slope[-1] - slope[0] - np.trapezoid(bend, z) - jumps
    if not abs(change) <= 1e-2 * max(np.ptp(slope), 1e-12):
        raise ValueError(
            f"`activation` must declare its kinks, got {activation!r}, whose slope jumps by {change:.3g} in all where none "
            "is declared. Use a named activation such as 'relu', or give `Activation` its `kinks`."
        )


def _jumps(activation: Activation) -> tuple:
    """How much the slope jumps at each kink."""
    slope, side = activation.derivative, 1e-6
    return tuple(
        slope(jnp.asarray(k + side)) - slope(jnp.asarray(k - side)) for k in activation.kinks
    )
