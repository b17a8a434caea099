r"""Expectations over a Gaussian pair: $E[\sigma(u)\sigma(v)]$ and $E[\sigma'(u)\sigma'(v)]$.

$(u, v)$ is centred Gaussian with covariance $((k_{11}, k_{12}), (k_{12}, k_{22}))$. Closed forms
(`closed_duals.py`) where one exists; otherwise Mehler's series (`_core.mehler`), and where that is
slow, near $|\rho| = 1$, the trapezoid rule in whitened coordinates on $[-9, 9]^2$, whose error
behaves like $\exp(-\pi^2/(s h))$ for an analytic integrand, $s$ the largest standard deviation, $h$
the spacing: $h = \min(1/4, 0.35/s)$ gives 1e-12. An integrand with kinks needs its own closed form.
"""

import functools
import math
import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .activations import Activation
from .arc_cosine import arcsin
from .closed_duals import CLOSED
from .host import on_device
from .mehler import coefficients, series
from .memory import tile_rows
from .pointwise import pointwise, power_of_two

REACH = 9.0  # standard deviations; exp(-81/2) = 3e-18


def angle(k11, k12, k22):
    r"""$s = \sqrt{k_{11}k_{22}}$ and the angle of the pair, exact at 0 and $\pi$ to rounding.

    $\sin$ comes from $(s - k_{12})(s + k_{12})$, so nothing is lost as arccos would near $\pm1$.
    The angle is the arc sine of the smaller of $\sin$ and $\cos$, vectorised where `jnp.arctan2`
    goes number by number; a pair with a zero has angle 0.
    """
    s = jnp.sqrt(k11 * k22)
    sines = jnp.sqrt(jnp.maximum((s - k12) * (s + k12), 0.0))
    # of the sine and the cosine the smaller, at most 1/sqrt(2) of s: there the arc sine is as
    # accurate as its argument
    steep = sines > jnp.abs(k12)
    turn = arcsin(jnp.where(steep, k12, sines) / jnp.where(s > 0, s, 1.0))
    flat = jnp.where(k12 < 0, jnp.pi - turn, turn)
    return s, sines, jnp.where(steep, 0.5 * jnp.pi - turn, flat)


def pair(act: Activation, k11, k12, k22):
    r"""$E[\sigma(u)\sigma(v)]$, elementwise over broadcast covariances."""
    return _pair(act, 0, k11, k12, k22)


def pair_derivative(act: Activation, k11, k12, k22):
    r"""$E[\sigma'(u)\sigma'(v)]$, elementwise over broadcast covariances."""
    return _pair(act, 1, k11, k12, k22)


def _pair(act, order, k11, k12, k22):
    k11, k12, k22 = (jnp.asarray(k, float) for k in (k11, k12, k22))
    if act.name in CLOSED:
        return _closed(act, order, k11, k12, k22)
    if act.kinks:
        raise ValueError(
            f"no closed form is known for the kinked activation {act.name!r}, and quadrature would "
            "not converge; use 'relu', 'leaky_relu' or 'abs', or a smooth activation."
        )
    function = act.value if order == 0 else act.slope
    return expect_pair(function, function, k11, k12, k22)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _closed(act, order, k11, k12, k22):
    """The closed form as one program; outside `jit` each of its steps would be one for every
    shape.
    """
    return CLOSED[act.name](act)(*jnp.broadcast_arrays(k11, k12, k22))[order]


def pair_matrix(act: Activation, gram, other=None, cross=None, *, order: int = 0):
    r"""$E[\sigma(u_i)\sigma(u_k)]$ (or of $\sigma'$ with `order=1`) for a covariance matrix.

    Args:
        gram: covariance of the left points, or its diagonal where `cross` is given.
        other, cross: diagonal of the right points and the cross covariance (left, right).
    """
    if cross is None:
        diagonal = jnp.diagonal(gram)
        return _pair(act, order, diagonal[:, None], gram, diagonal[None, :])
    assert other is not None  # given with `cross`
    return _pair(act, order, gram[:, None], cross, other[None, :])


def nodes(std: float) -> tuple[np.ndarray, np.ndarray]:
    r"""Trapezoid nodes and weights for $E[g(t)]$, $t \sim N(0,1)$, good for $g(s t)$, $s$ =
    `std`.
    """
    # exp(-pi^2/0.35) = 6e-13 for poles like tanh's; the weight's own transform, exp(-2 pi^2/h^2),
    # is nothing at h = 1/4
    spacing = min(0.25, 0.35 / max(std, 1e-300))
    count = math.ceil(REACH / spacing)
    # symmetric about 0 and normalised by the sum: odd moments and the mean of a constant are exact
    t = np.arange(-count, count + 1) * (REACH / count)
    weights = np.exp(-(t**2) / 2)
    return t, weights / weights.sum()


def expect(function: Callable, std, *, power: int = 1, finer: float = 1.0):
    r"""$E[g(s t)^p]$ for $t \sim N(0, 1)$ and each $s$ in `std`, $p$ = `power`; $g$ analytic.

    The spacing of the nodes is that of deviations `finer` times as large.
    """
    std = np.asarray(std, float)
    t, weights = nodes(finer * (float(np.max(np.abs(std))) if std.size else 1.0))
    values = pointwise(function, std[..., None] * t)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite shows in the answer
        return on_device(np.sum(values**power * weights, axis=-1))


FEW = 32  # pairs below which the grids cost less than the coefficients of the series


def expect_pair(left: Callable, right: Callable, k11, k12, k22, *, memory=None):
    r"""$E[g(u) h(v)]$, elementwise over broadcastable covariances; $g$, $h$ analytic.

    By Mehler's series, good to 1e-14 of $\sqrt{E g^2\,E h^2}$; pairs that it does not reach by the
    one-dimensional rule where $u = v$, else by the two-dimensional one. Few pairs, and traced ones,
    go by the two-dimensional rule at once.
    """
    if any(isinstance(k, Tracer) for k in (k11, k12, k22)):
        return _expect_on_grid(left, right, k11, k12, k22, memory=memory)
    k11, k12, k22 = (np.asarray(k, float) for k in (k11, k12, k22))
    shape = np.broadcast_shapes(k11.shape, k12.shape, k22.shape)
    if math.prod(shape) <= FEW:
        return _expect_on_grid(left, right, k11, k12, k22, memory=memory)
    largest = math.sqrt(max(k11.max(), k22.max()))
    # a value of the function on the grid costs about five of the multiplications of the series
    reached = series(left, right, k11, k12, k22, pair_cost=5.0 * nodes(1.5 * largest)[0].size ** 2)
    if reached is None:
        warnings.warn(
            "the Gaussian integrals of this function do not converge, as if it had a kink; the "
            "two-dimensional rule is used and may be good to "
            "a few digits only. Use an activation with a closed form.",
            stacklevel=2,
        )
        return _expect_on_grid(left, right, k11, k12, k22, memory=memory)
    # near |rho| = 1 the series needs too many terms, above all where u = v: on Gram diagonals
    missing = np.flatnonzero(~np.broadcast_to(reached.reached, shape))
    values = np.array(np.broadcast_to(np.asarray(reached.values), shape)).ravel()
    if not missing.size:
        return on_device(values.reshape(shape))
    a, b, c = (np.broadcast_to(k, shape).ravel()[missing] for k in (k11, k12, k22))
    same, fresh = (a == b) & (b == c), np.empty(missing.size)
    # where u = v, E[g(u) h(u)] is the first coefficient of the product, under the same control
    product = coefficients(lambda z: left(z) * right(z), np.sqrt(a[same])) if same.any() else None
    if product is None:
        same[:] = False
    else:
        fresh[same] = product.values[:, 0]
    others = (k[~same] for k in (a, b, c))
    fresh[~same] = np.asarray(_expect_on_grid(left, right, *others, memory=memory))
    values[missing] = fresh
    return on_device(values.reshape(shape))


def _expect_on_grid(left: Callable, right: Callable, k11, k12, k22, *, memory=None):
    r"""By the two-dimensional trapezoid rule, whitened: $u = \sqrt{k_{11}}\, t_1$,
    $v = (k_{12}/\sqrt{k_{11}})\, t_1 + \sqrt{k_{22} - k_{12}^2/k_{11}}\; t_2$; singular covariances
    are no exception.
    """
    covariances = (k11, k12, k22)
    xp = jnp if any(isinstance(k, Tracer) for k in covariances) else np
    k11, k12, k22 = xp.broadcast_arrays(*(xp.asarray(k, float) for k in covariances))
    shape = k11.shape
    if k11.size == 0:
        return jnp.zeros(shape)
    # near |rho| = 1 the poles of both factors meet on the grid, which then asks for a finer spacing
    # (1e-10 becomes 1e-13 for tanh')
    t, weights = nodes(1.5 * math.sqrt(max(float(k11.max()), float(k22.max()))))
    if xp is np and k11.size <= FEW:
        return _few_on_grid(left, right, k11, k12, k22, t, weights)
    # three arrays of (node, node) doubles a pair: v, its function and a product with the weights
    rows = tile_rows(k11.size, 3 * 8 * t.size**2, memory if memory is not None else 256 << 20)
    tile, flat = _grid_rule(left, right), [k.ravel() for k in (k11, k12, k22)]
    parts = [tile(*(k[i : i + rows] for k in flat), t, weights) for i in range(0, k11.size, rows)]
    return (parts[0] if len(parts) == 1 else jnp.concatenate(parts)).reshape(shape)


def _few_on_grid(left: Callable, right: Callable, k11, k12, k22, t, weights):
    """The same for a few pairs: filled up to a power of two, with nodes of weight 0 up to a
    multiple of `FEW`.

    Pairs and nodes change their number from call to call; few programs serve all of them.
    """
    # padding repeats the last node with weight 0 and the last pair, whose value is cut off: no
    # number changes
    size, extra = k11.size, -t.size % FEW
    fill = power_of_two(size) - size
    t, weights = np.pad(t, (0, extra), mode="edge"), np.pad(weights, (0, extra))
    pairs = (np.pad(k.ravel(), (0, fill), mode="edge") for k in (k11, k12, k22))
    values = np.asarray(_grid_rule(left, right)(*pairs, t, weights))
    return on_device(values[:size].reshape(k11.shape))


@functools.lru_cache(maxsize=64)
def _grid_rule(left: Callable, right: Callable):
    """The two-dimensional rule for a pair of functions, compiled once for each number of pairs and
    nodes.
    """

    @jax.jit
    def tile(k11, k12, k22, t, weights):
        s1 = jnp.sqrt(k11)
        slope = jnp.where(s1 > 0, k12 / jnp.where(s1 > 0, s1, 1.0), 0.0)
        # the variance of v given u: rounding can make it negative where the pair is one variable
        rest = jnp.sqrt(jnp.maximum(k22 - slope**2, 0.0))
        u = left(s1[:, None] * t)  # (pair, node)
        v = right(slope[:, None, None] * t[:, None] + rest[:, None, None] * t)  # (pair, node, node)
        return jnp.einsum("pa,pab,a,b->p", u, v, weights, weights)

    return tile
