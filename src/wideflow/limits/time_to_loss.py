r"""How long training with a constant kernel takes to bring the loss down to a given share.

With $\dot r = -K r$ and $K = \sum_e \lambda_e v_e v_e^\top$ the loss is
$L(t) = \tfrac12\sum_e \langle v_e, r_0\rangle^2 e^{-2\lambda_e t}$: convex and falling, so the time
at which $L = \rho L(0)$ is one root. What lies in the null space of $K$ never falls; a share below
it is never reached and the time is infinite.
"""

import math

import jax.numpy as jnp
import numpy as np

from .._core.arrays import real_values
from .._core.errors import check_between
from .._core.foreign import untyped
from .._core.precision import double

__all__ = ["reach_time", "time_to_loss", "times_to_loss"]


@double
def time_to_loss(kernel, residual, share: float) -> float:
    r"""The time $t$ with $L(t)$ = `share` $\cdot\, L(0)$ under $\dot r = -K r$, $r(0)$ =
    `residual`; `inf` if there is none.

    Eigenvalues below the rounding $n\,\epsilon\,\lambda_{\max}$ count as zero, as in `linearised`.

    Args:
        kernel: $K$, (sample, sample).
        residual: $r(0)$, (sample,) or (sample, output).
        share: $\rho$ in (0, 1].

    >>> round(time_to_loss([[2.0]], [3.0], share=0.01), 6)  # log(100) / (2 * 2)
    1.151293
    """
    check_between("share", share, 0.0, 1.0, remedy="It is the share of the initial loss.")
    return float(times_to_loss(kernel, residual, (share,))[0])


reach_time = time_to_loss  # its name in version 0.1


@double
def times_to_loss(kernel, residual, shares) -> np.ndarray:
    """`time_to_loss` for several shares, from one eigen decomposition.

    Args:
        kernel: $K$, shape (sample, sample).
        residual: $r(0)$, shape (sample,) or (sample, output).
        shares: of the initial loss, each in (0, 1].
    """
    kernel = np.asarray(real_values("kernel", kernel), float)
    residual = np.asarray(real_values("residual", residual), float)
    if kernel.ndim != 2 or kernel.shape != (residual.shape[0],) * 2:
        raise ValueError(
            f"`kernel` must have shape {(residual.shape[0],) * 2} to fit `residual`, got "
            f"{kernel.shape}."
        )
    values, vectors = (np.asarray(v) for v in jnp.linalg.eigh((kernel + kernel.T) / 2))
    floor = len(values) * np.finfo(float).eps * np.max(np.abs(values))
    values = np.where(values > floor, values, 0.0)
    weights = np.sum((vectors.T @ residual.reshape(len(values), -1)) ** 2, axis=1)
    total = float(np.sum(weights))
    return np.array(
        [_root(values, weights / total, share) if total > 0 else 0.0 for share in shares]
    )


def _root(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    from scipy.optimize import brentq  # a fifth of a second that importing wideflow need not take

    if share >= 1:
        return 0.0
    moving = values > 0
    if float(np.sum(weights[~moving])) >= share or not moving.any():
        return math.inf

    def excess(log_time: float) -> float:
        return float(np.sum(weights * np.exp(-2 * values * math.exp(log_time)))) / share - 1.0

    low = math.log(-math.log(share) / (2 * values.max())) - 1e-9  # one mode at the largest rate
    # all of it in the slowest mode that moves; where some of it stands still, the loop goes on
    high = math.log(max(-math.log(share), 1.0) / (2 * values[moving].min())) + 1.0
    while excess(high) > 0:
        high += 1.0
    # in the logarithm of time, which spans as many decades as the spectrum; rtol is brentq's least,
    # 4 eps
    return math.exp(untyped(brentq)(excess, low, high, xtol=1e-14, rtol=8.9e-16))
