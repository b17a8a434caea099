r"""Training with a constant kernel: the lazy prediction of residuals and outputs over time
(chen2022, limit of the NTK scaling).

With $\dot f = -K (f - y)$ on the training points and $\dot f(x) = -k(x)^\top (f - y)$ elsewhere,
$$r(t) = e^{-K t} r(0), \qquad f_t(x) = f_0(x) - k(x)^\top K^{-1} (I - e^{-K t})\, r(0).$$
One eigen decomposition gives every time. The time is that of the half sum of squares; for the mean
divide it by $n$.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._core.arrays import real_array, square_matrix
from .._core.errors import check_positive
from .._core.precision import AbstractResult, double
from .infinite_width.learnt_part import learnt_part
from .infinite_width.stored_prediction import in_memory

__all__ = ["Linearised", "linearised"]

NEGATIVE = 1e-6  # relative to the largest eigenvalue: sampled kernels in float32 stay within it


class Linearised(AbstractResult):
    """Constant-kernel prediction; axes (time, sample) and, for several outputs, a last axis
    `output`.

    Attributes:
        times: when, shape (time,).
        outputs: $f_t$ on the training samples.
        residuals: $f_t - y$.
        losses: half the sum of squares over samples and outputs, shape (time,).
        test_outputs: $f_t$ on the test samples, or None.
        eigenvalues: of the kernel on the training samples.
        resolved: whether the smallest eigenvalue is above rounding.
    """

    times: Array
    outputs: Array
    residuals: Array
    losses: Array
    test_outputs: Array | None
    eigenvalues: Array
    resolved: bool = eqx.field(static=True)


@double
def linearised(
    kernel,
    targets,
    times,
    *,
    test_kernel=None,
    start=None,
    test_start=None,
    rate: float | int | None = None,
):
    r"""Outputs over time of $\dot f = -K (f - y)$, at the training points and at test points.

    Args:
        kernel: $K$, (sample, sample), positive semi-definite; a stored one is read into memory.
        targets: $y$, (sample,) or (sample, output).
        times: increasing or not, `inf` allowed: then the limit.
        test_kernel: $k$, (test sample, sample).
        start: outputs at time 0 on the training points, zero by default.
        test_start: outputs at time 0 on the test points, zero by default.
        rate: if given, gradient descent with this rate instead of the flow:
            $r_k = (I - \eta K)^k r_0$ at $t = k \eta$.

    Returns:
        `Linearised` with `outputs`, `residuals`, `losses`, `test_outputs` along `times`.
    """
    kernel = square_matrix("kernel", in_memory("kernel", kernel))
    targets = real_array("targets", targets, "(sample,)", "(sample, output)")
    given = real_array("times", times, "()", "(time)", finite=False)
    times = np.atleast_1d(np.asarray(given, float))
    samples = targets.shape[0]
    if kernel.shape != (samples, samples):
        raise ValueError(
            f"`kernel` must have shape {(samples, samples)} to fit `targets`, got {kernel.shape}."
        )
    if not np.all(times >= 0):
        raise ValueError(f"`times` must not be negative, got {times.min()}.")
    if rate is not None:
        check_positive("rate", rate, "For its limit leave it out.")
    if start is None:
        start = np.zeros(targets.shape, targets.dtype)
    start = real_array("start", start)
    if start.shape != targets.shape:
        raise ValueError(
            f"`start` must have the shape {targets.shape} of `targets`, got {start.shape}."
        )
    if test_kernel is not None:
        test_kernel = real_array("test_kernel", in_memory("test_kernel", test_kernel))
        if test_kernel.ndim != 2 or test_kernel.shape[1] != samples:
            raise ValueError(
                f"`test_kernel` must have shape (test sample, {samples}), got {test_kernel.shape}."
            )
    if test_start is not None:
        if test_kernel is None:
            raise ValueError("`test_start` needs the `test_kernel` of its points, got None.")
        shape = str((test_kernel.shape[0], *targets.shape[1:]))
        test_start = real_array("test_start", test_start, shape)
    spectrum, parts = _predict(kernel, targets, times, start, test_kernel, test_start, rate)
    _check_definite(spectrum)
    return Linearised(resolved=bool(np.asarray(parts["eigenvalues"])[0] > 0), **parts)


@jax.jit
def _predict(kernel, targets, times, start, test_kernel, test_start, rate):
    """The eigenvalues as they were computed, and the arrays of `Linearised`; one program for each
    set of shapes.
    """
    # the symmetric part: eigh would read one triangle alone
    spectrum, vectors = jnp.linalg.eigh((kernel + kernel.T) / 2)
    samples = targets.shape[0]
    floor = samples * jnp.finfo(spectrum.dtype).eps * jnp.max(jnp.abs(spectrum))
    values = jnp.where(spectrum > floor, spectrum, 0)
    remains, learnt = _decay(values, times, rate)  # (time, eigenvalue) each

    modes = vectors.T @ (start - targets).reshape(samples, -1)
    residuals = jnp.einsum("se,te,eo->tso", vectors, remains, modes)
    residuals = residuals.reshape(len(times), *targets.shape)
    test_outputs = None
    if test_kernel is not None:
        moved = jnp.einsum("xe,te,eo->txo", test_kernel @ vectors, learnt, modes)
        moved = moved.reshape(len(times), test_kernel.shape[0], *targets.shape[1:])
        test_outputs = -moved if test_start is None else test_start - moved
    parts = {
        "times": times,
        "outputs": targets + residuals,
        "residuals": residuals,
        "losses": 0.5 * jnp.sum(residuals.reshape(len(times), -1) ** 2, axis=1),
        "test_outputs": test_outputs,
        "eigenvalues": values,
    }
    return spectrum, parts


def _check_definite(values) -> None:
    """A kernel has no negative eigenvalue beyond rounding: along one the outputs would run away."""
    values = np.asarray(values)
    if values[0] < -NEGATIVE * np.max(np.abs(values)):
        raise ValueError(
            "`kernel` must be positive semi-definite, but its smallest eigenvalue is "
            f"{float(values[0]):.3g}."
        )


def _decay(values, times, rate):
    r"""$e^{-\lambda t}$ (or its form for descent), and what has been learnt,
    $(1 - e^{-\lambda t}) / \lambda$; at $\lambda = 0$ they are 1 and $t$ (0 at $t = \infty$, where
    $k(x)$ has no such part).
    """
    moving = values > 0
    safe = jnp.where(moving, values, 1)
    if rate is None:
        remains = jnp.exp(-jnp.where(moving, safe * times[:, None], 0))
    else:
        remains = jnp.where(moving, (1 - rate * safe) ** jnp.round(times[:, None] / rate), 1)
    return remains, learnt_part(values, times, rate)
