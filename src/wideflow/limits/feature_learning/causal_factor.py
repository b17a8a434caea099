r"""Cholesky factors of a covariance that becomes known block by block, one block of rows a time
step.

$K(k, j)$ for $j \le k$ is known at step $k$ and never changes, so the process $u = F \zeta$ with
the lower triangular $F F^\top = K$ can be drawn forward in time. Training moves features slowly,
hence $K$ is nearly singular: a pivot that is nothing but rounding is dropped together with its
column, in place of a jitter that would bias every draw.
"""

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

# of the variance: sums over samples round at about 1e-16, and a dropped pivot p costs sqrt(p)
PIVOT = 1e-14


def append_rows(factor: jax.Array, rows: jax.Array, start) -> jax.Array:
    r"""`factor` with the rows of the next block of the covariance.

    Args:
        factor: $F$, (row, row), rows from `start` on still zero.
        rows: the covariance of the new block with all rows, (block, row); what comes after the
            block is not read.
        start: the block's first row.
    """
    size, block = factor.shape[0], rows.shape[0]
    earlier = jnp.arange(size) < start
    pivots = jnp.diagonal(factor)
    # A dropped pivot has an empty column: its unknown is solved with pivot 1, reaches nobody, and
    # is set to zero.
    live = earlier & (pivots > 0)
    lower = factor + jnp.diag(jnp.where(live, 0.0, 1.0))
    # L_21 = A_21 L_11^-T on the earlier rows; later ones are zeros behind unit pivots and stay zero
    known = jnp.where(earlier, rows, 0.0)
    left = jnp.where(live, solve_triangular(lower, known.T, lower=True).T, 0.0)
    own = jax.lax.dynamic_slice(rows, (0, start), (block, block))
    # the Schur complement; pivots are judged by the variance itself, not by what is left of it
    corner = _pivoted(own - left @ left.T, jnp.diagonal(own))
    new = jax.lax.dynamic_update_slice(left, corner, (0, start))
    return jax.lax.dynamic_update_slice(factor, new, (start, 0))


def whiten_rows(factor: jax.Array, white: jax.Array, fields: jax.Array, start) -> jax.Array:
    r"""The next block of $\omega = F^{-1}\phi$, white where
    $\langle\phi\phi^\top\rangle = FF^\top$; zero at dropped pivots.

    Args:
        factor: $F$ with the block's rows in place.
        white: $\omega$ of earlier rows, (row, sample), zero from `start` on.
        fields: $\phi$ of the block, (block, sample).
        start: the block's first row.
    """
    rows = jax.lax.dynamic_slice_in_dim(factor, start, len(fields), 0)
    corner = jax.lax.dynamic_slice_in_dim(rows, start, len(fields), 1)
    live = jnp.diagonal(corner) > 0
    innovations = fields - rows @ white  # rows of `white` from `start` on are still zero
    lower = corner + jnp.diag(jnp.where(live, 0.0, 1.0))
    return jnp.where(live[:, None], solve_triangular(lower, innovations, lower=True), 0.0)


def _pivoted(matrix: jax.Array, variances: jax.Array) -> jax.Array:
    """Cholesky by columns; a pivot below rounding of its variance leaves its column empty."""
    block = matrix.shape[0]

    def column(i, state):
        rest, factor = state
        pivot = rest[i, i]
        live = pivot > PIVOT * variances[i]
        root = jnp.sqrt(jnp.where(live, pivot, 1.0))
        values = jnp.where(live & (jnp.arange(block) >= i), rest[:, i] / root, 0.0)
        return rest - jnp.outer(values, values), factor.at[:, i].set(values)

    return jax.lax.fori_loop(0, block, column, (matrix, jnp.zeros_like(matrix)))[1]
