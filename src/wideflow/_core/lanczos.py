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
    first; fewer where the operator is smaller.

    Every new direction is orthogonalised against all earlier ones, twice, so that no eigenvalue
    comes back as a ghost. Where the space closes (an operator of low rank, or one with equal
    eigenvalues, of which one start sees one), the steps go on from a fresh direction orthogonal to
    it: Ritz values of a closed space are exact, and equal ones come as often as they are there.

    >>> import jax.numpy as jnp
    >>> diagonal = jnp.array([1.0, 5.0, 2.0, 2.0])
    >>> values = largest_eigenvalues(lambda v: diagonal * v, jnp.ones(4), 10, 3)
    >>> [round(float(value), 9) for value in values]
    [5.0, 2.0, 2.0]
    """
    depth = min(depth, start.size)

    def step(carry, _):
        basis, vector, number, top = carry
        basis = basis.at[number].set(vector)
        image = product(vector)
        diagonal = jnp.vdot(vector, image)
        image = _orthogonal(image, basis)  # to the current row too: that takes the diagonal away
        coupling = jnp.linalg.norm(image)
        top = jnp.maximum(top, jnp.maximum(jnp.abs(diagonal), coupling))
        more = coupling > TINY * top
        vector = jax.lax.cond(more, lambda: image / coupling, lambda: _fresh(number, basis))
        # a coupling of 0 cuts the matrix in two, as it should where the space closed
        return (basis, vector, number + 1, top), (diagonal, jnp.where(more, coupling, 0.0))

    first = start / jnp.linalg.norm(start)
    carry = (jnp.zeros((depth, start.size), start.dtype), first, 0, jnp.zeros((), start.dtype))
    _, (diagonal, couplings) = jax.lax.scan(step, carry, length=depth)
    inner = jnp.diag(diagonal) + jnp.diag(couplings[:-1], 1) + jnp.diag(couplings[:-1], -1)
    values = jnp.linalg.eigvalsh(inner.astype(jnp.float64))[::-1]
    return values[:count]


def _orthogonal(vector, basis):
    """Without its parts along the rows of `basis`: twice brings that to rounding (Kahan), for the
    first pass cancels leading digits.
    """
    for _ in range(2):
        vector = vector - basis.T @ (basis @ vector)
    return vector


def _fresh(number, basis):
    """A direction orthogonal to the basis, another one at each number."""
    key = jax.random.fold_in(jax.random.key(1), number)
    vector = _orthogonal(jax.random.normal(key, basis.shape[1:], basis.dtype), basis)
    # zero where the basis is complete, and then nobody reads it
    return vector / jnp.maximum(jnp.linalg.norm(vector), jnp.finfo(basis.dtype).tiny)
