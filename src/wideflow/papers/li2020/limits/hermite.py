r"""The population loss of norm-coupled neurons on Gaussian inputs, exactly and order by order
(li2020, section 2).

Target $f^*(x) = \sum_k a_k|\langle w^*_k, x\rangle|$ with orthonormal $w^*_k$ (rows of
`directions`, the basis by default) and `coefficients` $a$; learner
$f_W(x) = \frac sm\sum_i r_i\,\sigma(\langle w_i, x\rangle)$, $r_i = \|w_i\|$, in three variants:

| `variant` | $\sigma$, $s$ | role |
|---|---|---|
| `"abs"` | absolute value, 1 | the simulations' learner; order 1 absent |
| `"relu2"` | ReLU, 2 | the network whose loss is the printed (2.1), $c_1 = 1$ |
| `"relu1"` | ReLU, 1 | the printed network (1.2); `relu2` at $W/\sqrt2$ |

Corrected: the printed (1.2) and (2.1) disagree by a factor two in the even orders; `relu1` keeps
the network and halves the learner's even tensors, `relu2` keeps the loss.

Expectations over inputs are closed forms (`_core.arc_cosine`), the loss is
$L = \mathbb E(f_W - f^*)^2$ (no factor one half), and every gradient here is the **mean-field
gradient** $g_i = m\,\partial L/\partial w_i$, of order one for every width. The learner is a
probability measure over neurons: uniform over the rows of `weights`, or with the given `masses`.

With $p_i = r_i^2$, $u_i = w_i/r_i$, $R = UU^\top$ and $S = UW^{*\top}$, in tensors of order $k$,
$L = \sum_k c_k\ell_k$ where
$\ell_k = \|\mathbb E_P\,p\,u^{\otimes k} - \sum_i a_i (w_i^*)^{\otimes k}\|_F^2$ needs only the
elementwise powers $R^{\circ k}$, $S^{\circ k}$.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from ...._core.arc_cosine import abs_hermite_squares, abs_pair, abs_pair_with_slope
from ...._core.arrays import real_array, real_values
from ...._core.errors import check_choice, check_count
from ...._core.memory import budget
from ...._core.polar import polar
from ...._core.precision import double
from ...._core.tiles import by_rows

__all__ = [
    "GradientWeights",
    "coefficients",
    "coincidence_tail",
    "field",
    "gradient_weights",
    "loss_tail",
    "order_field",
    "order_gradients",
    "order_losses",
    "population_gradient",
    "population_loss",
    "target_moments",
]

Numbers = ArrayLike | Sequence

VARIANTS = ("abs", "relu1", "relu2")
_FIRST = {"abs": 0.0, "relu": 0.25, "relu1": 0.25, "relu2": 1.0}  # c_1

# Of the learner: weight of K in E f_W^2, of the linear part, and factor of its even tensors.
# 2 relu(z) = |z| + z, so E f_W^2 = (s/2)^2 p^T (K(R) + R) p / m^2.
_LEARNER = {"abs": (1.0, 0.0, 1.0), "relu2": (1.0, 1.0, 1.0), "relu1": (0.25, 0.25, 0.5)}


@double
def coefficients(order: int, activation: str = "abs") -> Float[Array, " order"]:
    r"""Weights $c_0, \dots, c_{order}$ of the orders of the loss: squared Hermite coefficients.

    $|z| = \sum_k \hat c_k h_k(z)$ in orthonormal Hermite polynomials and $c_k = \hat c_k^2
    = 2[(k-3)!!]^2/(\pi k!)$ for even $k$ (with $(-1)!! = 1$, $(-3)!! = -1$), zero for odd $k$.
    Corrected: the paper prints the formula for every $k \ge 0$.

    Args:
        order: the highest order, inclusive.
        activation: `"abs"`; `"relu"`: the squared coefficients of $\mathrm{relu}(z) = (z + |z|)/2$
            itself, that is $c_1 = 1/4$ and a quarter of the even ones; `"relu2"`: those of
            $2\,\mathrm{relu}$, $c_1 = 1$; `"relu1"`: the weights in the loss of the learner (1.2),
            whose even tensors carry the factor one half, so that the even $c_k$ are those of
            `"abs"` and $c_1 = 1/4$.

    >>> [round(float(c), 6) for c in coefficients(6)]
    [0.63662, 0.0, 0.31831, 0.0, 0.026526, 0.0, 0.007958]
    """
    check_count("order", order, least=0)
    check_choice("activation", activation, _FIRST)
    c = abs_hermite_squares(order)
    if activation == "relu":
        c = c / 4
    if order >= 1:
        c[1] = _FIRST[activation]
    return jnp.asarray(c)


class GradientWeights(NamedTuple):
    r"""$b_{2j}$, $b'_{2j}$ of (2.5) and $B_{1,2j} = b_{2j} + b'_{2j}$, $B_{2,2j} = b'_{2j}$ of
    Appendix A.

    Attributes:
        b: $b_{2j}$.
        b_prime: $b'_{2j}$.
        B1: $B_{1,2j}$.
        B2: $B_{2,2j}$.
    """

    b: float
    b_prime: float
    B1: float
    B2: float


def gradient_weights(order: int) -> GradientWeights:
    r"""The constants of the order-$2j$ gradient $\nabla_{2j,v} = b_{2j}T + b'_{2j}\Pi_{v^\perp}T$
    (see `order_field`), `order` $= 2j$.

    $b_{2j} = 4c_{2j}$, $b'_{2j} = (4j-4)c_{2j}$, so $B_{1,2j} = 4jc_{2j}$ and
    $B_{2,2j} = (4j-4)c_{2j}$; $b_0 = 4c_0 = 8/\pi$. Corrected: the printed $b_{2j} = 4jc_{2j}$
    counts the radial part twice. For order 0 the tensor is a number and $b' = 0$.

    Args:
        order: $2j$, even.

    >>> [round(x, 7) for x in gradient_weights(4)]  # 4 c_4 = 1/(3 pi) twice, their sum 2/(3 pi)
    [0.1061033, 0.1061033, 0.2122066, 0.1061033]
    """
    check_count("order", order, least=0)
    if order % 2:
        raise ValueError(
            f"`order` must be even, got {order}: the only odd order, 1, has b_1 = 2 c_1."
        )
    c = float(abs_hermite_squares(order)[order])
    b, b_prime = 4 * c, max(2 * order - 4, 0) * c
    return GradientWeights(b, b_prime, b + b_prime, b_prime)


def _check(weights, coefficients, directions, masses):
    """Arrays, with the target's basis and the uniform masses filled in; shapes checked."""
    w, a = real_array("weights", weights), real_array("coefficients", coefficients)
    if w.ndim != 2:
        raise ValueError(f"`weights` must have shape (width, feature), got {w.shape}.")
    if a.ndim != 1:
        raise ValueError(
            f"`coefficients` must be a vector, one entry per direction, got shape {a.shape}."
        )
    w = w.astype(jnp.float64)
    a = a.astype(jnp.float64)
    if directions is None:
        if a.shape[0] > w.shape[1]:
            raise ValueError(
                f"`coefficients` must have at most {w.shape[1]} entries (features of `weights`), "
                f"got {a.shape[0]}."
            )
        directions = jnp.eye(a.shape[0], w.shape[1])
    v = real_array("directions", directions).astype(jnp.float64)
    if v.shape != (a.shape[0], w.shape[1]):
        raise ValueError(
            f"`directions` must have shape {(a.shape[0], w.shape[1])} (one row per coefficient), "
            f"got {v.shape}."
        )
    if not isinstance(v, Tracer) and not np.allclose(v @ v.T, np.eye(v.shape[0]), atol=1e-8):
        raise ValueError(
            "`directions` must be orthonormal rows; orthonormalise them first (e.g. with a QR)."
        )
    q = jnp.full(w.shape[0], 1.0 / w.shape[0])
    if masses is not None:
        q = real_array("masses", masses).astype(jnp.float64)
    if q.shape != (w.shape[0],):
        raise ValueError(
            f"`masses` must have shape {(w.shape[0],)}, one per neuron, got {q.shape}."
        )
    return w, a, v, q


def _bytes(w, v):
    """What one particle holds while its pairs are worked on: about eight rows of cosines."""
    return 64 * (w.shape[0] + v.shape[0] + w.shape[1])


@double
def target_moments(coefficients: Numbers) -> tuple[Array, Array, Array]:
    r"""$\mathbb Ef^*$, $\mathbb Ef^{*2}$ and $\mathrm{Var}f^*$: $\sqrt{2/\pi}\sum a$,
    $(1-\frac2\pi)\sum a^2 + \frac2\pi(\sum a)^2$ and $(1-\frac2\pi)\sum a^2$.

    Args:
        coefficients: $a_k$.

    >>> [round(float(v), 6) for v in target_moments([0.5, 0.5])]
    [0.797885, 0.81831, 0.18169]
    """
    a = real_array("coefficients", coefficients).astype(jnp.float64)
    variance = (1 - 2 / jnp.pi) * jnp.sum(a**2)
    mean = jnp.sqrt(2 / jnp.pi) * jnp.sum(a)
    return mean, variance + mean**2, variance


@double
def population_loss(
    weights: Numbers,
    coefficients: Numbers,
    directions: Numbers | None = None,
    variant: str = "abs",
    masses: Numbers | None = None,
    memory: int | str | None = None,
) -> Float[Array, ""]:
    r"""$L(W) = \mathbb E(f_W - f^*)^2$ in closed form.

    $$L_{abs} = \mathbb E_{ij}p_ip_jK(R_{ij}) - 2\,\mathbb E_ip_i\sum_ka_kK(S_{ik}) + \mathbb
      Ef^{*2},$$
    and for ReLU with factor $s$: $K(R) \to s^2k(R)$, $K(S) \to \frac s2K(S)$; so
    $L_{relu2}(W) = L_{abs}(W) + \|\mathbb E_P\,r w\|^2$. It is a difference of numbers of order
    one: values below about 1e-15, even slightly negative ones, are zero.

    Args:
        weights: $w_i$, shape (width, feature).
        coefficients: $a_k$, one a direction.
        directions: $w^*_k$, orthonormal rows; the basis if None.
        variant: "abs", "relu2" or "relu1".
        masses: of the neurons; $1/m$ each if None.
        memory: as in `field`.

    Two aligned neurons are the target itself:

    >>> import numpy as np
    >>> abs(float(population_loss(np.eye(2), [0.5, 0.5]))) < 1e-15
    True
    """
    check_choice("variant", variant, VARIANTS)
    return _loss(*_check(weights, coefficients, directions, masses), variant, budget(memory))


@functools.partial(jax.jit, static_argnames=("variant", "memory"))
def _loss(w, a, v, q, variant, memory):
    quadratic, linear, even = _LEARNER[variant]
    r, u = polar(w)
    p = q * r**2

    def pairs(unit):
        return quadratic * abs_pair(unit @ u.T) @ p - 2 * even * abs_pair(unit @ v.T) @ a

    mixed = by_rows(pairs, u, bytes_per_row=_bytes(w, v), memory=memory)
    return p @ mixed + linear * jnp.sum((p @ u) ** 2) + target_moments(a)[1]


@double
def field(
    particles: Numbers,
    weights: Numbers,
    coefficients: Numbers,
    directions: Numbers | None = None,
    variant: str = "abs",
    masses: Numbers | None = None,
    memory: int | str | None = None,
) -> Float[Array, "particle feature"]:
    r"""$\nabla_vL_\infty(P)$ at test particles $v$ in the field of the neurons `weights`
    ((2.4)-(2.6)).

    $$g(v) = 4v\Big[\mathbb E_jp_jK(R_{vj}) - \sum_ka_kK(S_{vk})\Big] + 2\|v\|\Big[\mathbb
      E_jp_jK'(R_{vj})
    (u_j - R_{vj}\bar v) - \sum_ka_kK'(S_{vk})(w^*_k - S_{vk}\bar v)\Big]$$
    for `abs`, with the replacements of `population_loss` for ReLU. Particles do not act on each
    other.

    Args:
        particles: $v$, shape (particle, feature).
        weights: $w_j$, shape (width, feature).
        coefficients: $a_k$, one a direction.
        directions: $w^*_k$, orthonormal rows; the basis if None.
        variant: "abs", "relu2" or "relu1".
        masses: of the neurons; $1/m$ each if None.
        memory: the budget for pair matrices, such as "512M"; larger ones are worked off by rows.
    """
    check_choice("variant", variant, VARIANTS)
    measure = _check(weights, coefficients, directions, masses)
    return _field(_particles(particles, measure[0]), *measure, variant, budget(memory))


@functools.partial(jax.jit, static_argnames=("variant", "memory"))
def _field(x, w, a, v, q, variant, memory):
    quadratic, linear, even = _LEARNER[variant]
    r, u = polar(w)
    p = q * r**2

    def rows(x):
        length, unit = polar(x)
        cos_w, cos_t = unit @ u.T, unit @ v.T
        k_w, slope_w = abs_pair_with_slope(cos_w)
        k_t, slope_t = abs_pair_with_slope(cos_t)
        k_w, slope_w = quadratic * k_w + linear * cos_w, quadratic * slope_w + linear
        radial = k_w @ p - even * k_t @ a
        pull_w, pull_t = slope_w * p, even * slope_t * a
        tangent = pull_w @ u - pull_t @ v
        inward = jnp.sum(pull_w * cos_w, axis=1) - jnp.sum(pull_t * cos_t, axis=1)
        return 4 * radial[:, None] * x + 2 * length[:, None] * (tangent - inward[:, None] * unit)

    return by_rows(rows, x, bytes_per_row=_bytes(w, v), memory=memory)


@double
def population_gradient(
    weights: Numbers,
    coefficients: Numbers,
    directions: Numbers | None = None,
    variant: str = "abs",
    masses: Numbers | None = None,
    memory: int | str | None = None,
) -> Float[Array, "width feature"]:
    r"""Mean-field gradient $g_i = m\,\partial L/\partial w_i$ of `population_loss`: its `field` at
    its own neurons.

    Corrected: Algorithm 1 is printed with $\partial L/\partial w_i$, the analysis with $m$ times
    that; here the factor $m$ is in. The literal partial derivative is
    `population_gradient(...) / width`.

    Args:
        weights: $w_i$, shape (width, feature).
        coefficients: $a_k$, one a direction.
        directions: $w^*_k$, orthonormal rows; the basis if None.
        variant: "abs", "relu2" or "relu1".
        masses: of the neurons; $1/m$ each if None.
        memory: as in `field`.

    >>> import numpy as np
    >>> float(np.abs(population_gradient(np.eye(2), [0.5, 0.5])).max()) < 1e-15
    True
    """
    return field(weights, weights, coefficients, directions, variant, masses, memory)


def _particles(particles, w):
    x = real_array("particles", particles).astype(jnp.float64)
    if x.ndim != 2 or x.shape[1] != w.shape[1]:
        raise ValueError(f"`particles` must have shape (particle, {w.shape[1]}), got {x.shape}.")
    return x


def checked_orders(orders, variant):
    """Orders as a tuple of whole numbers."""
    check_choice("variant", variant, VARIANTS)
    ks = tuple(np.atleast_1d(np.asarray(real_values("orders", orders))).tolist())
    for k in ks:
        check_count("orders", k, least=0)
    return ks


@double
def order_losses(
    weights: Numbers,
    coefficients: Numbers,
    orders: int | Sequence[int] | ArrayLike = (0, 2, 4, 6, 8),
    directions: Numbers | None = None,
    variant: str = "abs",
    masses: Numbers | None = None,
    memory: int | str | None = None,
) -> Float[Array, " order"]:
    r"""Raw losses $\ell_k$ of the given orders, without forming a tensor: $O(m^2)$ each.

    $\ell_0 = (\mathbb Ep - \sum a)^2$;
    $\ell_k = p^\top R^{\circ k}p/m^2 - \frac2mp^\top S^{\circ k}a + \sum a^2$ for even $k \ge 2$,
    at $k = 2$ $\|\mathbb E ww^\top - A\|_F^2$; $\ell_1 = \|\mathbb E rw\|^2$, which enters the loss
    of the ReLU variants alone. Odd orders above one do not occur in any variant and are zero. For
    `relu1` the learner's even tensors are halved. The weights $c_k$ are
    `coefficients(order, variant)`; $L = \sum_kc_k\ell_k$.

    Args:
        weights: $w_i$, shape (width, feature).
        coefficients: $a_k$, one a direction.
        orders: the $k$.
        directions: $w^*_k$, orthonormal rows; the basis if None.
        variant: "abs", "relu2" or "relu1".
        masses: of the neurons; $1/m$ each if None.
        memory: as in `field`.

    >>> import numpy as np
    >>> [round(float(x), 6) for x in order_losses(np.eye(2), [0.25, 0.25], orders=(0, 2, 4))]
    [0.25, 0.125, 0.125]
    """
    ks = jnp.asarray(checked_orders(orders, variant), dtype=jnp.float64)
    return _order_losses(
        ks, *_check(weights, coefficients, directions, masses), variant, budget(memory)
    )


def _power(cosines, order):
    """Whole powers: an integer exponent has derivatives of every order at cosine 0, where those of
    a real one are lost or infinite.
    """
    return cosines ** order.astype(jnp.int32)


@functools.partial(jax.jit, static_argnames=("variant", "memory"))
def _order_losses(order, w, a, v, q, variant, memory):
    even = _LEARNER[variant][2]
    r, u = polar(w)
    p = even * q * r**2

    def rows(unit):
        cos_w, cos_t = unit @ u.T, unit @ v.T
        powers = jnp.maximum(order, 2.0)  # orders 0 and 1 have their own forms below
        loss = lambda k: _power(cos_w, k) @ p - 2 * _power(cos_t, k) @ a
        return jax.lax.map(loss, powers).T

    even_values = p @ by_rows(rows, u, bytes_per_row=_bytes(w, v), memory=memory) + jnp.sum(a**2)
    values = jnp.where(order % 2 == 0, even_values, 0.0)
    values = jnp.where(order == 1, jnp.sum(((q * r) @ w) ** 2), values)
    return jnp.where(order == 0, (jnp.sum(p) - jnp.sum(a)) ** 2, values)


@double
def order_field(
    particles: Numbers,
    weights: Numbers,
    coefficients: Numbers,
    orders: int | Sequence[int] | ArrayLike = (0, 2, 4, 6, 8),
    directions: Numbers | None = None,
    variant: str = "abs",
    masses: Numbers | None = None,
    memory: int | str | None = None,
) -> Float[Array, "order particle feature"]:
    r"""$\nabla_{k,v}$: the mean-field gradient of $c_k\ell_k$ at test particles $v$ ((2.4), (2.5)).

    Order 0: $b_0(\mathbb Ep - \sum a)v$, $b_0 = 4c_0 = 8/\pi$. Order 1 (ReLU):
    $2c_1(\|v\|g + \langle g,v\rangle\bar v)$ with $g = \mathbb Erw$. Even $k$: with
    $F = \mathbb Ep\,R^{\circ k} - S^{\circ k}a$ and
    $D = k[\mathbb Ep\,R^{\circ(k-1)}u - (S^{\circ(k-1)}\circ a)W^*]$,
    $$\nabla_{k,v} = 2c_k\|v\|\,(D - (k-2)F\bar v).$$
    Equivalently $b_{2j}T + b'_{2j}\Pi_{v^\perp}T$ with $T$ the contraction of (2.5),
    $b_{2j} = 4c_{2j}$ and $b'_{2j} = (4j-4)c_{2j}$. Corrected: the printed $b_{2j} = 4jc_{2j}$
    counts the radial part twice.

    Args:
        particles: $v$, shape (particle, feature).
        weights: $w_j$, shape (width, feature).
        coefficients: $a_k$, one a direction.
        orders: the $k$.
        directions: $w^*_k$, orthonormal rows, together $W^*$; the basis if None.
        variant: "abs", "relu2" or "relu1".
        masses: of the neurons; $1/m$ each if None.
        memory: as in `field`.
    """
    ks = np.asarray(checked_orders(orders, variant))
    c = abs_hermite_squares(int(ks.max(initial=0)))[ks]
    measure = _check(weights, coefficients, directions, masses)
    x = _particles(particles, measure[0])
    return _order_field(
        x, jnp.asarray(ks, dtype=jnp.float64), jnp.asarray(c), *measure, variant, budget(memory)
    )


@functools.partial(jax.jit, static_argnames=("variant", "memory"))
def _order_field(x, order, c, w, a, v, q, variant, memory):
    even = _LEARNER[variant][2]
    r, u = polar(w)
    p = even * q * r**2
    mean = (q * r) @ w

    def rows(x):
        length, unit = polar(x)
        cos_w, cos_t = unit @ u.T, unit @ v.T
        zeroth = even * 4 * (jnp.sum(p) - jnp.sum(a)) * x
        first = 2 * _FIRST[variant] * (length[:, None] * mean + (unit @ mean)[:, None] * x)

        def gradient(of):
            k, weight = of
            # odd powers k - 1 for even k; `even` once more, for the derivative of a halved tensor
            # is halved. Orders 0 and 1 have their own forms: there another power stands in.
            power = jnp.maximum(k - 1, 1.0)
            pow_w, pow_t = _power(cos_w, power), _power(cos_t, power)
            f = (pow_w * cos_w) @ p - (pow_t * cos_t) @ a
            d = k * ((pow_w * p) @ u - (pow_t * a) @ v)
            higher = even * 2 * length[:, None] * (d - (k - 2) * f[:, None] * unit)
            return jnp.where(k == 1, first, weight * jnp.where(k == 0, zeroth, higher))

        return jnp.moveaxis(jax.lax.map(gradient, (order, c)), 0, 1)

    return jnp.moveaxis(by_rows(rows, x, bytes_per_row=_bytes(w, v), memory=memory), 1, 0)


@double
def order_gradients(
    weights: Numbers,
    coefficients: Numbers,
    orders: int | Sequence[int] | ArrayLike = (0, 2, 4, 6, 8),
    directions: Numbers | None = None,
    variant: str = "abs",
    masses: Numbers | None = None,
    memory: int | str | None = None,
) -> Float[Array, "order width feature"]:
    r"""Mean-field gradients $G_k = m\,\partial(c_k\ell_k)/\partial W$ of the given orders; see
    `order_field`.

    Args:
        weights: $W$, shape (width, feature).
        coefficients: $a_k$, one a direction.
        orders: the $k$.
        directions: $w^*_k$, orthonormal rows; the basis if None.
        variant: "abs", "relu2" or "relu1".
        masses: of the neurons; $1/m$ each if None.
        memory: as in `field`.
    """
    return order_field(weights, weights, coefficients, orders, directions, variant, masses, memory)


@double
def loss_tail(
    weights: Numbers,
    coefficients: Numbers,
    through: int,
    directions: Numbers | None = None,
    variant: str = "abs",
    masses: Numbers | None = None,
) -> Float[Array, ""]:
    r"""$\sum_{k>J}c_k\ell_k = L - \sum_{k\le J}c_k\ell_k$, $J$ = `through`: what the orders beyond
    carry, exactly.

    Args:
        weights: $w_i$, shape (width, feature).
        coefficients: $a_k$, one a direction.
        through: $J$.
        directions: $w^*_k$, orthonormal rows; the basis if None.
        variant: "abs", "relu2" or "relu1".
        masses: of the neurons; $1/m$ each if None.
    """
    check_count("through", through, least=0)
    check_choice("variant", variant, VARIANTS)
    c = abs_hermite_squares(through)
    c[1:2] = _FIRST[variant]
    parts = order_losses(weights, coefficients, range(through + 1), directions, variant, masses)
    return (
        population_loss(weights, coefficients, directions, variant, masses) - jnp.asarray(c) @ parts
    )


@double
def coincidence_tail(
    weights: Numbers,
    coefficients: Numbers,
    through: int,
    directions: Numbers | None = None,
    variant: str = "abs",
    masses: Numbers | None = None,
) -> Float[Array, ""]:
    r"""The slow part of `loss_tail`, from coincident directions ($R_{ii} = 1$ and the target's own
    terms): $[\sum_iq_i^2p_i^2 + \sum a^2](1 - \sum_{k\le J}c_k)$.

    The series decays only like $J^{-3/2}$; with this part added to $\sum_{k\le J}c_k\ell_k$ the
    rest decays geometrically, as long as no two neurons (nor a neuron and a target direction) are
    parallel.

    Args:
        weights: $w_i$, shape (width, feature).
        coefficients: $a_k$, one a direction.
        through: $J$.
        directions: $w^*_k$, orthonormal rows; the basis if None.
        variant: "abs", "relu2" or "relu1".
        masses: $q_i$ of the neurons; $1/m$ each if None.
    """
    check_count("through", through, least=0)
    w, a, _, q = _check(weights, coefficients, directions, masses)
    check_choice("variant", variant, VARIANTS)
    p = _LEARNER[variant][2] * q * jnp.sum(w * w, axis=1)
    return (jnp.sum(p**2) + jnp.sum(a**2)) * (1.0 - abs_hermite_squares(through).sum())
