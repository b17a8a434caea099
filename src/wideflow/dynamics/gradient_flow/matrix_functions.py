r"""$f(M)v$ for several functions $f$ and one symmetric positive semidefinite $M$: dense, or by Lanczos."""

import abc
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

AT_ONCE = 20  # dimensions between two looks at what is missing
VANISHED = 1e-9  # the part of the last dimension, relative to the vector

Vector = Float[Array, " entry"]
Scalars = Callable[[Float[Array, " eigenvalue"]], Float[Array, " eigenvalue"]]


class AbstractAction(eqx.Module):
    """How functions of the Gram matrix are applied."""

    dense: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def __call__(self, operator) -> Callable[[Vector, Sequence[Scalars]], list[Vector]]:
        r"""The map from $v$ and functions $f$ to the vectors $f(M)v$."""


class Dense(AbstractAction):
    r"""By the eigen decomposition of the matrix; exact to rounding, $O(N^3)$.

    $M$ may be an extrapolated combination of Gram matrices: eigenvalues below 0 count as 0.
    """

    dense: bool = eqx.field(static=True, default=True)

    def decompose(self, matrix: Float[Array, "entry entry"]):
        """Eigenvalues and eigenvectors."""
        values, vectors = jnp.linalg.eigh(matrix)
        return jnp.maximum(values, 0.0), vectors

    def __call__(self, operator):
        values, vectors = self.decompose(operator)
        return lambda v, functions: [vectors @ (f(values) * (v @ vectors)) for f in functions]


class Krylov(AbstractAction):
    r"""By Lanczos with full reorthogonalisation: $f(M)v \approx |v|\,Q f(T) e_1$.

    `operator` is $v \mapsto Mv$; memory `depth` vectors. The space grows until the last parts of all $f(T)e_1$ vanish, or to `depth`. A space
    that closes early (low rank) is cut there, where matfree's Lanczos would divide by zero. What the space misses
    shows in a step's defect, which is Saad's estimate $h\beta_k|e_k^\top\varphi_1(-hT)e_1|$ for a frozen Jacobian, so the step controller sees it.
    """

    depth: int = eqx.field(static=True)
    dense: bool = eqx.field(static=True, default=False)

    def __call__(self, operator):
        return lambda v, functions: self._one(operator, v, functions)

    def _one(self, operator, v: Vector, functions: Sequence[Scalars]) -> list[Vector]:
        def going(carry):
            space, parts = carry
            last = jnp.abs(parts[:, space.count - 1])
            return (space.count < len(space.basis)) & jnp.any(last > VANISHED)

        def grow(carry):
            more = lambda _, space: _grown(operator, space)
            space = jax.lax.fori_loop(0, AT_ONCE, more, carry[0])
            return space, _parts(space, functions)

        depth, length = min(self.depth, v.size), jnp.linalg.norm(v)
        first = jnp.where(length > 0, v / jnp.where(length > 0, length, 1.0), 0.0)
        none, zero = jnp.zeros(depth, v.dtype), jnp.zeros((), v.dtype)
        basis = jnp.zeros((depth, v.size), v.dtype).at[0].set(first)
        start = grow((Space(basis, none, none, zero, jnp.zeros((), int)), None))
        space, parts = jax.lax.while_loop(going, grow, start)
        return [length * (part @ space.basis) for part in parts]


class Space(eqx.Module):
    """A Krylov space of dimension `count`: its basis, the diagonal and the couplings of the tridiagonal matrix, the largest entry so far."""

    basis: Float[Array, "depth entry"]
    diagonal: Float[Array, " depth"]
    couplings: Float[Array, " depth"]
    top: Float[Array, ""]
    count: Int[Array, ""]


def _parts(space: Space, functions: Sequence[Scalars]) -> Float[Array, "function depth"]:
    r"""$f(T)e_1$."""
    links = space.couplings[:-1] * (jnp.arange(1, len(space.basis)) < space.count)
    inner = jnp.diag(space.diagonal) + jnp.diag(links, 1) + jnp.diag(links, -1)
    values, vectors = jnp.linalg.eigh(inner)
    values = jnp.maximum(values, 0.0)
    return jnp.stack([vectors @ (f(values) * vectors[0]) for f in functions])


def _grown(operator, space: Space) -> Space:
    """One dimension more, unless the depth is reached."""
    basis, k, tiny = space.basis, space.count, jnp.finfo(space.basis.dtype).eps

    def grown():
        new = operator(basis[k])
        alpha = jnp.vdot(basis[k], new)
        for _ in range(2):  # twice is enough
            new = new - (basis @ new) @ basis
        beta, top = jnp.linalg.norm(new), jnp.maximum(space.top, jnp.abs(alpha))
        beta = jnp.where(beta > 10 * tiny * top, beta, 0.0)
        following = jnp.where(beta > 0, new / jnp.where(beta > 0, beta, 1.0), 0.0)
        return Space(
            basis.at[k + 1].set(following, mode="drop"), space.diagonal.at[k].set(alpha),
            space.couplings.at[k].set(beta), top, k + 1,
        )  # fmt: skip

    return jax.lax.cond(k < len(basis), grown, lambda: space)
