r"""Tensor-order losses and moment errors of norm-coupled neurons along a run (li2020, sections 2
and 3, App. A.1, B).

All read the target off the run: the exact population that is descended, or that stands as `test=`
of a run on samples. Notation: $p_i = \|w_i\|^2$, unit rows $u_i$, means over neurons; the learner's
even tensors carry $s\cdot\frac12$ for ReLU with factor $s$ (one for `abs` and for `relu2`).
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...._core.arc_cosine import abs_hermite_squares
from ...._core.arrays import real_array, real_values
from ...._core.errors import check_choice, check_count
from ...._core.polar import polar
from ...._core.precision import double
from ...._core.tiles import by_rows
from ....dynamics.base import Snapshot
from ....models.homogeneous import Homogeneous
from ....observables.base import AbstractObservable

TeacherSnapshot = Snapshot[Homogeneous, Any]  # the target is that of `objective` or of `test`
NORMALISATIONS = ("raw", "weighted", "figure", "relative")


def target(snapshot) -> tuple[Float[Array, " direction"], Float[Array, "direction feature"]]:
    """Coefficients and directions of the target: of the descended population, else of the test
    one.
    """
    for objective in (snapshot.objective, snapshot.test):
        if hasattr(objective, "coefficients") and hasattr(objective, "directions"):
            return objective.coefficients, objective.directions
    raise ValueError(
        "this observable needs the target: train on a `GaussianAbsTeacher`, or give it as "
        "`test=` to `train`."
    )


def _neurons(model):
    """(even factor, first-order weight, r, u, weights) in float64."""
    if not isinstance(model, Homogeneous) or model.activation.name not in ("abs", "relu"):
        raise ValueError(
            "tensor orders are of `Homogeneous` networks with 'abs' or 'relu' neurons."
        )
    w = model.weights.astype(jnp.float64)
    r, u = polar(w)
    relu = model.activation.name == "relu"
    even = model.factor / 2 if relu else model.factor
    return (
        even,
        (model.factor / 2) ** 2 if relu else 0.0,
        r,
        u,
        w,
    )


@double
def order_losses(model: Homogeneous, coefficients, directions, orders) -> Float[Array, " order"]:
    r"""Raw $\ell_k = \|\mathbb Ep\,u^{\otimes k} - \sum_ia_i(w^*_i)^{\otimes k}\|_F^2$;
    $\ell_1 = \|\mathbb Erw\|^2$, other odd ones 0.
    """
    even, _, r, u, w = _neurons(model)
    v = real_array("directions", directions, f"(direction, {w.shape[1]})")
    a = real_array("coefficients", coefficients, f"({v.shape[0]},)")
    p = even * r**2 / w.shape[0]
    powers = [k for k in orders if k > 0 and k % 2 == 0]

    def rows(unit):
        own, cross = (unit @ u.T) ** 2, (unit @ v.T) ** 2
        return jnp.stack([own ** (k // 2) @ p - 2 * cross ** (k // 2) @ a for k in powers], axis=1)

    overlaps = (v @ v.T) ** 2
    own_target = [a @ overlaps ** (k // 2) @ a for k in powers]
    values = {0: (jnp.sum(p) - jnp.sum(a)) ** 2, 1: jnp.sum((r @ w / w.shape[0]) ** 2)}
    if powers:
        width, count = w.shape[0], len(powers)
        even_values = p @ by_rows(
            rows, u, bytes_per_row=16 * (width + a.shape[0]) * (count + 2)
        ) + jnp.stack(own_target)
        values |= dict(zip(powers, even_values, strict=True))
    return jnp.stack([values.get(k, jnp.zeros(())) for k in orders])


class OrderLosses(AbstractObservable):
    r"""The losses of the tensor orders. Along the table's axis `order`, whose coordinate holds the
    orders given.

    Args:
        orders: 0, 1 and even numbers; odd ones above 1 are zero in every learner.
        normalisation: "raw" $\ell_k$; "weighted" $c_k\ell_k$ (they sum to the loss); "figure"
            $d^2c_k\ell_k$, the loss of the un-normalised target $\sum|x_i|$, which fits the axes of
            the paper's Figures 1 and 2; "relative" $\ell_k/\|\text{target tensor}\|^2$.
        name, axis: of the variable and of its axis; two of them in one record need different names,
            and different axes where their orders differ.
    """

    orders: tuple[int, ...] = eqx.field(static=True)
    normalisation: str = eqx.field(static=True)
    name: str = eqx.field(static=True)
    label: str = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        orders=(0, 2, 4, 6, 8),
        normalisation: str = "raw",
        name: str = "order_losses",
        axis: str = "order",
    ):
        orders = tuple(np.atleast_1d(np.asarray(real_values("orders", orders))).tolist())
        for k in orders:
            check_count("orders", k, least=0)
        check_choice("normalisation", normalisation, NORMALISATIONS)
        self.orders, self.normalisation = tuple(int(k) for k in orders), normalisation
        self.name, self.axes = name, (axis,)
        self.label = {
            "raw": "order-k loss",
            "weighted": "c_k x order-k loss",
            "figure": "d^2 c_k x order-k loss",
            "relative": "relative order-k loss",
        }[normalisation]

    @property
    def coordinates(self) -> dict[str, tuple[int, ...]]:
        return {self.axes[0]: self.orders}

    def __call__(self, snapshot: TeacherSnapshot):
        a, v = target(snapshot)
        raw = order_losses(snapshot.model, a, v, self.orders)
        if self.normalisation == "raw":
            return raw
        if self.normalisation == "relative":
            overlaps = (
                v @ v.T
            )  # of unit directions: 0 to the power 0 is 1, so that order 0 has (sum a)^2
            return raw / jnp.stack([a @ overlaps**k @ a for k in self.orders])
        weights = np.array([abs_hermite_squares(k)[k] for k in self.orders])
        first = _neurons(snapshot.model)[1]
        weights = np.where(np.array(self.orders) == 1, first, weights)
        scale = v.shape[1] ** 2 if self.normalisation == "figure" else 1.0
        return scale * weights * raw


class LossTail(AbstractObservable):
    r"""$L - \sum_{k\le J}c_k\ell_k$: the part of the population loss beyond order $J$ = `through`.

    Args:
        through: $J$, the last order that is taken off.
    """

    through: int = eqx.field(static=True)
    name: str = eqx.field(static=True, default="loss_tail")
    label: str = eqx.field(static=True, default="loss of the higher orders")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, through: int = 8):
        check_count("through", through, least=0)
        self.through = through

    def __call__(self, snapshot: TeacherSnapshot):
        orders = OrderLosses(range(self.through + 1), "weighted")(snapshot)
        population = (
            snapshot.objective if hasattr(snapshot.objective, "directions") else snapshot.test
        )
        assert population is not None  # `OrderLosses` refuses a run without one
        return population.value(snapshot.model) / population.factor - jnp.sum(orders)


B0 = 4 * 2 / np.pi
B2 = 4 * 1 / np.pi


@double
def moment_errors(model: Homogeneous, coefficients, directions) -> dict[str, Float[Array, "..."]]:
    r"""Zeroth and second moment errors in the target's basis (App. A.1 and B).

    "zeroth" $z = \mathbb E\|w\|^2 - \sum a$; "second" $q_i = \mathbb Ew_i^2 - a_i$; "spectral"
    $\tilde\delta = \|\mathbb Eww^\top - A\|_2$; "Delta_plus", "Delta_minus" $= b_0\sum[\pm q_i]^+$
    and "Delta" their difference, $b_0z$ (stage 1; stage 2 of the paper redefines it as twice that);
    "delta_plus", "delta_minus" $= b_2\max_i[\pm q_i]^+$. For a ReLU learner moments carry its
    factor $s/2$. Where the target's directions are not orthonormal
    $q_i = \langle w^*_i, (\mathbb Eww^\top - \sum_ka_kw^*_kw^{*\top}_k)w^*_i\rangle$.

    Args:
        model: a `Homogeneous` network with neurons $w$.
        coefficients: $a$ of the target, one a direction.
        directions: $w^*_k$, one a row.
    """
    even, _, _, _, w = _neurons(model)
    v = real_array("directions", directions, f"(direction, {w.shape[1]})")
    a = real_array("coefficients", coefficients, f"({v.shape[0]},)")
    moment = even * w.T @ w / w.shape[0] - (v.T * a) @ v
    q = jnp.einsum("kd,de,ke->k", v, moment, v)
    plus, minus = jnp.maximum(q, 0.0), jnp.maximum(-q, 0.0)
    return {
        "zeroth": jnp.trace(moment),
        "second": q,
        "spectral": jnp.max(jnp.abs(jnp.linalg.eigvalsh(moment))),
        "Delta_plus": B0 * jnp.sum(plus),
        "Delta_minus": B0 * jnp.sum(minus),
        "Delta": B0 * jnp.sum(q),
        "delta_plus": B2 * jnp.max(plus),
        "delta_minus": B2 * jnp.max(minus),
    }


class MomentError(AbstractObservable):
    """One of `moment_errors`, by its name there ("second" has the axis `direction`).

    Args:
        which: the name.
    """

    which: str = eqx.field(static=True)
    name: str = eqx.field(static=True)
    label: str = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, which: str = "spectral"):
        names = (
            "zeroth",
            "second",
            "spectral",
            "Delta_plus",
            "Delta_minus",
            "Delta",
            "delta_plus",
            "delta_minus",
        )
        check_choice("which", which, names)
        self.which, self.name = which, f"{which}_moment_error" if which[0] in "zs" else which
        self.label = self.name.replace("_", " ")
        self.axes = ("direction",) if which == "second" else ()

    def __call__(self, snapshot: TeacherSnapshot):
        return moment_errors(snapshot.model, *target(snapshot))[self.which]
