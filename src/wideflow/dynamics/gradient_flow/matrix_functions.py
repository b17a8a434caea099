r"""$f(M)v$ for several functions $f$ and one symmetric positive semidefinite $M$, dense or by
Lanczos; and the $\varphi_k$ of exponential integrators.

The functions are taken on the decaying side, $x \mapsto \varphi_k(-x)$, $x \ge 0$:
$$\varphi_k(-x) = \int_0^1 e^{-vx}\,\frac{(1-v)^{k-1}}{(k-1)!}\,\mathrm dv .$$
"""

import abc
import math
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

AT_ONCE = 20  # dimensions between two looks at what is missing
# below it the recursion of the phi functions loses digits; twenty terms of the series reach 1e-18
_SMALL = 1.0
# f(T) e_1 falls faster than geometrically once the space is large enough (hochbruck1997), so that
# the last part is far above what is missing; the defect of the step sees the rest
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
        # one triangle is read: the rounding between the two halves of a sum of products does no
        # harm
        values, vectors = jnp.linalg.eigh(matrix)
        return jnp.maximum(values, 0.0), vectors

    def __call__(self, operator):
        values, vectors = self.decompose(operator)
        return lambda v, functions: [vectors @ (f(values) * (v @ vectors)) for f in functions]


class Krylov(AbstractAction):
    r"""By Lanczos with full reorthogonalisation: $f(M)v \approx |v|\,Q f(T) e_1$.

    `operator` is $v \mapsto Mv$; memory `depth` vectors. The space grows until the last parts of
    all $f(T)e_1$ vanish, or to `depth`. A space that closes early (low rank) is cut there, where
    matfree's Lanczos would divide by zero. What the space misses shows in a step's defect, which is
    Saad's estimate $h\beta_k|e_k^\top\varphi_1(-hT)e_1|$ for a frozen Jacobian, so the step
    controller sees it.
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
    """A Krylov space of dimension `count`: its basis, the diagonal and the couplings of the
    tridiagonal matrix, the largest entry so far.
    """

    basis: Float[Array, "depth entry"]
    diagonal: Float[Array, " depth"]
    couplings: Float[Array, " depth"]
    top: Float[Array, ""]
    count: Int[Array, ""]


def _parts(space: Space, functions: Sequence[Scalars]) -> Float[Array, "function depth"]:
    r"""$f(T)e_1$."""
    # the last coupling leads out of the space; rows that are not filled yet are cut off and, as e_1
    # does not reach them, get no share
    links = space.couplings[:-1] * (jnp.arange(1, len(space.basis)) < space.count)
    inner = jnp.diag(space.diagonal) + jnp.diag(links, 1) + jnp.diag(links, -1)
    values, vectors = jnp.linalg.eigh(inner)
    values = jnp.maximum(values, 0.0)
    return jnp.stack([vectors @ (f(values) * vectors[0]) for f in functions])


def _grown(operator, space: Space) -> Space:
    """One dimension more, unless the depth is reached."""
    basis, k, tiny = space.basis, space.count, jnp.finfo(space.basis.dtype).eps

    def grown():
        # a closed space has a following vector of zeros: from there on all numbers are 0, and so
        # the last part, which ends the loop
        new = operator(basis[k])
        alpha = jnp.vdot(basis[k], new)
        # against the whole basis, zeros included: one product of fixed shape
        for _ in range(2):  # twice is enough
            new = new - (basis @ new) @ basis
        beta, top = jnp.linalg.norm(new), jnp.maximum(space.top, jnp.abs(alpha))
        beta = jnp.where(beta > 10 * tiny * top, beta, 0.0)
        following = jnp.where(beta > 0, new / jnp.where(beta > 0, beta, 1.0), 0.0)
        return Space(
            basis.at[k + 1].set(following, mode="drop"),
            space.diagonal.at[k].set(alpha),
            space.couplings.at[k].set(beta),
            top,
            k + 1,
        )

    return jax.lax.cond(k < len(basis), grown, lambda: space)


def phi1(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$\varphi_1(-x) = (1 - e^{-x})/x$, 1 at 0: the mean of $e^{-sx}$ over $s \in [0, 1]$."""
    safe = jnp.where(x == 0, 1.0, x)
    # expm1 keeps all digits where exp(-x) is near 1
    return jnp.where(x == 0, 1.0, -jnp.expm1(-safe) / safe)


def phi2(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$\varphi_2(-x) = (1 - \varphi_1(-x))/x = (e^{-x} - 1 + x)/x^2$, 1/2 at 0."""
    return phis(x, 2)[-1]


def phi3(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$\varphi_3(-x) = (\frac12 - \varphi_2(-x))/x$, 1/6 at 0."""
    return phis(x, 3)[-1]


def phis(x: Float[Array, "..."], most: int) -> list[Float[Array, "..."]]:
    r"""$\varphi_1(-x)$ to $\varphi_{\mathrm{most}}(-x)$ by
    $\varphi_{k+1}(-x) = (1/k! - \varphi_k(-x))/x$: upwards for large $x$, downwards from one series
    for small.
    """
    safe = jnp.where(x < _SMALL, 1.0, x)
    # upwards a step divides errors by x >= 1, and its cancellation costs a factor of 5 at most (at
    # x = 1, k = 3); downwards it multiplies them by x < 1
    upwards = [phi1(safe)]
    for k in range(1, most):
        upwards.append((1 / math.factorial(k) - upwards[-1]) / safe)
    # 1/k! - x/(k+1)! + x^2/(k+2)! - ..., by Horner's rule; numbers in place of divisions make a
    # program half as long
    series = jnp.full_like(x, 1 / math.factorial(most + 18))
    for j in range(most + 17, most - 1, -1):
        series = 1 / math.factorial(j) - x * series
    downwards = [series]
    for k in range(most - 1, 1, -1):
        downwards.append(1 / math.factorial(k) - x * downwards[-1])
    pairs = zip(downwards[::-1], upwards[1:])
    return [phi1(x), *(jnp.where(x < _SMALL, small, large) for small, large in pairs)]
