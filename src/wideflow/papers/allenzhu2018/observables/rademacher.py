r"""Empirical Rademacher complexity of the learners of allenzhu2018 (Lemmas 5.9 and G.5): the sup
computed, bounds beside it.

For signs $\xi \in \{\pm1\}^N$ and balls $\lVert V'\rVert_F \le \tau_v$,
$\lVert W'\rVert_{2,4} \le \tau_w$ around the initial weights.
"""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...._core.arrays import real_array
from ...._core.errors import (
    as_key,
    check_between,
    check_count,
    check_kind,
    check_nonnegative,
    check_positive,
)
from ...._core.memory import check_fits
from ...._core.precision import AbstractResult, double
from ...._core.randomness import named_key
from ...._core.types import Key
from ..models.biased_three_layer import BiasedThreeLayer
from ..models.biased_two_layer import BiasedTwoLayer
from .pseudo import second_signs, signed_move, signs
from .row_norms import row_norm


@double
def rademacher_signs(
    key: Key, samples: int, draws: int | None = None
) -> Float[Array, "draw sample"]:
    r"""All $2^N$ sign vectors where `draws` is None (at most 12 samples), else that many random
    ones.

    Args:
        samples: $N$.
        draws: how many rows.
    """
    check_count("samples", samples)
    key = as_key(key)
    if draws is not None:
        check_count("draws", draws)
        check_fits(draws=draws, samples=samples)
    if draws is None:
        if samples > 12:
            raise ValueError(
                f"`draws` must be given beyond 12 samples, got None for {samples}: there are "
                f"2^{samples} sign vectors."
            )
        return jnp.asarray(list(itertools.product((-1.0, 1.0), repeat=samples)))
    return jax.random.rademacher(key, (draws, samples), float)


class BilinearSup(AbstractResult):
    r"""The exact sup of the bilinear class for one $\xi$, its maximiser $(W', V')$, and the paper's
    chain (379)-(389) beside it.
    """

    value: Float[Array, ""]
    chain: Float[Array, ""]
    first: Float[Array, "first feature"]
    second: Float[Array, "second first"]


@double
def bilinear_sup(
    model: BiasedThreeLayer, inputs, xi, first_radius, second_radius, output: int = 0
) -> BilinearSup:
    r"""$\sup|\sum_j\xi_j\,aD_v(x_j)V'D_w(x_j)W'x_j| = \tau_w\tau_v(\sum_q\sigma_{\max}(B_q)^4)^{1/4}$,
    signs at the model's weights.

    $B_q = \sum_j\xi_j[D_w(x_j)]_q(a*D_v(x_j))x_j^\top$ (m2 x d). Only $B_q^\top B_q$ (d x d) is
    formed, from $G = AA^\top$ with rows $a*D_v(x_j)$. The chain bounds it by
    $\tau_wm_1^{1/4}\tau_v\max_q\lVert B_q\rVert_F$. Where the sup is zero (no node is on at any
    sample) every point of the balls attains it; the maximiser returned is then zero.

    Args:
        model: where the signs are taken.
        inputs: $x_j$, shape (sample, feature).
        xi: $\xi$, shape (sample,).
        first_radius, second_radius: $\tau_w$ of $\lVert W'\rVert_{2,4}$ and $\tau_v$ of
            $\lVert V'\rVert_F$.
        output: which row of the output weights is $a$.
    """
    inputs, xi = real_array("inputs", inputs, "(sample, feature)"), real_array("xi", xi, "(sample)")
    check_nonnegative("first_radius", first_radius)
    check_nonnegative("second_radius", second_radius)
    if xi.shape != inputs.shape[:1]:
        raise ValueError(
            f"`xi` must have one entry for each of the {len(inputs)} inputs, got {xi.shape}."
        )
    frozen = signs(model, inputs)
    rows = second_signs(frozen) * _output_weights(model, output)
    gram = rows @ rows.T
    gated = (xi[:, None] * frozen.first).T[:, :, None] * inputs  # (first, sample, feature)
    squares = jnp.einsum("qnd,nk,qke->qde", gated, gram, gated)
    values, vectors = jnp.linalg.eigh(squares)
    tops = jnp.sqrt(jnp.maximum(values[:, -1], 0.0))
    total = jnp.sum(tops**4) ** 0.25
    chain = (
        first_radius
        * model.widths[0] ** 0.25
        * second_radius
        * jnp.sqrt(jnp.max(jnp.trace(squares, axis1=1, axis2=2)))
    )
    first = first_radius * tops[:, None] * vectors[:, :, -1] / jnp.where(total > 0, total, 1.0)
    # V'_{iq} is along sum_j xi_j Dw_q (a Dv)_i <w_q, x_j>
    columns = jnp.einsum("qnd,qd,ni->iq", gated, first, rows)
    size = jnp.linalg.norm(columns)
    second = second_radius * columns / jnp.where(size > 0, size, 1.0)
    return BilinearSup(first_radius * second_radius * total, chain, first, second)


@double
def bilinear_rademacher(
    model: BiasedThreeLayer, inputs, xi, first_radius: float | int, second_radius: float | int
) -> tuple[float, float]:
    r"""$\frac1N\mathbb E_\xi\sup$ over the rows of `xi` (see `rademacher_signs`): the exact one,
    and the chain's.

    Args:
        model: where the signs are taken; of several outputs the first counts.
        inputs: $x_j$, shape (sample, feature).
        xi: $\xi$, one draw a row.
        first_radius, second_radius: $\tau_w$, $\tau_v$.
    """
    inputs = real_array("inputs", inputs, "(sample, feature)")
    check_nonnegative("first_radius", first_radius)
    check_nonnegative("second_radius", second_radius)
    radii = (jnp.asarray(first_radius), jnp.asarray(second_radius))
    draws = real_array("xi", xi, f"(draw, {len(inputs)})")
    sups = [_compiled_sup(model, inputs, one, *radii) for one in draws]
    exact, chain = np.mean([(s.value, s.chain) for s in sups], axis=0) / inputs.shape[0]
    return float(exact), float(chain)


_compiled_sup = eqx.filter_jit(bilinear_sup)


@double
def bilinear_bound(
    model: BiasedThreeLayer,
    samples: int,
    first_radius: float | int,
    second_radius: float | int,
    output: int = 0,
) -> float:
    r"""$\tau_w\tau_vm_1^{1/4}\lVert a\rVert_2/\sqrt N$ (Lemma 5.9 without its coupling term), on
    unit inputs.

    Args:
        model: gives $a$ and $m_1$.
        samples: $N$.
        first_radius, second_radius: $\tau_w$, $\tau_v$.
        output: which row of the output weights is $a$.
    """
    check_kind("model", model, BiasedThreeLayer, "a `BiasedThreeLayer`")
    check_count("samples", samples)
    check_nonnegative("first_radius", first_radius)
    check_nonnegative("second_radius", second_radius)
    a = np.asarray(_output_weights(model, output))
    return (
        first_radius
        * second_radius
        * model.widths[0] ** 0.25
        * float(np.linalg.norm(a))
        / math.sqrt(samples)
    )


@double
def row_ball_oracle(gradient, radius, power: float | int = 4.0) -> Float[Array, "row column"]:
    r"""The maximiser of $\langle G, W\rangle$ over $\lVert W\rVert_{2,4} \le \tau$:
    $W_i = \tau G_i\lVert G_i\rVert^{-2/3}/(\sum_j\lVert G_j\rVert^{4/3})^{1/4}$.

    The value is $\tau\lVert G\rVert_{2,4/3}$. `power` 2 is the Frobenius ball; any power $p > 1$
    works, with its dual exponent.

    Args:
        gradient: $G$, shape (row, column).
        radius: $\tau$.
        power: $p$, 4 in the formula.
    """
    g = real_array("gradient", gradient, "(row, column)")
    check_positive("radius", radius)
    check_between("power", power, 1.0, math.inf, open=True)
    dual = power / (power - 1)
    norms = jnp.sqrt(jnp.sum(g**2, axis=1, keepdims=True))
    top = jnp.max(norms)
    relative = norms / jnp.where(top > 0, top, 1.0)
    safe = jnp.where(norms > 0, norms, 1.0)
    total = jnp.sum(relative**dual) ** (1 / power)
    return radius * g / safe * relative ** (dual - 1) / jnp.where(total > 0, total, 1.0)


@double
def row_ball_projection(matrix, radius: float | int) -> Float[Array, "row column"]:
    r"""The nearest point of $\lVert W\rVert_{2,4} \le \tau$: rows keep their direction, norms solve
    $s + 2\mu s^3 = r$, $\mu$ by bisection.

    Args:
        matrix: $W$ before projection, shape (row, column); $r$ are its row norms.
        radius: $\tau$.
    """
    w = real_array("matrix", matrix, "(row, column)")
    check_positive("radius", radius)
    rows = jnp.sqrt(jnp.sum(w**2, axis=1))
    target = radius**4

    def lengths(mu):
        # Cardano: the one real root of 2 mu s^3 + s - r, in the form that is stable as mu -> 0
        p = 1 / (6 * mu)
        return 2 * jnp.sqrt(p) * jnp.sinh(jnp.arcsinh(rows / (4 * mu) / p**1.5) / 3)

    def halve(bounds, _):
        low, high = bounds
        middle = 0.5 * (low + high)
        inside = jnp.sum(lengths(jnp.exp(middle)) ** 4) < target
        return (jnp.where(inside, low, middle), jnp.where(inside, middle, high)), None

    spread = jnp.log(jnp.maximum(jnp.max(rows), 1e-300) / radius)
    bounds = (
        -60.0 - 2 * math.log(radius) + 0 * spread,
        10.0 - 2 * math.log(radius) + 4 * jnp.maximum(spread, 0.0) + jnp.log(1.0 * rows.size),
    )
    (_, high), _ = jax.lax.scan(halve, bounds, None, length=120)
    scale = lengths(jnp.exp(high)) / jnp.where(rows > 0, rows, 1.0)
    return jnp.where(jnp.sum(rows**4) <= target, w, scale[:, None] * w)


@double
def network_sup(
    key: Key,
    model: BiasedThreeLayer,
    inputs,
    xi,
    first_radius: float | int,
    second_radius: float | int,
    *,
    iterations: int = 60,
    draws: int = 12,
    fresh: int = 64,
) -> float:
    r"""A lower estimate of $\sup|\sum_j\xi_j\mathbb E_\Sigma f(x_j; W_0+\Sigma W', V_0+V'\Sigma)|$
    of (49), by conditional-gradient ascent.

    Starts at the bilinear maximiser, steps $2/(it+4)$ towards the linear oracle, redraws `draws`
    signs in every iteration and is evaluated on `fresh` new ones (re-using the ascent's own draws
    overestimates). Both signs of the sum are tried.

    Args:
        model: at $W_0$, $V_0$; of several outputs the first counts.
        inputs: $x_j$, shape (sample, feature).
        xi: $\xi$, shape (sample,).
        first_radius, second_radius: $\tau_w$ of $\lVert W'\rVert_{2,4}$ and $\tau_v$ of
            $\lVert V'\rVert_F$.
        iterations: of the ascent.
    """
    inputs, xi = real_array("inputs", inputs, "(sample, feature)"), real_array("xi", xi, "(sample)")
    check_nonnegative("first_radius", first_radius)
    check_nonnegative("second_radius", second_radius)
    radii = (jnp.asarray(first_radius), jnp.asarray(second_radius))
    start = _compiled_sup(model, inputs, xi, *radii)
    both = (jnp.asarray(1.0), jnp.asarray(-1.0))
    return max(
        float(
            _conditional_gradient(
                key, model, inputs, xi, start, sign, radii, iterations, draws, fresh
            )
        )
        for sign in both
    )


@eqx.filter_jit
def _conditional_gradient(key, model, inputs, xi, start, sign, radii, iterations, draws, fresh):
    width = model.widths[0]

    def total(w, v, diagonals):
        def one(s):
            out = signed_move(model, w, v, s).respond(inputs)
            return jnp.vdot(xi, out if out.ndim == 1 else out[:, 0])

        return sign * jnp.mean(jax.vmap(one)(diagonals))

    def step(carry, it):
        w, v = carry
        diagonals = jax.random.rademacher(
            jax.random.fold_in(named_key(key, "ascent"), it), (draws, width), inputs.dtype
        )
        gw, gv = jax.grad(total, argnums=(0, 1))(w, v, diagonals)
        size = 2 / (it + 4)
        w = w + size * (row_ball_oracle(gw, radii[0]) - w)
        v = v + size * (radii[1] * gv / jnp.linalg.norm(gv) - v)
        return (w, v), None

    (w, v), _ = jax.lax.scan(step, (start.first, sign * start.second), jnp.arange(iterations))
    return total(
        w, v, jax.random.rademacher(named_key(key, "evaluation"), (fresh, width), inputs.dtype)
    )


@double
def two_layer_sup(
    key: Key,
    model: BiasedTwoLayer,
    inputs,
    xi,
    radius: float | int,
    *,
    starts: int = 3,
    steps: int = 60,
    output: int = 0,
) -> float:
    r"""$\sup_{\lVert w_i\rVert\le\tau}\sum_j\xi_jf(x_j; W_0+W)$ from below: $m$ separate problems
    in a ball, projected subgradient ascent on each.

    `starts` random starts, `steps` steps of size $0.3\tau$, vectorised over neurons; Lemma G.5
    bounds its mean by $\lVert a\rVert_1\tau\sqrt N$ beyond $W = 0$.

    Args:
        model: at $W_0$.
        inputs: $x_j$, shape (sample, feature).
        xi: $\xi$, shape (sample,).
        radius: $\tau$.
        output: which row of the output weights is $a$.
    """
    check_kind("model", model, BiasedTwoLayer, "a `BiasedTwoLayer`")
    check_positive("radius", radius)
    check_count("starts", starts)
    check_count("steps", steps)
    directions = jax.random.normal(key, (starts, *model.hidden.shape))
    points = radius * directions / jnp.linalg.norm(directions, axis=-1, keepdims=True)
    a = _output_weights(model, output)
    best = _ball_ascent(
        model,
        real_array("inputs", inputs, "(sample, feature)"),
        real_array("xi", xi, "(sample)"),
        jnp.sign(a),
        points.at[0].set(0.0),
        jnp.asarray(radius),
        steps,
    )
    return float(jnp.vdot(jnp.abs(a), best))


@eqx.filter_jit
def _ball_ascent(model, inputs, xi, sign, points, radius, steps):
    """The best value of each neuron's own problem, over the starting `points`."""

    def values(w):  # (width,): sum_j xi_j sigma(<w0_i + w_i, x_j> + b_i), times the sign of a_i
        return sign * (xi @ jnp.maximum(inputs @ (model.hidden + w).T + model.bias, 0))

    def step(carry, _):
        w, best = carry
        gate = (inputs @ (model.hidden + w).T + model.bias >= 0) * xi[:, None]
        g = sign[:, None] * (gate.T @ inputs)
        norm = jnp.linalg.norm(g, axis=1, keepdims=True)
        w = w + 0.3 * radius * g / jnp.where(norm > 0, norm, 1.0)
        size = jnp.linalg.norm(w, axis=1, keepdims=True)
        w = w * jnp.minimum(1.0, radius / jnp.where(size > 0, size, 1.0))
        return (w, jnp.maximum(best, values(w))), None

    def ascend(w):
        return jax.lax.scan(step, (w, values(w)), None, length=steps)[0][1]

    return jnp.max(jax.vmap(ascend)(points), axis=0)


@double
def two_layer_bound(
    model: BiasedTwoLayer, samples: int, radius: float | int, output: int = 0
) -> float:
    r"""$\lVert a\rVert_1\tau_w/\sqrt N$ of Lemma G.5 with its constant (contraction), on unit
    inputs.

    Args:
        model: gives $a$.
        samples: $N$.
        radius: $\tau_w$, of every row.
        output: which row of the output weights is $a$.
    """
    check_kind("model", model, BiasedTwoLayer, "a `BiasedTwoLayer`")
    check_count("samples", samples)
    check_positive("radius", radius)
    return (
        float(np.sum(np.abs(np.asarray(_output_weights(model, output)))))
        * radius
        / math.sqrt(samples)
    )


@double
def gap_bound_variant2(model: BiasedThreeLayer, samples: int, output: int = 0) -> float:
    r"""$(\lVert W\rVert_{2,4}\lVert V\rVert_Fm_1^{1/4}\lVert a\rVert_2 + 1)/\sqrt N$ at the learned
    increments: variant 2's generalisation gap without its logs.

    Args:
        model: after training.
        samples: $N$.
        output: which row of the output weights is $a$.
    """
    w, v = (
        float(row_norm(model.first_increment, 4.0)),
        float(jnp.linalg.norm(model.second_increment)),
    )
    return bilinear_bound(model, samples, w, v, output) + 1 / math.sqrt(samples)


@double
def gap_bound_variant1(model: BiasedThreeLayer, samples: int) -> float:
    r"""The spectral bound of footnote 14, at the learned weights $W_0+W$, $V_0+V$ and increments
    $W$, $V$:

    $\frac{1}{\sqrt N}\lVert a\rVert\lVert W_0{+}W\rVert\lVert V_0{+}V\rVert\big((\lVert
    W\rVert_{2,1}/\lVert W_0{+}W\rVert)^{2/3} + (\lVert V\rVert_{2,1}/\lVert
    V_0{+}V\rVert)^{2/3}\big)^{3/2}$.

    Args:
        model: after training.
        samples: $N$.
    """
    w, v = model.first + model.first_increment, model.second + model.second_increment
    spectral = [float(jnp.linalg.norm(m, 2)) for m in (jnp.atleast_2d(model.output), w, v)]
    ratios = (
        float(row_norm(model.first_increment, 1.0)) / spectral[1],
        float(row_norm(model.second_increment, 1.0)) / spectral[2],
    )
    return math.prod(spectral) * sum(r ** (2 / 3) for r in ratios) ** 1.5 / math.sqrt(samples)


def _output_weights(
    model: BiasedTwoLayer | BiasedThreeLayer, output: int
) -> Float[Array, " width"]:
    """$a$ of one output; JAX would take the last one for an output that is not there."""
    rows = jnp.atleast_2d(model.output)
    check_count("output", output, least=0, most=len(rows) - 1)
    return rows[output]
