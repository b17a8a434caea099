"""Square roots and lengths that are differentiable at zero."""

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
    lengths = root(jnp.sum(rows * rows, axis=1))
    return lengths, rows / jnp.where(lengths > 0, lengths, 1.0)[:, None]


def root(squares: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Square roots, with derivative 0 at 0 (and 0 below, where rounding leads).

    >>> import jax, jax.numpy as jnp
    >>> float(root(jnp.array(4.0))), float(jax.grad(root)(0.0))
    (2.0, 0.0)
    """
    positive = squares > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squares, 1.0)), 0.0)
