r"""Cholesky factors of kernel matrices beyond what one LAPACK call takes: by blocks, in place,
lower triangle alone.

$$A = \begin{pmatrix} A_{11} & \cdot \\ A_{21} & A_{22}\end{pmatrix}, \qquad L_{11}L_{11}^\top =
  A_{11}, \quad L_{21} = A_{21}L_{11}^{-\top}, \quad A_{22} \leftarrow A_{22} - L_{21}L_{21}^\top
  .$$

Each block is its own array, so the largest one has (block)^2 entries whatever the size of the
matrix (indices of GPU libraries are 32 bit), half of the matrix is never held, and a block of the
kernel is freed as soon as its factor stands.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

Blocks = dict[tuple[int, int], jax.Array]


def ranges(count: int, rows: int) -> list[tuple[int, int]]:
    """The blocks' first and last-plus-one rows; equal sizes but the last."""
    return [(start, min(start + rows, count)) for start in range(0, count, rows)]


@jax.jit
def _diagonal(block, ridge):
    return jnp.linalg.cholesky(block + ridge * jnp.eye(block.shape[0], dtype=block.dtype))


@jax.jit
def _panel(factor, block):
    return jax.scipy.linalg.solve_triangular(factor, block.T, lower=True).T


@functools.partial(jax.jit, donate_argnums=0)  # in its place: calls return before they are done
def _update(block, left, right):
    return block - left @ right.T


class NotPositiveDefiniteError(ValueError):
    """A pivot of the factor was not positive."""


def rounding(precision: str, trace: float) -> float:
    r"""$\epsilon\,\mathrm{tr}A$: the size of eigenvalues that rounding makes up in a factor of this
    precision.

    A Schur complement is a sum of up to $n$ products of size $a = \mathrm{tr}A/n$ that round at
    random, $\epsilon a\sqrt n$ an entry, and a symmetric matrix of such noise has a norm of
    $2\sqrt n$ times its entries: $2\epsilon na$, of which the mean over the steps of the
    elimination is a half.
    """
    return float(jnp.finfo(precision).eps) * trace


def factorise(blocks: Blocks, ridge: float, progress: Callable | None = None) -> Blocks:
    r"""The factor of $A + \lambda I$ in the place of $A$'s lower blocks (i, j), $i \ge j$; the
    given blocks are used up.

    Raises:
        NotPositiveDefiniteError: where a pivot is not positive.
    """
    count = 1 + max(i for i, _ in blocks)
    trace = float(sum(jnp.trace(blocks[i, i]) for i in range(count)))
    precision = str(blocks[0, 0].dtype)
    for k in range(count):
        blocks[k, k] = _diagonal(blocks[k, k], ridge)
        if not bool(jnp.all(jnp.isfinite(jnp.diagonal(blocks[k, k])))):
            raise NotPositiveDefiniteError(
                f"the kernel plus `ridge` {ridge:g} must be positive definite, but a pivot in "
                f"block {k} of {count} is not "
                f"positive. Raise `ridge`, to {rounding(precision, trace):.2g} (the rounding of "
                f"{precision}) or more, or drop inputs that occur twice."
            )
        for i in range(k + 1, count):
            # L_21 L_11^T = A_21 is a triangular solve for L_21^T
            blocks[i, k] = _panel(blocks[k, k], blocks[i, k])
        for j in range(k + 1, count):
            for i in range(j, count):
                blocks[i, j] = _update(blocks[i, j], blocks[i, k], blocks[j, k])
        if progress is not None:
            progress(k + 1, count)
    return blocks


def solve(factor: Blocks, targets, rows: int):
    r"""$A^{-1}y$ from the blocks of the factor: forward and backward substitution."""
    parts = [targets[a:b] for a, b in ranges(targets.shape[0], rows)]
    count = len(parts)
    for i in range(count):
        for j in range(i):
            parts[i] = parts[i] - factor[i, j] @ parts[j]
        parts[i] = jax.scipy.linalg.solve_triangular(factor[i, i], parts[i], lower=True)
    for i in reversed(range(count)):
        for j in range(i + 1, count):
            parts[i] = parts[i] - factor[j, i].T @ parts[j]
        parts[i] = jax.scipy.linalg.solve_triangular(factor[i, i], parts[i], lower=True, trans=1)
    return jnp.concatenate(parts)


def log_determinant(factor: Blocks) -> float:
    r"""$\log\det A = 2\sum_i\log L_{ii}$."""
    return 2 * float(
        sum(jnp.sum(jnp.log(jnp.diagonal(b))) for (i, j), b in factor.items() if i == j)
    )
