"""The upper end of a symmetric operator's spectrum from products with it."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# far above rounding (1e-16 times the norm), far below any coupling that moves a leading Ritz value:
# one of size c moves it by c^2 over a gap at most
TINY = 1e-10  # of the largest coupling so far: below it the Krylov space is closed


def largest_eigenvalues(
    product: Callable[[Float[Array, " entry"]], Float[Array, " entry"]],
    start: Float[Array, " entry"],
    depth: int,
    count: int = 1,
) -> Float[Array, " count"]:
    r"""The `count` largest (algebraic) Ritz values of `depth` Lanczos steps from `start`, largest
    first.

    Every new direction is orthogonalised against all earlier ones, twice, so that no eigenvalue
    comes back as a ghost. A space that closes early (an operator of low rank, or `depth` above its
    size) is cut there, where matfree's Lanczos would divide by zero; its Ritz values are then
    exact.

    >>> import jax.numpy as jnp
    >>> diagonal = jnp.array([1.0, 5.0, 2.0])
    >>> round(float(largest_eigenvalues(lambda v: diagonal * v, jnp.ones(3), 10)[0]), 9)
    5.0
    """
    depth = min(depth, start.size)

    def step(carry, _):
        basis, vector, number, top, alive = carry
        basis = jnp.where(alive, basis.at[number].set(vector), basis)
        image = product(vector)
        diagonal = jnp.vdot(vector, image)
        # all rows at once, the current one included, which takes the diagonal part away as well;
        # twice brings orthogonality to rounding (Kahan), for the first pass cancels leading digits
        for _ in range(2):
            image = image - basis.T @ (basis @ image)
        coupling = jnp.linalg.norm(image)
        top = jnp.maximum(top, jnp.maximum(jnp.abs(diagonal), coupling))
        more = alive & (coupling > TINY * top)
        vector = jnp.where(more, image / jnp.where(more, coupling, 1.0), 0.0)
        out = (jnp.where(alive, diagonal, 0.0), jnp.where(more, coupling, 0.0), alive)
        return (basis, vector, number + 1, top, more), out

    first = start / jnp.linalg.norm(start)
    zero = jnp.zeros((), start.dtype)
    carry = (jnp.zeros((depth, start.size), start.dtype), first, 0, zero, jnp.ones((), bool))
    _, (diagonal, couplings, alive) = jax.lax.scan(step, carry, length=depth)
    # Gershgorin: no eigenvalue lies below -(max |diagonal| + 2 max coupling)
    # rows past a closed space are put far below, so that they are never among the largest
    floor = -2 * (jnp.max(jnp.abs(diagonal)) + 2 * jnp.max(couplings)) - 1
    diagonal = jnp.where(alive, diagonal, floor)
    # the last coupling leads out of the space; one that is 0 cuts the matrix in two
    inner = jnp.diag(diagonal) + jnp.diag(couplings[:-1], 1) + jnp.diag(couplings[:-1], -1)
    values = jnp.linalg.eigvalsh(inner.astype(jnp.float64))[::-1]
    return values[:count]
