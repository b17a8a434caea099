r"""Kernel regression at sizes where the kernel matrix does not fit, or only just.

`regress` solves $(k(X, X) + \lambda I)\,a = y$; `apply_kernel` gives $k(x, X)\,a$ at new inputs without holding $k(x, X)$.

* Where half of the matrix fits the budget: Cholesky by blocks (`block_cholesky.py`).
* Else: conjugate gradients, each product computed from fresh blocks of the kernel that are never stored, preconditioned by
  the pivoted-Cholesky approximation of `rank` columns, $P = L L^\top + \lambda I$ (gardner2018), whose inverse is Woodbury's.
* float32 with refinement: the factor or the products in float32, the residual in float64, until `tolerance` is met.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.errors import check_choice, check_positive
from ..._core.memory import budget
from ..._core.precision import double
from .architecture_kernels import Kernels
from .block_cholesky import factorise, ranges, solve


class Regression(NamedTuple):
    r"""Dual coefficients (sample, output), the residual's size relative to the targets', the steps taken and the way.

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
    r"""$k(x, x')\,v$ for all rows of $x$, with blocks of `rows` samples of the kernel at a time; none is stored.

    Args:
        k: the kernels.
        x, x2: inputs, (left, ...) and (right, ...).
        vectors: $v$, (right,) or (right, output).
        kernel: 'ntk' or 'nngp'.
        progress: called with the blocks done and all of them.
    """
    check_choice("kernel", kernel, ("ntk", "nngp"))
    x, x2, vectors = jnp.asarray(x), jnp.asarray(x2), jnp.asarray(vectors)
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


@double
def regress(
    k: Kernels,
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
        k: the kernels; with precision 'float32' the matrix is held and factorised in float32, and the solution is refined
            until the residual, in float64, is below `tolerance`.
        x, targets: training inputs and $y$, (sample,) or (sample, output).
        kernel: 'ntk' or 'nngp'.
        ridge: $\lambda$.
        method: 'cholesky' or 'cg'; by the memory budget if None.
        memory: bytes (`WIDEFLOW_MEMORY` if None).
        rows: samples of a block; by the size and the budget if None.
        rank: columns of the preconditioner of 'cg'.
        tolerance: of the residual, relative to the targets.
        max_steps: of 'cg', or of the refinement.
        progress: called with the steps done and all of them.
    """
    check_choice("kernel", kernel, ("ntk", "nngp"))
    check_positive("ridge", ridge, "Kernels of many inputs are singular to rounding.")
    check_positive("tolerance", tolerance)
    x = jnp.asarray(x)
    y = jnp.asarray(targets, float)
    if y.ndim not in (1, 2) or y.shape[0] != x.shape[0]:
        raise ValueError(
            f"`targets` must have shape ({x.shape[0]},) or ({x.shape[0]}, output), got {y.shape}."
        )
    columns = y if y.ndim == 2 else y[:, None]
    itemsize = jnp.dtype(k.precision).itemsize
    room = budget(memory)
    if method is None:
        method = "cholesky" if factor_bytes(x.shape[0], itemsize) <= room else "cg"
    check_choice("method", method, ("cholesky", "cg"))
    if rows is None:
        rows = int(min(x.shape[0], max(64, min(4096, (room // (16 * itemsize)) ** 0.5))))
    exact = Kernels(k.architecture, k.parametrisation, k.rates, k.memory)
    product = lambda v: apply_kernel(exact, x, x, v, kernel=kernel, rows=rows) + ridge * v
    if method == "cholesky":
        solution = _direct(k, x, columns, kernel, ridge, rows, product, tolerance, max_steps, progress)  # fmt: skip
    else:
        precondition = pivoted_preconditioner(k, x, kernel, ridge, rank)
        solution = conjugate_gradients(
            product, columns, precondition, tolerance, max_steps, progress
        )
    coefficients, residual, steps = solution
    if not residual <= tolerance:
        raise ValueError(
            f"the residual is {residual:.2g} after {steps} steps of '{method}', above `tolerance` {tolerance:g}. Raise `ridge` (now "
            f"{ridge:g}), `rank` or `max_steps`, or use precision='float64'."
        )
    return Regression(coefficients[:, 0] if y.ndim == 1 else coefficients, residual, steps, method)


def factor_bytes(samples: int, itemsize: int) -> int:
    """What the blocks of half a matrix take, with a tenth more for what is being worked on."""
    return int(1.1 * itemsize * samples * (samples + 1) / 2)


def _direct(k, x, y, kernel, ridge, rows, product, tolerance, max_steps, progress):
    parts = ranges(x.shape[0], rows)
    block = getattr(k, kernel)
    blocks, total = {}, len(parts) * (len(parts) + 1) // 2
    for i, (a, b) in enumerate(parts):
        for j, (c, d) in enumerate(parts[: i + 1]):
            blocks[i, j] = block(x[a:b], None if i == j else x[c:d])
            if progress is not None:
                progress(len(blocks), total + len(parts))
    tell = progress and (lambda done, count: progress(total + done, total + count))
    factor = factorise(blocks, ridge, tell)
    answer = lambda r: solve(factor, r.astype(k.precision), rows).astype(y.dtype)
    coefficients = answer(y)
    if k.precision == "float64":  # LAPACK's own error: a residual would cost the whole kernel again
        return coefficients, 0.0, 1
    for step in range(1, max_steps + 1):
        rest = y - product(coefficients)
        size = float(jnp.linalg.norm(rest) / jnp.linalg.norm(y))
        if size <= tolerance or step == max_steps:
            return coefficients, size, step
        coefficients = coefficients + answer(rest)
    raise AssertionError("max_steps is at least 1")


def pivoted_preconditioner(k: Kernels, x, kernel: str, ridge: float, rank: int) -> Callable:
    r"""$v \mapsto (LL^\top + \lambda I)^{-1}v$, $L$ the pivoted Cholesky factor of `rank` columns.

    Each column needs one row of the kernel: the input whose variance the columns so far explain least. Woodbury:
    $(LL^\top + \lambda I)^{-1} = \lambda^{-1}\big(I - L(\lambda I + L^\top L)^{-1}L^\top\big)$.
    """
    row = getattr(k, kernel)
    rest = np.array(getattr(k, f"{kernel}_diagonal")(x), dtype=float)
    columns = np.zeros((min(rank, x.shape[0]), x.shape[0]))
    floor = np.finfo(float).eps * rest.max() * x.shape[0]
    used = 0
    for used in range(columns.shape[0]):
        pivot = int(np.argmax(rest))
        if rest[pivot] <= max(floor, 1e-3 * ridge):  # what is left is below the ridge
            break
        values = np.asarray(row(x[pivot : pivot + 1], x), dtype=float)[0]
        column = (values - columns[:used, pivot] @ columns[:used]) / np.sqrt(rest[pivot])
        columns[used] = column
        rest = np.maximum(rest - column**2, 0.0)
    else:
        used = columns.shape[0]
    L = jnp.asarray(columns[:used])
    small = jnp.linalg.cholesky(ridge * jnp.eye(used) + L @ L.T)
    return lambda v: (v - L.T @ jax.scipy.linalg.cho_solve((small, True), L @ v)) / ridge


def conjugate_gradients(product, y, precondition, tolerance, max_steps, progress=None):
    """Preconditioned conjugate gradients for all columns at once; (solution, relative residual, steps)."""
    x, r = jnp.zeros_like(y), y
    z = precondition(r)
    p, weight = z, (r * z).sum(0)
    size = float(jnp.linalg.norm(y))
    for step in range(1, max_steps + 1):
        q = product(p)
        rate = weight / (p * q).sum(0)
        x, r = x + rate * p, r - rate * q
        residual = float(jnp.linalg.norm(r)) / size
        if progress is not None:
            progress(step, max_steps)
        if residual <= tolerance:
            break
        z = precondition(r)
        new = (r * z).sum(0)
        p, weight = z + new / weight * p, new
    return x, residual, step
