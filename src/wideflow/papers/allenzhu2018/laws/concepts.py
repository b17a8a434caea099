r"""The concept classes of allenzhu2018: smooth two- and three-layer target networks, (3), (6) and
(9).

$\langle w, x\rangle$ enters smooth functions with power series; all weight vectors have norm one
and $|a^\star| \le 1$, which is checked when a concept is built (`unit=False` skips the norms; a
frequency such as $\cos(6x_1)$ belongs inside the activation).
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.arrays import real_array
from ...._core.errors import check_flag
from ...._core.precision import DoubleModule, double
from .power_series import polynomial

_TOLERANCE = 1e-8


def _check_unit(name: str, rows: Array) -> None:
    norms = jnp.linalg.norm(rows, axis=-1)
    worst = float(norms[jnp.argmax(jnp.abs(norms - 1))])
    if not abs(worst - 1) <= _TOLERANCE:
        raise ValueError(
            f"`{name}` must have rows of norm 1, got a row of norm {worst:.6g}. "
            "Divide it by its norm and put the scale into the activation's frequency, or pass "
            "`unit=False`."
        )


def _check_shape(name: str, array: Array, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ValueError(f"`{name}` must have shape {shape}, got {array.shape}.")


def _check_outputs(output: Array) -> None:
    largest = float(jnp.max(jnp.abs(output)))
    if not largest <= 1 + _TOLERANCE:
        raise ValueError(
            f"`output` must have entries of size at most 1, got {largest:.6g}. Rescale the targets."
        )


def _activations(name: str, activations, count: int) -> tuple[Callable, ...]:
    if callable(activations) and not isinstance(activations, type):
        return (activations,) * count
    if (
        not isinstance(activations, list | tuple)
        or len(activations) != count
        or not all(map(callable, activations))
    ):
        raise ValueError(
            f"`{name}` must hold {count} functions (or be one for all), got {activations!r}."
        )
    return tuple(activations)


def _matrix(name: str, value) -> Array:
    return real_array(name, value, "(row, column)").astype(float)


def _rows(inputs, weights: Array) -> Array:
    return real_array("inputs", inputs, f"(sample, {weights.shape[1]})")


def _apply(functions: tuple[Callable, ...], z: Array) -> Array:
    """Each function on its own entry of the last axis."""
    return jnp.stack([f(z[..., i]) for i, f in enumerate(functions)], axis=-1)


class TwoLayerConcept(DoubleModule):
    r"""(3): $f^\star_r(x) = \sum_{i\le p} a^\star_{r,i}\,\phi_i(\langle w^\star_{1,i},
    x\rangle)\,\langle w^\star_{2,i}, x\rangle$.

    Args:
        output: $a^\star$, shape (outputs, p), or (p,) for one output without its axis.
        inner: $w^\star_1$, shape (p, feature).
        linear: $w^\star_2$, shape (p, feature). Rows $e_d$ give
            $\frac12\sum_i a^\star_i\phi_i(\langle w^\star_{1,i},x\rangle)$ on padded data.
        activations: $\phi_1, \dots, \phi_p$, or one for all.
        unit: check that the rows of `inner` and `linear` have norm 1.
    """

    output: Float[Array, "*output terms"]
    inner: Float[Array, "terms feature"]
    linear: Float[Array, "terms feature"]
    activations: tuple[Callable, ...] = eqx.field(static=True)

    @double
    def __init__(self, output, inner, linear, activations, *, unit: bool = True):
        check_flag("unit", unit)
        self.output = real_array("output", output, "(term)", "(output, term)").astype(float)
        self.inner, self.linear = _matrix("inner", inner), _matrix("linear", linear)
        terms = self.output.shape[-1]
        _check_shape("inner", self.inner, (terms, self.inner.shape[-1]))
        _check_shape("linear", self.linear, self.inner.shape)
        _check_outputs(self.output)
        if unit:
            _check_unit("inner", self.inner)
            _check_unit("linear", self.linear)
        self.activations = _activations("activations", activations, terms)

    @double
    def __call__(self, x) -> Float[Array, " *output"]:
        x = jnp.asarray(x)
        return self.output @ (_apply(self.activations, self.inner @ x) * (self.linear @ x))

    @double
    def outputs(self, inputs) -> Array:
        """Values on a batch (sample, feature)."""
        return jax.vmap(self)(_rows(inputs, self.inner))


class ThreeLayerConcept(DoubleModule):
    r"""(6): $f^\star_r(x) = \sum_{i\le p_1} a^\star_{r,i}\,\Phi_i\big(\sum_{j\le p_2}
    v^\star_{1,i,j}\phi_{1,j}(\langle w^\star_{1,j},x\rangle)\big) \big(\sum_{j\le p_2}
    v^\star_{2,i,j}\phi_{2,j}(\langle w^\star_{2,j},x\rangle)\big)$,

    and (9) when `first_linear` $w_3$ and `second_linear` $w_4$ are given: $\phi_{1,j}$ is
    multiplied by $\langle w_{3,j},x\rangle$ and $\phi_{2,j}$ by $\langle w_{4,j},x\rangle$. With
    $\Phi_i(z) = z$ it is (8)/(19).

    Args:
        output: $a^\star$, (outputs, p1) or (p1,).
        outer: $\Phi_1, \dots, \Phi_{p_1}$, or one for all.
        first_mix, second_mix: $v^\star_1, v^\star_2$, (p1, p2).
        first_weights, second_weights: $w^\star_1, w^\star_2$, (p2, feature).
        first_activations, second_activations: $\phi_{1,j}, \phi_{2,j}$, p2 of them or one for all.
        first_linear, second_linear: $w_3, w_4$, (p2, feature), or None.
        unit: check the norms of all weight rows.
    """

    output: Float[Array, "*output outer"]
    first_mix: Float[Array, "outer inner"]
    second_mix: Float[Array, "outer inner"]
    first_weights: Float[Array, "inner feature"]
    second_weights: Float[Array, "inner feature"]
    first_linear: Float[Array, "inner feature"] | None
    second_linear: Float[Array, "inner feature"] | None
    outer: tuple[Callable, ...] = eqx.field(static=True)
    first_activations: tuple[Callable, ...] = eqx.field(static=True)
    second_activations: tuple[Callable, ...] = eqx.field(static=True)

    @double
    def __init__(
        self,
        output,
        outer,
        first_mix,
        second_mix,
        first_weights,
        second_weights,
        first_activations,
        second_activations,
        *,
        first_linear=None,
        second_linear=None,
        unit: bool = True,
    ):
        check_flag("unit", unit)
        self.output = real_array("output", output, "(term)", "(output, term)").astype(float)
        self.first_mix = _matrix("first_mix", first_mix)
        self.second_mix = _matrix("second_mix", second_mix)
        self.first_weights = _matrix("first_weights", first_weights)
        self.second_weights = _matrix("second_weights", second_weights)
        self.first_linear, self.second_linear = (
            None if rows is None else _matrix(name, rows)
            for name, rows in (("first_linear", first_linear), ("second_linear", second_linear))
        )
        p1, (p2, features) = self.output.shape[-1], self.first_weights.shape
        _check_shape("first_mix", self.first_mix, (p1, p2))
        _check_shape("second_mix", self.second_mix, (p1, p2))
        named = {
            name: getattr(self, name)
            for name in ("first_weights", "second_weights", "first_linear", "second_linear")
        }
        named = {name: rows for name, rows in named.items() if rows is not None}
        for name, rows in named.items():
            _check_shape(name, rows, (p2, features))
        _check_outputs(self.output)
        if unit:
            for name, rows in {
                **named,
                "first_mix": self.first_mix,
                "second_mix": self.second_mix,
            }.items():
                _check_unit(name, rows)
        self.outer = _activations("outer", outer, p1)
        self.first_activations = _activations("first_activations", first_activations, p2)
        self.second_activations = _activations("second_activations", second_activations, p2)

    def _features(self, x: Array) -> tuple[Array, Array]:
        first = _apply(self.first_activations, self.first_weights @ x)
        second = _apply(self.second_activations, self.second_weights @ x)
        if self.first_linear is not None:
            first = first * (self.first_linear @ x)
        if self.second_linear is not None:
            second = second * (self.second_linear @ x)
        return first, second

    @double
    def __call__(self, x) -> Float[Array, " *output"]:
        first, second = self._features(jnp.asarray(x))
        return self.output @ (
            _apply(self.outer, self.first_mix @ first) * (self.second_mix @ second)
        )

    @double
    def outputs(self, inputs) -> Array:
        """Values on a batch (sample, feature)."""
        return jax.vmap(self)(_rows(inputs, self.first_weights))


@double
def plain_concept(
    output, outer, first_mix, first_weights, first_activations, *, unit: bool = True
) -> ThreeLayerConcept:
    r"""(7), a plain three-layer network
    $\sum_i a^\star_i\Phi_i(\sum_j v_{i,j}\phi_j(\langle w_j, x\rangle))$, as a member of (6).

    Corrected: the paper sets $\phi_2 = 1/p_2$, $v_2 = 1$, which breaks $\lVert v_2\rVert = 1$; both
    are $1/\sqrt{p_2}$ here, so that the second factor is 1.

    Args:
        output: $a^\star$, one number a term, or one row an output.
        outer: $\Phi_i$, one `PowerSeries` for all terms or one each.
        first_mix: $v$, shape (outer, inner).
        first_weights: $w_j$, shape (inner, feature).
        first_activations: $\phi_j$, one for all or one each.
        unit: check that all weight rows have norm 1.
    """
    weights = _matrix("first_weights", first_weights)
    mix = _matrix("first_mix", first_mix)
    inner = weights.shape[0]
    even = jnp.full(mix.shape, inner**-0.5)
    constant = polynomial((inner**-0.5,))
    return ThreeLayerConcept(
        output, outer, mix, even, weights, weights, first_activations, constant, unit=unit
    )
