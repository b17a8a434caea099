r"""$T T^\top$ from its upper half: blocks below the diagonal are mirrored, not computed."""

import jax.numpy as jnp
from jaxtyping import Array, Float

HALVINGS = 2  # five eighths of the multiplications; a third halving saves no time
SMALLEST = 128  # rows; smaller blocks cost more in calls than they save


def symmetric_product(
    rows: Float[Array, "sample width"], halvings: int = HALVINGS
) -> Float[Array, "sample sample"]:
    r"""$T T^\top$.

    >>> symmetric_product(jnp.asarray([[1.0, 2.0], [0.0, 1.0]])).tolist()
    [[5.0, 2.0], [2.0, 1.0]]
    """
    half = len(rows) // 2
    if halvings == 0 or len(rows) < SMALLEST:
        return rows @ rows.T
    upper, lower = rows[:half], rows[half:]
    corner = upper @ lower.T
    first, last = (symmetric_product(part, halvings - 1) for part in (upper, lower))
    return jnp.block([[first, corner], [corner.T, last]])
