r"""What infinitely many infinitely wide networks predict: their mean and covariance at any time of
training.

A wide network trained on $\frac12\lVert f - y\rVert^2$ moves as its linearisation,
$f_t(x) = f_0(x) - \Theta(x, X)\,T\,(f_0(X) - y)$ with
$$T = \Theta^{-1}(I - e^{-\Theta t}) \quad\text{(flow)}, \qquad T = \Theta^{-1}\big(I - (I -
  \eta\Theta)^k\big) \quad\text{(descent, } t = k\eta),$$
and starts as a Gaussian process of covariance $K$. Hence (lee2019, equations 14 to 16) the ensemble
is Gaussian with
$$\mu(x) = \Theta(x, X)\,T\,y, \qquad C(x, x') = K(x, x') + \Theta(x, X)\,T K T\,\Theta(X, x') -
  \Theta(x, X)\,T K(X, x') - K(x, X)\,T\,\Theta(X, x').$$
A penalty $\frac\lambda2\lVert\theta - \theta_0\rVert^2$ (`ridge`) replaces $\Theta$ by
$\Theta + \lambda I$ inside $T$. The time is that of the half sum of squares; for the mean divide it
by $n$. Several outputs are independent and share the covariance.

Every kernel may lie on disk (`write_kernel`): what fits the memory budget is read, beyond it the
same formulas are worked off with products over the chunks (`stored_prediction.py`).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._core.arrays import increasing, real_array
from .._core.errors import check_callable, check_nonnegative, check_positive, check_progress
from .._core.memory import budget
from .._core.precision import double
from .infinite_width.architecture_kernels import KernelPair
from .infinite_width.kernel_inverse import inverse
from .infinite_width.kernel_store import StoredKernel
from .infinite_width.learnt_part import learnt_part
from .infinite_width.stored_prediction import (
    check_factor,
    check_kernels,
    ensemble_moments,
    fits,
    in_memory,
    load,
    posterior_moments,
    test_kernels,
)

# Whole matrices that the formulas hold at once. Ensemble: both kernels, the symmetric part,
# eigenvectors, LAPACK's workspace of two, the rotated covariance and a product on its way.
# Posterior: the kernel, the difference from its transpose, kernel plus ridge, the factor, a copy.
ENSEMBLE_MATRICES, POSTERIOR_MATRICES = 8, 5

__all__ = [
    "Prediction",
    "cross_entropy",
    "ensemble",
    "log_marginal_likelihood",
    "output_flow",
    "posterior",
]


class Prediction(NamedTuple):
    """Mean (time, test sample, output) and covariance (time, test sample, test sample); axes that
    were not given are left out.

    `covariance` holds variances alone, (time, test sample), where the diagonal of the test kernel
    was given, and is None where no test kernel was.

    Attributes:
        mean: of the test outputs.
        covariance: over random networks.
    """

    mean: Float[Array, "..."]
    covariance: Float[Array, "..."] | None


@double
def ensemble(
    train: KernelPair | tuple,
    targets,
    times: float | int | Sequence[float | int] | np.ndarray | Array = math.inf,
    *,
    cross: KernelPair | tuple | None = None,
    test_nngp=None,
    rate: float | int | None = None,
    ridge: float | int = 0.0,
    memory: int | str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Prediction:
    r"""Mean and covariance of infinitely many trained networks, from both kernels.

    Args:
        train: both kernels of the training inputs, $(K, \Theta)$, each (sample, sample);
            `kernels(...).both(x)`, or a pair of stored kernels.
        targets: $y$, (sample,) or (sample, output).
        times: one time or several, `inf` allowed.
        cross: both kernels of test against training inputs, (test sample, sample), stored or not;
            the training inputs themselves if None.
        test_nngp: $K$ of the test inputs, (test sample, test sample), or its diagonal for variances
            alone; no covariance if None.
        rate: gradient descent at this rate instead of the flow; times are then rounded to whole
            steps $t = k\eta$.
        ridge: the penalty's $\lambda$.
        memory: bytes for stored kernels (`WIDEFLOW_MEMORY` if None).
        progress: for stored kernels, called with the blocks of a factor, or the steps of an
            iteration, that are done and with all of them.

    Returns:
        `Prediction(mean, covariance)`; a leading time axis where `times` is a sequence.

    >>> import wideflow as wf
    >>> k, x = wf.limits.kernels(wf.architecture.mlp(depth=2)), [[1.0, 0.0], [0.0, 1.0]]
    >>> y = [1.0, -1.0]
    >>> wf.limits.ensemble(k.both(x), y).mean.round(6).tolist()  # at infinite time the data are met
    [1.0, -1.0]
    """
    train = nngp, ntk = _pair("train", train)
    if cross is not None:
        cross = _pair("cross", cross)
    if test_nngp is not None:
        test_nngp = _matrix("test_nngp", test_nngp)
    y, several = _targets(targets, ntk.shape[0])
    _check_ridge(ridge)
    check_progress(progress)
    budget(memory)  # refused here, whether it is needed or not
    if rate is not None:
        check_positive("rate", rate, "For its limit leave it out.")
    given = real_array("times", times, "()", "(time)", finite=False).astype(float)
    moments = jnp.atleast_1d(given)
    if not np.all(np.asarray(moments) >= 0):
        raise ValueError(f"`times` must not be negative, got {np.asarray(moments).min()}.")
    stored = isinstance(nngp, StoredKernel) or isinstance(ntk, StoredKernel)
    if stored:
        check_kernels("train", dict(nngp=nngp, ntk=ntk), cross)
    if stored and not fits(ntk.shape[0], ENSEMBLE_MATRICES, memory):
        assert isinstance(nngp, StoredKernel)  # both are, as `check_kernels` has seen to
        assert isinstance(ntk, StoredKernel)
        cross, test_nngp = test_kernels("train", (nngp, ntk), cross, test_nngp)
        _check_test(test_nngp, cross[1].shape[0])
        settings = (cross, test_nngp, rate, ridge, memory, progress)
        mean, covariance = ensemble_moments(
            (nngp, ntk), np.asarray(y), np.asarray(moments), *settings
        )
    else:
        arrays = lambda pair: pair and KernelPair(*(jnp.asarray(load(part)) for part in pair))
        mean, covariance = _ensemble(
            arrays(train), y, moments, arrays(cross), load(test_nngp), rate, ridge
        )
    mean = mean if several else mean[..., 0]
    if given.ndim == 0:
        mean, covariance = mean[0], None if covariance is None else covariance[0]
    return Prediction(jnp.asarray(mean), None if covariance is None else jnp.asarray(covariance))


def _ensemble(train: KernelPair, y, moments, cross: KernelPair | None, test_nngp, rate, ridge):
    """Mean and covariance at all times, from the spectrum of the tangent kernel."""
    nngp, ntk = train
    values, vectors = spectrum_of("train.ntk", ntk)
    check_definite("train.nngp", nngp)
    learnt = learnt_part(values + ridge, moments, rate)  # the spectrum of T, (time, eigenvalue)
    _check_rate(values + ridge, rate)
    if cross is None:
        cross, test_nngp = KernelPair(nngp, ntk), nngp if test_nngp is None else test_nngp
    test_nngp_cross, test_ntk = _cross_kernels(cross, ntk.shape[0])
    _check_test(test_nngp, test_ntk.shape[0])
    # everything in the eigenvectors of Theta, where T is diagonal for every time: one decomposition
    read = test_ntk @ vectors  # Theta(x, X) V
    mean = jnp.einsum("xe,te,eo->txo", read, learnt, vectors.T @ y)
    if test_nngp is None:
        return mean, None
    return mean, _covariance(read, learnt, vectors, nngp, test_nngp_cross, test_nngp)


def _covariance(read, learnt, vectors, nngp, cross, test):
    r"""$K(x,x') + A K A^\top - A K(X,x') - K(x,X) A^\top$ with $A = \Theta(x,X)T$, in the
    eigenvectors of $\Theta$.
    """
    test = jnp.asarray(test)
    rotated = vectors.T @ nngp @ vectors
    crossed = cross @ vectors  # K(x, X) V
    weights = read * learnt[:, None, :]  # A V, (time, test sample, eigenvalue)
    if test.ndim == 1:
        spread = jnp.einsum("txe,ef,txf->tx", weights, rotated, weights)
        return test + spread - 2 * jnp.einsum("txe,xe->tx", weights, crossed)
    both = jnp.einsum("txe,ze->txz", weights, crossed)
    spread = jnp.einsum("txe,ef,tzf->txz", weights, rotated, weights)
    return test + spread - both - jnp.swapaxes(both, 1, 2)


@double
def posterior(
    nngp,
    targets,
    *,
    cross=None,
    test_nngp=None,
    ridge: float | int = 0.0,
    memory: int | str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Prediction:
    r"""The posterior of the Gaussian process of wide networks: all layers random, conditioned on
    the data (lee2018).

    $$\mu(x) = K(x, X)(K + \lambda I)^{-1}y, \qquad C(x, x') = K(x, x') - K(x, X)(K + \lambda
      I)^{-1}K(X, x').$$

    Args:
        nngp: $K$ of the training inputs, (sample, sample), stored or not.
        targets: $y$, (sample,) or (sample, output).
        cross: $K$ of test against training inputs, stored or not; the training inputs themselves if
            None.
        test_nngp: as in `ensemble`.
        ridge: $\lambda$, the variance of the noise in the targets.
        memory, progress: as in `ensemble`.
    """
    nngp = _matrix("nngp", nngp)
    y, several = _targets(targets, nngp.shape[0])
    check_progress(progress)
    budget(memory)
    if test_nngp is not None:
        test_nngp = _matrix("test_nngp", test_nngp)
    crosses = None
    if cross is not None:
        cross = _matrix("cross", cross)
        _check_cross("cross", cross, nngp.shape[0])
        crosses = (cross,)
    if isinstance(nngp, StoredKernel):
        check_kernels("nngp", dict(nngp=nngp), crosses)
    if isinstance(nngp, StoredKernel) and not fits(nngp.shape[0], POSTERIOR_MATRICES, memory):
        _check_ridge(ridge)
        (cross,), test_nngp = test_kernels("nngp", (nngp,), crosses, test_nngp)
        _check_test(test_nngp, cross.shape[0])
        mean, covariance = posterior_moments(
            nngp, np.asarray(y), cross, test_nngp, ridge, memory, progress
        )
    else:
        array = lambda matrix: None if matrix is None else jnp.asarray(load(matrix))
        mean, covariance = _posterior(array(nngp), array(cross), array(test_nngp), y, ridge)
    mean = jnp.asarray(mean if several else mean[:, 0])
    return Prediction(mean, None if covariance is None else jnp.asarray(covariance))


def _posterior(nngp, cross, test, y, ridge):
    """Mean and covariance from one Cholesky factor."""
    factor = cholesky("nngp", nngp, ridge)
    if cross is None:
        cross, test = nngp, nngp if test is None else test
    _check_test(test, cross.shape[0])
    mean = cross @ jax.scipy.linalg.cho_solve((factor, True), y)
    if test is None:
        return mean, None
    # K(x, X) (L L^T)^-1 K(X, x) = |L^-1 K(X, x)|^2: symmetric, and variances stay sums of squares
    half = jax.scipy.linalg.solve_triangular(factor, cross.T, lower=True)
    return mean, test - ((half**2).sum(0) if test.ndim == 1 else half.T @ half)


@double
def log_marginal_likelihood(
    nngp,
    targets,
    ridge: float | int = 0.0,
    *,
    memory: int | str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Float[Array, ""]:
    r"""$\log p(y) = -\frac12 y^\top(K+\lambda I)^{-1}y - \frac12\log\det(K + \lambda I) - \frac
    n2\log 2\pi$, summed over outputs.

    Args:
        nngp: $K$, shape (sample, sample), stored or not; of a stored one the factor, half of the
            matrix, must fit the memory budget.
        targets: $y$, shape (sample,) or (sample, output).
        ridge: $\lambda \ge 0$, the variance of observation noise.
        memory, progress: as in `ensemble`.
    """
    nngp = _matrix("nngp", nngp)
    check_progress(progress)
    budget(memory)
    y, _ = _targets(targets, nngp.shape[0])
    n, outputs = y.shape
    if isinstance(nngp, StoredKernel):
        check_kernels("nngp", dict(nngp=nngp), None)
        check_factor("nngp", nngp, memory)
        _check_ridge(ridge)
        solve, logs = inverse(nngp, ridge, memory, progress)
        # logs of the factor's diagonal below, half of log det here
        square, logs = jnp.sum(y * solve(np.asarray(y))), logs / 2
    else:
        factor = cholesky("nngp", nngp, ridge)
        square = jnp.sum(jax.scipy.linalg.solve_triangular(factor, y, lower=True) ** 2)
        logs = jnp.sum(jnp.log(jnp.diagonal(factor)))
    return -0.5 * square - outputs * (logs + 0.5 * n * jnp.log(2 * jnp.pi))


@double
def cross_entropy(outputs, targets):
    r"""$-\sum_i \log\mathrm{softmax}(f_i)_{y_i}$ for targets as probabilities (sample, output).

    Args:
        outputs: $f$, shape (sample, output).
        targets: rows of probabilities, for instance `data.one_hot(labels)`.
    """
    outputs = real_array("outputs", outputs, "(sample, output)")
    targets = real_array("targets", targets, str(outputs.shape))
    return -jnp.sum(targets * jax.nn.log_softmax(outputs, axis=-1))


@double
def output_flow(
    ntk,
    targets,
    times,
    *,
    loss: Callable = cross_entropy,
    cross=None,
    start=None,
    test_start=None,
    ridge: float | int = 0.0,
    tolerance: float = 1e-9,
) -> Float[Array, "time sample *output"]:
    r"""Outputs over time under any loss, with a constant tangent kernel.

    Linearised networks stay at $f_t(x) = f_0(x) + \Theta(x, X)a_t$, where
    $\dot a = -\nabla\ell(f_t(X)) - \lambda a$ from $a_0 = 0$: one system of (sample, output)
    numbers whatever the test points. For the half sum of squares `ensemble` has the closed form.

    Args:
        ntk: $\Theta$ of the training inputs; a stored one is read into memory.
        targets: what `loss` takes as its second argument, one row a sample.
        times: increasing finite times.
        loss: `loss(outputs, targets)`, a number: summed over the samples; `cross_entropy` by
            default.
        cross: $\Theta$ of test against training inputs; the training outputs are given if None.
        start, test_start: outputs at time 0 on the training and on the test inputs; zero by
            default.
        ridge: the penalty's $\lambda$.
        tolerance: relative tolerance of the solver, a hundredth of it absolute.

    Returns:
        The outputs at the test inputs (or at the training inputs), with a leading axis of times.
    """
    from .._core.solvers import diffrax

    ntk = real_array("ntk", in_memory("ntk", ntk))
    targets = real_array("targets", targets)
    _targets(targets, ntk.shape[0])
    _check_ridge(ridge)
    check_positive("tolerance", tolerance)
    check_callable("loss", loss, "a function of (outputs, targets)")
    if loss is cross_entropy and bool(jnp.any(targets < 0)):
        raise ValueError(
            f"`targets` of a cross-entropy must not be negative, got {float(targets.min())}. Give "
            "shares of the classes, or another `loss`."
        )
    check_definite("ntk", ntk)
    times = jnp.asarray(increasing("times", times))
    if not times[0] >= 0:
        raise ValueError(f"`times` must not be negative, got {float(times[0])}.")
    first = jnp.zeros(targets.shape, float)
    if start is not None:
        first = real_array("start", start, str(targets.shape)).astype(float)
    slope = jax.grad(loss)
    velocity = lambda t, a, _: -slope(first + jnp.tensordot(ntk, a, 1), targets) - ridge * a
    path = diffrax.diffeqsolve(
        diffrax.ODETerm(velocity),
        diffrax.Tsit5(),
        t0=0.0,
        t1=times[-1],
        dt0=None,
        y0=jnp.zeros_like(first),
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance / 100),
        max_steps=1_000_000,
    ).ys
    if cross is None and test_start is not None:
        raise ValueError("`test_start` needs the `cross` kernel of its points, got None.")
    if cross is None:
        return first + jnp.einsum("ns,ts...->tn...", ntk, path)
    cross = _matrix("cross", in_memory("cross", cross))
    _check_cross("cross", cross, ntk.shape[0])
    moved = jnp.einsum("ns,ts...->tn...", cross, path)
    if test_start is None:
        return moved
    return real_array("test_start", test_start, str(moved.shape[1:])) + moved


def spectrum_of(name: str, matrix):
    """Eigenvalues (those below rounding set to 0) and eigenvectors of a kernel matrix; refused
    where it is none.
    """
    check_symmetric(name, matrix)
    values, vectors = jnp.linalg.eigh((matrix + matrix.T) / 2)
    # LAPACK's eigenvalues are off by a modest multiple of eps |matrix|; n eps |matrix| is above it
    floor = matrix.shape[0] * jnp.finfo(values.dtype).eps * jnp.max(jnp.abs(values))
    _refuse_negative(name, float(values[0]), float(values[-1]), float(floor))
    return jnp.where(values > floor, values, 0.0), vectors


def check_definite(name: str, matrix) -> None:
    """Refuses a matrix that is no kernel: not symmetric, or with an eigenvalue below zero by more
    than rounding.
    """
    check_symmetric(name, matrix)
    values = jnp.linalg.eigvalsh((matrix + matrix.T) / 2)
    floor = matrix.shape[0] * jnp.finfo(values.dtype).eps * jnp.max(jnp.abs(values))
    _refuse_negative(name, float(values[0]), float(values[-1]), float(floor))


def _refuse_negative(name, smallest, largest, floor):
    # ten times: kernels themselves are rounded before they are decomposed
    if not smallest >= -10 * floor:
        raise ValueError(
            f"`{name}` must be positive semi-definite, but its eigenvalues run from "
            f"{smallest:.3g} to {largest:.3g}. "
            "Give the kernel of one set of inputs with itself."
        )


def check_symmetric(name: str, matrix) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"`{name}` must be a square matrix, got shape {matrix.shape}.")
    if isinstance(matrix, Tracer):  # inside `jit` or `grad` there are no numbers to look at
        return
    gap, size = float(jnp.max(jnp.abs(matrix - matrix.T))), float(jnp.max(jnp.abs(matrix)))
    # 1e-6: kernels in float32, and sampled ones, are symmetric to single precision; NaN fails too
    if not gap <= 1e-6 * size:
        raise ValueError(
            f"`{name}` must be symmetric and finite, but it differs from its transpose by "
            f"{gap:.3g}."
        )


def cholesky(name: str, matrix, ridge):
    r"""The lower factor of $K + \lambda I$; refused where it is not positive definite."""
    check_symmetric(name, matrix)
    _check_ridge(ridge)
    factor = jnp.linalg.cholesky(matrix + ridge * jnp.eye(matrix.shape[0], dtype=matrix.dtype))
    if not isinstance(factor, Tracer) and not bool(jnp.all(jnp.isfinite(factor))):
        raise ValueError(
            f"`{name}` plus `ridge` {ridge:g} must be positive definite, but has no Cholesky "
            "factor. Raise `ridge`, or drop inputs "
            "that occur twice."
        )
    return factor


def _check_ridge(ridge) -> None:
    check_nonnegative("ridge", ridge)


def _check_rate(values, rate) -> None:
    largest = float(values[-1])
    if rate is not None and rate * largest >= 2:
        raise ValueError(
            f"`rate` must be below 2/{largest:.3g} = {2 / largest:.3g}, or descent diverges, got "
            f"{rate}."
        )


def _targets(targets, samples: int):
    y = real_array("targets", targets)
    if y.ndim not in (1, 2) or y.shape[0] != samples:
        raise ValueError(
            f"`targets` must have shape ({samples},) or ({samples}, output) to fit the kernel, "
            f"got {y.shape}."
        )
    y = y.astype(jnp.result_type(float)) if not jnp.issubdtype(y.dtype, jnp.floating) else y
    return (y, True) if y.ndim == 2 else (y[:, None], False)


def _matrix(name: str, values) -> Any:
    return values if isinstance(values, StoredKernel) else real_array(name, values)


def _pair(name: str, kernels) -> KernelPair:
    if not (isinstance(kernels, tuple | list) and len(kernels) == 2):
        raise ValueError(
            f"`{name}` must be a pair of kernels (K, Theta), got {type(kernels).__name__}. "
            "`wf.limits.kernels(architecture).both(inputs)` gives both."
        )
    return KernelPair(*map(_matrix, (f"{name}.nngp", f"{name}.ntk"), kernels))


def _check_test(test, count: int) -> None:
    if test is not None and jnp.shape(test) not in ((count,), (count, count)):
        raise ValueError(
            f"`test_nngp` must have shape ({count}, {count}), or ({count},) for variances alone, "
            f"to fit `cross`, got {jnp.shape(test)}."
        )


def _cross_kernels(cross: KernelPair, samples: int):
    for name, matrix in zip(("cross.nngp", "cross.ntk"), cross):
        _check_cross(name, matrix, samples)
    return cross


def _check_cross(name: str, matrix, samples: int) -> None:
    if len(matrix.shape) != 2 or matrix.shape[1] != samples:
        raise ValueError(f"`{name}` must have shape (test sample, {samples}), got {matrix.shape}.")
