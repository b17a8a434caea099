r"""$f(M)v$ for several functions $f$ and one symmetric positive semidefinite $M$: dense, or by Lanczos."""

import abc
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Vector = Float[Array, " entry"]
Scalars = Callable[[Float[Array, " eigenvalue"]], Float[Array, " eigenvalue"]]


class AbstractAction(eqx.Module):
    """How functions of the Gram matrix are applied."""

    dense: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def __call__(self, operator, v: Vector, functions: Sequence[Scalars]) -> list[Vector]:
        r"""The vectors $f(M)v$."""


class Dense(AbstractAction):
    r"""By the eigen decomposition of the matrix; exact to rounding, $O(N^3)$.

    $M$ may be an extrapolated combination of Gram matrices: eigenvalues below 0 count as 0.
    """

    dense: bool = eqx.field(static=True, default=True)

    def decompose(self, matrix: Float[Array, "entry entry"]):
        """Eigenvalues and eigenvectors."""
        values, vectors = jnp.linalg.eigh(matrix)
        return jnp.maximum(values, 0.0), vectors

    def __call__(self, operator, v, functions):
        values, vectors = self.decompose(operator)
        parts = v @ vectors
        return [vectors @ (f(values) * parts) for f in functions]


class Krylov(AbstractAction):
    r"""By `depth` steps of Lanczos with full reorthogonalisation: $f(M)v \approx |v|\,Q f(T) e_1$.

    `operator` is $v \mapsto Mv$; memory `depth` vectors. A space that closes early (low rank) is cut there, where matfree's
    Lanczos would divide by zero. What the space misses shows in a step's defect, which is Saad's estimate
    $h\beta_k|e_k^\top\varphi_1(-hT)e_1|$ for a frozen Jacobian, so the step controller sees it.
    """

    depth: int = eqx.field(static=True)
    dense: bool = eqx.field(static=True, default=False)

    def __call__(self, operator, v, functions):
        depth = min(self.depth, v.size)
        length = jnp.linalg.norm(v)
        basis, diagonal, couplings = lanczos(operator, v, depth)
        inner = jnp.diag(diagonal) + jnp.diag(couplings[:-1], 1) + jnp.diag(couplings[:-1], -1)
        values, vectors = jnp.linalg.eigh(inner)
        values = jnp.maximum(values, 0.0)
        return [length * ((vectors @ (f(values) * vectors[0])) @ basis) for f in functions]


def lanczos(operator, v: Vector, depth: int):
    """The basis (depth, entry), the diagonal and the couplings of the tridiagonal matrix; the last coupling leads out."""
    tiny = jnp.finfo(v.dtype).eps

    def body(k, carry):
        basis, diagonal, couplings, top = carry
        new = operator(basis[k])
        alpha = jnp.vdot(basis[k], new)
        for _ in range(2):  # twice is enough
            new = new - (basis @ new) @ basis
        beta, top = jnp.linalg.norm(new), jnp.maximum(top, jnp.abs(alpha))
        beta = jnp.where(beta > 10 * tiny * top, beta, 0.0)
        following = jnp.where(beta > 0, new / jnp.where(beta > 0, beta, 1.0), 0.0)
        basis = basis.at[k + 1].set(following, mode="drop")
        return basis, diagonal.at[k].set(alpha), couplings.at[k].set(beta), top

    length = jnp.linalg.norm(v)
    first = jnp.where(length > 0, v / jnp.where(length > 0, length, 1.0), 0.0)
    basis = jnp.zeros((depth, v.size), v.dtype).at[0].set(first)
    zeros = jnp.zeros(depth, v.dtype)
    start = (basis, zeros, zeros, jnp.zeros((), v.dtype))
    return jax.lax.fori_loop(0, depth, body, start)[:3]
