"""Rows of an array as lengths and directions, differentiable at zero rows."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def polar(
    rows: Float[Array, "row feature"],
) -> tuple[Float[Array, " row"], Float[Array, "row feature"]]:
    r"""$(r, u)$ with $w = ru$; a zero row has $r = 0$ and $u = 0$.

    The length has no derivative at zero; it is taken as 0 there (as $\sigma'$ is at a kink), so
    that every function of $r^2$, and every 2-homogeneous one, keeps its true gradient.

    >>> import jax.numpy as jnp
    >>> [x.tolist() for x in polar(jnp.array([[0.0, 2.0], [0.0, 0.0]]))]
    [[2.0, 0.0], [[0.0, 1.0], [0.0, 0.0]]]
    """
    squares = jnp.sum(rows * rows, axis=1)
    nonzero = squares > 0
    safe = jnp.sqrt(jnp.where(nonzero, squares, 1.0))
    return jnp.where(nonzero, safe, 0.0), rows / safe[:, None]
