r"""Kernel regression at sizes where the kernel matrix does not fit, or only just.

`regress` solves $(k(X, X) + \lambda I)\,a = y$; `apply_kernel` gives $k(x, X)\,a$ at new inputs
without holding $k(x, X)$. A kernel that `write_kernel` has stored is read, not computed again:
`regress(stored, None, y, ridge=...)`, and `stored_cross @ a` at new inputs.

* Where half of the matrix fits the budget: Cholesky by blocks (`block_cholesky.py`).
* Else: conjugate gradients, each product computed from fresh blocks of the kernel that are never
  stored, preconditioned by the pivoted-Cholesky approximation of `rank` columns,
  $P = L L^\top + \lambda I$ (gardner2018), whose inverse is Woodbury's.
* float32: the factor in float32 is the preconditioner of conjugate gradients with products in
  float64, until `tolerance` is met. Rounding moves the eigenvalues of the float32 matrix by
  $\epsilon\,\mathrm{tr} K$ or more (entries of nearly equal inputs, whose angle is a root of a
  difference, lose half of their digits), so a small ridge would leave negative pivots. The factor
  then takes a larger one, $\lambda'$, and about $\sqrt{\lambda'/\lambda}$ times as many steps make
  up for it.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.arrays import real_array
from ..._core.errors import (
    check_choice,
    check_count,
    check_kind,
    check_positive,
    check_progress,
)
from ..._core.memory import budget
from ..._core.precision import double
from .architecture_kernels import Kernels
from .block_cholesky import NotPositiveDefiniteError, factorise, ranges, rounding, solve
from .kernel_store import StoredKernel, check_complete

# ridges tried for a float32 factor, from its rounding to a thousand times that: beyond, it is no
# preconditioner
RAISED = 4


class Regression(NamedTuple):
    r"""Dual coefficients (sample, output), the residual's size relative to the targets', the steps
    taken and the way.

    Attributes:
        coefficients: one row a sample, one column an output.
        residual: $\lVert y - (K + \lambda I)\alpha\rVert/\lVert y\rVert$ for coefficients $\alpha$.
        steps: of conjugate gradients, or of the refinement after Cholesky.
        method: 'cholesky' or 'cg'.
    """

    coefficients: jax.Array
    residual: float
    steps: int
    method: str


@double
def apply_kernel(
    k: Kernels, x, x2, vectors, *, kernel: str = "ntk", rows: int = 2048, progress=None
) -> jax.Array:
    r"""$k(x, x')\,v$ for all rows of $x$, with blocks of `rows` samples of the kernel at a time;
    none is stored.

    Args:
        k: the kernels.
        x, x2: inputs, (left, ...) and (right, ...).
        vectors: $v$, (right,) or (right, output).
        kernel: 'ntk' or 'nngp'.
        progress: called with the blocks done and all of them.
    """
    check_kind("k", k, Kernels, "kernels", "`wf.limits.kernels(architecture)` gives them.")
    check_choice("kernel", kernel, ("ntk", "nngp"))
    check_count("rows", rows)
    check_progress(progress)
    x, x2 = (_inputs(name, value) for name, value in (("x", x), ("x2", x2)))
    n2 = x2.shape[0]
    vectors = real_array("vectors", vectors, f"({n2},)", f"({n2}, output)")
    block = getattr(k, kernel)
    left, right = ranges(x.shape[0], rows), ranges(x2.shape[0], rows)
    parts = []
    for n, (a, b) in enumerate(left):
        total = 0.0
        for m, (c, d) in enumerate(right):
            total = total + block(x[a:b], x2[c:d]) @ vectors[c:d].astype(k.precision)
            if progress is not None:
                progress(n * len(right) + m + 1, len(left) * len(right))
        parts.append(total)
    return jnp.concatenate(parts)


def _inputs(name: str, value):
    inputs = real_array(name, value)
    if not inputs.ndim > 1:
        raise ValueError(
            f"`{name}` must have shape (sample, ...), got {inputs.shape}. For one input use "
            "`[None]`."
        )
    return inputs


class Source(NamedTuple):
    """Where the numbers of a kernel matrix come from: computed from inputs, or read from disk."""

    samples: int
    precision: str
    block: Callable  # of the number of the block's rows and columns
    product: Callable  # with vectors, in float64
    row: Callable
    diagonal: Callable


def _computed(k: Kernels, x, kernel: str, rows: int) -> Source:
    x, values = jnp.asarray(x), getattr(k, kernel)
    parts = ranges(x.shape[0], rows)
    exact = getattr(Kernels(k.architecture, k.parametrisation, k.rates, k.memory), kernel)

    def block(i, j, of=values):
        (a, b), (c, d) = parts[i], parts[j]
        return of(x[a:b], None if i == j else x[c:d])

    def product(vectors):
        """Every block below the diagonal serves its mirror image too."""
        totals = [0.0] * len(parts)
        for i, (a, b) in enumerate(parts):
            for j, (c, d) in enumerate(parts[: i + 1]):
                entries = block(i, j, exact)
                totals[i] = totals[i] + entries @ vectors[c:d]
                if i != j:
                    totals[j] = totals[j] + entries.T @ vectors[a:b]
        return jnp.concatenate(totals)

    return Source(
        x.shape[0],
        k.precision,
        block,
        product,
        lambda i: values(x[i : i + 1], x)[0],
        lambda: getattr(k, f"{kernel}_diagonal")(x),
    )


def stored_source(stored: StoredKernel) -> Source:
    """A kernel on disk as a source of blocks, products and rows."""
    return Source(
        stored.shape[0],
        stored.dtype.name,
        lambda i, j: jnp.asarray(stored.block(i, j)),
        lambda v: jnp.asarray(stored @ np.asarray(v)),
        lambda i: stored.rows(i, i + 1)[0],
        stored.diagonal,
    )


@double
def regress(
    k: Kernels | StoredKernel,
    x,
    targets,
    *,
    kernel: str = "ntk",
    ridge: float,
    method: str | None = None,
    memory: int | str | None = None,
    rows: int | None = None,
    rank: int = 200,
    tolerance: float = 1e-8,
    max_steps: int = 1000,
    progress: Callable[[int, int], None] | None = None,
) -> Regression:
    r"""$(k(X, X) + \lambda I)^{-1}y$ at any size.

    Args:
        k: the kernels, or a stored kernel matrix, which is read and not computed again; in float32
            the matrix is held and factorised in float32, and the solution is refined until the
            residual, in float64, is below `tolerance`.
        x, targets: training inputs (None with a stored kernel) and $y$, (sample,) or (sample,
            output).
        kernel: 'ntk' or 'nngp'; a stored kernel is what it was written as.
        ridge: $\lambda$.
        method: 'cholesky' or 'cg'; by the memory budget if None.
        memory: bytes (`WIDEFLOW_MEMORY` if None).
        rows: samples of a block; by the size and the budget if None. A stored kernel has its
            chunks.
        rank: columns of the preconditioner of 'cg'.
        tolerance: of the residual, relative to the targets.
        max_steps: of 'cg', or of the refinement.
        progress: called with the steps done and all of them.
    """
    check_choice("kernel", kernel, ("ntk", "nngp"))
    check_positive("ridge", ridge, "Kernels of many inputs are singular to rounding.")
    check_positive("tolerance", tolerance)
    check_kind("k", k, (Kernels, StoredKernel), "kernels or a stored kernel")
    check_count("rank", rank)
    check_count("max_steps", max_steps)
    check_progress(progress)
    room = budget(memory)
    if isinstance(k, StoredKernel):
        _check_stored(k, x, rows)
        source, rows = stored_source(k), k.chunk
    else:
        x = _inputs("x", x)
        if rows is not None:
            check_count("rows", rows)
        else:
            rows = block_rows(len(x), jnp.dtype(k.precision).itemsize, room)
        source = _computed(k, x, kernel, rows)
    n = source.samples
    y = real_array("targets", targets, f"({n},)", f"({n}, output)").astype(float)
    columns = y if y.ndim == 2 else y[:, None]
    if method is None:
        needed = factor_bytes(source.samples, jnp.dtype(source.precision).itemsize)
        method = "cholesky" if needed <= room else "cg"
    check_choice("method", method, ("cholesky", "cg"))
    if method == "cholesky":
        solution = _direct(source, columns, ridge, rows, tolerance, max_steps, progress)
    else:
        precondition = pivoted_preconditioner(source, ridge, rank)
        product = lambda v: source.product(v) + ridge * v
        solution = conjugate_gradients(
            product, columns, precondition, tolerance, max_steps, progress
        )
    coefficients, residual, steps = solution
    if not residual <= tolerance:
        least = rounding(source.precision, float(np.sum(np.asarray(source.diagonal(), float))))
        raise ValueError(
            f"the residual is {residual:.2g} after {steps} steps of '{method}', above "
            f"`tolerance` {tolerance:g}. Raise `ridge` (now "
            f"{ridge:g}; at {least:.2g} it is above the rounding of {source.precision}), `rank` "
            "or `max_steps`, or use precision='float64'."
        )
    return Regression(coefficients[:, 0] if y.ndim == 1 else coefficients, residual, steps, method)


def _check_stored(stored: StoredKernel, x, rows) -> None:
    if not stored.symmetric:
        raise ValueError(
            "`k` must be the stored kernel of the training inputs with themselves, got one of "
            f"two sets of inputs, of shape {stored.shape}."
        )
    check_complete("k", stored)
    for name, value in (("x", x), ("rows", rows)):
        if value is not None:
            raise ValueError(
                f"`{name}` must be None with a stored kernel, which has inputs and chunks of its "
                f"own, got {type(value).__name__}."
            )


def block_rows(samples: int, itemsize: int, room: int) -> int:
    """Samples of a block whose numbers take a 64th of the budget: 32 MiB of the 2 GiB by default.

    From 32 MiB on glibc always maps a block by itself and gives it back when it is freed. Smaller
    ones come from its heap, where the blocks that the factor replaces leave holes: 20,000 samples
    took 4.2e9 bytes in blocks of 8 MiB, and 2.7e9 in blocks of 32 MiB.
    """
    side = math.ceil(math.sqrt(room / 64 / itemsize))
    return min(samples, max(64, min(4096, side)))


def factor_bytes(samples: int, itemsize: int) -> int:
    """What the blocks of half a matrix take, with a tenth more for what is being worked on."""
    return int(1.1 * itemsize * samples * (samples + 1) / 2)


def _direct(source: Source, y, ridge, rows, tolerance, max_steps, progress):
    # LAPACK's own error: a residual would cost the whole kernel again
    if source.precision == "float64":
        return solve(factor_of(source, ridge, rows, progress), y, rows), 0.0, 1
    factor = _single_factor(source, ridge, rows, progress)
    answer = lambda r: solve(factor, r.astype(source.precision), rows).astype(y.dtype)
    product = lambda v: source.product(v) + ridge * v
    return conjugate_gradients(product, y, answer, tolerance, max_steps, progress)


def factor_of(source: Source, ridge, rows, progress):
    """The blocks of the factor of the kernel plus the ridge, in the source's precision."""
    count = len(ranges(source.samples, rows))
    blocks, total = {}, count * (count + 1) // 2
    for i in range(count):
        for j in range(i + 1):
            blocks[i, j] = source.block(i, j)
            if progress is not None:
                progress(len(blocks), total + count)
    tell = progress and (lambda done, parts: progress(total + done, total + parts))
    return factorise(blocks, ridge, tell)


def _single_factor(source: Source, ridge, rows, progress):
    """A float32 factor of the kernel plus the ridge, or plus the first power of ten times the
    rounding at which there is one.
    """
    trace = float(np.sum(np.asarray(source.diagonal(), float)))
    if ridge < rounding("float64", trace):  # not even float64 products could tell it from zero
        return factor_of(source, ridge, rows, progress)
    damped = max(ridge, rounding(source.precision, trace))
    for _ in range(RAISED - 1):
        try:
            return factor_of(source, damped, rows, progress)
        except NotPositiveDefiniteError:
            damped *= 10
    return factor_of(source, damped, rows, progress)


def pivoted_preconditioner(source: Source, ridge: float, rank: int) -> Callable:
    r"""$v \mapsto (LL^\top + \lambda I)^{-1}v$, $L$ the pivoted Cholesky factor of `rank` columns.

    Each column needs one row of the kernel: the input whose variance the columns so far explain
    least. Woodbury:
    $(LL^\top + \lambda I)^{-1} = \lambda^{-1}\big(I - L(\lambda I + L^\top L)^{-1}L^\top\big)$.
    """
    rest = np.array(source.diagonal(), dtype=float)
    columns = np.zeros((min(rank, source.samples), source.samples))
    # pivots at the level of rounding would divide noise by its root
    floor = np.finfo(float).eps * rest.max() * source.samples
    used = 0
    for used in range(columns.shape[0]):
        pivot = int(np.argmax(rest))
        # 1e-3 (chosen): (K + ridge I) and the preconditioner then differ by a small share of the
        # ridge an entry
        if rest[pivot] <= max(floor, 1e-3 * ridge):  # what is left is below the ridge
            break
        values = np.asarray(source.row(pivot), dtype=float)
        # one row of the Schur complement K - L L^T over the root of its pivot
        column = (values - columns[:used, pivot] @ columns[:used]) / np.sqrt(rest[pivot])
        columns[used] = column
        rest = np.maximum(rest - column**2, 0.0)
    else:
        used = columns.shape[0]
    L = jnp.asarray(columns[:used])
    small = jnp.linalg.cholesky(ridge * jnp.eye(used) + L @ L.T)
    return lambda v: (v - L.T @ jax.scipy.linalg.cho_solve((small, True), L @ v)) / ridge


def conjugate_gradients(product, y, precondition, tolerance, max_steps, progress=None):
    """Preconditioned conjugate gradients for all columns at once; (solution, relative residual,
    steps).
    """
    x, r = jnp.zeros_like(y), y
    z = precondition(r)
    p, weight = z, (r * z).sum(0)
    size = float(jnp.linalg.norm(y)) or 1.0
    for step in range(1, max_steps + 1):
        q = product(p)
        curvature = (p * q).sum(0)
        moving = curvature > 0  # a column of zeros, or one that is solved exactly, stays
        rate = jnp.where(moving, weight / jnp.where(moving, curvature, 1.0), 0.0)
        x, r = x + rate * p, r - rate * q
        residual = float(jnp.linalg.norm(r)) / size
        if progress is not None:
            progress(step, max_steps)
        if residual <= tolerance:
            break
        z = precondition(r)
        new = (r * z).sum(0)
        p, weight = z + jnp.where(moving, new / jnp.where(moving, weight, 1.0), 0.0) * p, new
    return x, residual, step
