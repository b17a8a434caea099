r"""What is watched while the depth-separation learner trains (ren2023, Sections 4 and D)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...._core.arrays import increasing, paired, real_array, real_values
from ...._core.errors import (
    check_choice,
    check_count,
    check_kind,
    check_positive,
)
from ...._core.polar import polar
from ...._core.precision import AbstractResult, double
from ....data.objective import AbstractObjective
from ....dynamics.base import Snapshot
from ....observables.base import AbstractObservable
from ..depth_separator import DepthSeparator
from ..laws.base import sphere
from ..laws.stage_times import StageTimes
from ..separator.directions import direction_error
from ..separator.samples import forward
from .sphere_extremes import sphere_extremes

__all__ = [
    "Alpha",
    "DirectionError",
    "DirectionSup",
    "EnergyBalance",
    "LossDecomposition",
    "LossParts",
    "Profile",
    "ProjectedPairs",
    "RadialSpread",
    "SecondBiases",
    "SecondSpread",
    "SecondWeights",
    "TangentSpread",
    "dead_fraction",
    "direction_l2",
    "direction_sup",
    "direction_sup_sampled",
    "energy_balance",
    "envelope",
    "loss_parts",
    "partition_radii",
    "radial_spread",
    "second_spread",
    "stage_times",
    "symmetry_gap",
    "tangent_spread",
]


def _check_separator(name: str, model) -> None:
    check_kind(name, model, DepthSeparator, "a `DepthSeparator`")


@double
def tangent_spread(model, start) -> Float[Array, ""]:
    r"""$\delta_{1,T} = \max_i \lVert \bar v_i(t) - \bar v_i(0) \rVert$: how far a first-layer
    neuron turned.

    Args:
        model: a `DepthSeparator` at time $t$.
        start: the same network at time 0.
    """
    _check_separator("model", model)
    _check_separator("start", start)
    return jnp.max(jnp.linalg.norm(polar(model.first)[1] - polar(start.first)[1], axis=1))


@double
def radial_spread(model) -> Float[Array, ""]:
    r"""$\delta_{1,R} = \max_i |\lVert v_i \rVert^2/\mathrm{mean} \lVert w \rVert^2 - 1|$.

    Args:
        model: a `DepthSeparator` with first-layer neurons $v_i$.
    """
    _check_separator("model", model)
    squares = jnp.sum(model.first**2, axis=1)
    return jnp.max(jnp.abs(squares / squares.mean() - 1))


@double
def second_spread(w, b) -> Float[Array, ""]:
    r"""$\delta_2 = \max_{j,l} \lVert (w_j, b_j) - (w_l, b_l) \rVert$.

    Args:
        w: $w_j$, shape (second,).
        b: $b_j$, likewise.
    """
    w = real_array("w", w, "(second)", finite=False)
    b = real_array("b", b, f"({w.shape[0]},)", finite=False)
    return jnp.sqrt(jnp.max((w[:, None] - w) ** 2 + (b[:, None] - b) ** 2))


@double
def direction_l2(model) -> Float[Array, ""]:
    r"""$e_2 = \sqrt{E_{\bar x}(F(\bar x)/\alpha - 1)^2}$, exactly by the kernel of directions.

    The error restricted to $r \le R$ is $\sqrt{M_2(R)}\, e_2$, as $F$ is homogeneous.

    Args:
        model: a `DepthSeparator`.
    """
    _check_separator("model", model)
    return jnp.sqrt(direction_error(model.first))


@double
def direction_sup(model, *, starts: int = 64, iterations: int = 200) -> Float[Array, ""]:
    r"""$e_\infty = \sup_{\bar x} |F(\bar x)/\alpha - 1|$ by ascent and descent (a lower bound, but
    close).

    Args:
        model: a `DepthSeparator`.
        starts: how many random points.
        iterations: steps of the ascent and of the descent.
    """
    ends = sphere_extremes(model, starts=starts, iterations=iterations)
    return jnp.maximum(ends.high / model.alpha - 1, 1 - ends.low / model.alpha)


@double
def direction_sup_sampled(model, key, directions: int = 20_000) -> Float[Array, ""]:
    r"""The same over random directions: a gross underestimate, kept for comparison.

    Args:
        model: a `DepthSeparator`.
        directions: how many.
    """
    check_count("directions", directions)
    _check_separator("model", model)
    x = sphere(key, directions, model.first.shape[1]).astype(model.first.dtype)
    layer = jnp.maximum(x @ model.first.T, 0) @ polar(model.first)[0] / model.width
    return jnp.max(jnp.abs(layer / model.alpha - 1))


class LossParts(AbstractResult):
    r"""$L = L_1 + L_2 + L_3$ on a sample, with the second term of equation (6).

    $L_1 = \frac12 E(f_* - \tilde f)^2$, $L_2 = \frac12 E(\tilde f - f)^2$,
    $L_3 = E(f_* - \tilde f)(\tilde f - f)$, and `predicted`
    $= \frac12 \bar w_2^2 E\{(\tilde F - F)^2 1\{r \le \rho\}\}$,
    $\rho = \bar b_2/(|\bar w_2|\alpha)$ (corrected: the restriction is missing in print, without it
    the expectation is infinite).

    Attributes:
        total: $L$.
        symmetric: $L_1$.
        asymmetric: $L_2$.
        cross: $L_3$.
    """

    total: Float[Array, ""]
    symmetric: Float[Array, ""]
    asymmetric: Float[Array, ""]
    cross: Float[Array, ""]
    predicted: Float[Array, ""]


@double
def loss_parts(model, inputs) -> LossParts:
    """The decomposition on the given inputs (sample, feature).

    Args:
        model: a `DepthSeparator`.
        inputs: shape (sample, feature).
    """
    _check_separator("model", model)
    x = real_array("inputs", inputs, f"(sample, {model.first.shape[1]})").astype(model.first.dtype)
    r = jnp.linalg.norm(x, axis=1)
    layer, f = forward(model.first, model.second_weight, model.second_bias, x)
    target, tilde = jnp.maximum(1 - r, 0), model.symmetric(r)
    alpha, w, b = model.alpha, model.second_weight.mean(), model.second_bias.mean()
    inside = -w * alpha * r <= b
    gap = jnp.where(inside, alpha * r - layer, 0.0)
    return LossParts(
        0.5 * jnp.mean((target - f) ** 2),
        0.5 * jnp.mean((target - tilde) ** 2),
        0.5 * jnp.mean((tilde - f) ** 2),
        jnp.mean((target - tilde) * (tilde - f)),
        0.5 * w**2 * jnp.mean(gap**2),
    )


@double
def symmetry_gap(model, inputs, radius: float = 3.0) -> Float[Array, ""]:
    r"""$\max |f - \tilde f|$ over the inputs with $\lVert x \rVert \le$ `radius`.

    Args:
        model: a `DepthSeparator`, the network $f$.
        inputs: shape (sample, feature).
    """
    _check_separator("model", model)
    x = real_array("inputs", inputs, f"(sample, {model.first.shape[1]})").astype(model.first.dtype)
    r = jnp.linalg.norm(x, axis=1)
    check_positive("radius", radius)
    f = forward(model.first, model.second_weight, model.second_bias, x)[1]
    return jnp.max(jnp.where(r <= radius, jnp.abs(f - model.symmetric(r)), 0.0))


@double
def partition_radii(model, directions=None) -> tuple[Float[Array, ""], Float[Array, ""]]:
    r"""$R_1 = \min_{j,\bar x} b_j/(-w_j F(\bar x))$ and $R_2 = \max$ of the same (Lemma D.9,
    corrected: the extremes of the sets).

    All second-layer neurons are active for $r \le R_1$ and none beyond $R_2$. Over the whole sphere
    by the extremes of $F$, or over given unit `directions`. Infinite where a weight is not
    negative.

    Args:
        model: a `DepthSeparator` with second-layer neurons $(w_j, b_j)$.
    """
    _check_separator("model", model)
    if directions is None:
        ends = sphere_extremes(model)
        low, high = ends.low, ends.high
    else:
        d = model.first.shape[1]
        layer = model.layer(real_array("directions", directions, f"(direction, {d})"))
        low, high = layer.min(), layer.max()
    w = model.second_weight
    ratio = jnp.where(w < 0, model.second_bias / jnp.where(w < 0, -w, 1.0), jnp.inf)
    return ratio.min() / high, ratio.max() / low


@double
def dead_fraction(model, inputs) -> Float[Array, ""]:
    """Share of second-layer neurons that are active on none of the inputs.

    Args:
        model: a `DepthSeparator`.
        inputs: shape (sample, feature).
    """
    _check_separator("model", model)
    layer = model.layer(real_array("inputs", inputs, f"(sample, {model.first.shape[1]})"))
    highest = jnp.max(layer[:, None] * model.second_weight + model.second_bias, axis=0)
    return jnp.mean(highest <= 0, dtype=float)


@double
def energy_balance(model) -> Float[Array, ""]:
    r"""$\mathrm{mean} \lVert w_1 \rVert^2 - 2\, \mathrm{mean}\, w_2^2$: conserved by the unclipped
    flow on any input law.

    Args:
        model: a `DepthSeparator`, with first-layer neurons $w_1$ and second-layer weights $w_2$.
    """
    _check_separator("model", model)
    return jnp.mean(jnp.sum(model.first**2, axis=1)) - 2 * jnp.mean(model.second_weight**2)


@double
def envelope(values, kind: str = "running_max") -> np.ndarray:
    r"""The paper's $\delta$'s are upper envelopes of the `values` recorded along a run.

    `raw`: the values; `running_max`: $\max\{\delta(0), ..., \delta(t)\}$ (Stages 1.1, 1.2);
    `positive_variation`: $\delta(0) + \int \mathrm{ReLU}(\dot\delta)$ (Stages 1.3 and 2), which is
    at least the running maximum.

    Args:
        values: shape (record,).
        kind: which of the three.
    """
    check_choice("kind", kind, ("raw", "running_max", "positive_variation"))
    values = np.asarray(real_values("values", values, "(record)"), float)
    if kind == "raw":
        return values
    if kind == "running_max":
        return np.maximum.accumulate(values)
    rises = np.maximum(np.diff(values, prepend=values[:1]), 0)
    return values[0] + np.cumsum(rises)


@double
def stage_times(
    times, weights, biases, losses, *, d: int, bound: float, epsilon: float, constant: float = 1.0
) -> StageTimes:
    r"""Stage times of a recorded run, linear between records (see `StageTimes` for the events).

    Args:
        times, losses: shape (record,).
        weights, biases: of the second layer, shape (record, second).
        d: the dimension of the inputs.
        bound: $R_{v_2}$.
        epsilon: the loss that ends Stage 2.
        constant: $C_1$.
    """
    check_count("d", d)
    for name, level in {"bound": bound, "epsilon": epsilon, "constant": constant}.items():
        check_positive(name, level)
    t = increasing("times", times)
    w, b = (
        np.asarray(real_values(name, value, f"({len(t)}, second)"), float)
        for name, value in (("weights", weights), ("biases", biases))
    )
    loss = paired("losses", losses, "times", len(t))
    if w.shape != b.shape:
        raise ValueError(f"`biases` must have the shape {w.shape} of `weights`, got {b.shape}.")
    mean = -w.mean(1)
    t11 = _crossing(t, -w.max(1), 0.0, 0.0)
    if not np.isfinite(t11):
        spread = np.inf
    else:
        deltas = np.array([float(second_spread(w[i], b[i])) for i in range(len(t))])
        spread = np.interp(t11, t, deltas)
    t12 = _crossing(t, mean, d * spread, t11)
    t1 = _crossing(t, mean, constant / bound, t12)
    t2 = _crossing(t, -loss, -epsilon, t1)
    return StageTimes(
        t11,
        t12,
        t1,
        t2,
        _crossing(t, mean, constant / bound, 0.0),
        _crossing(t, -loss, -epsilon, t11),
    )


def _crossing(t, values, level: float, after: float) -> float:
    """First time from `after` on at which the piecewise linear `values` are at least `level`."""
    if not (np.isfinite(after) and np.isfinite(level)):
        return np.inf
    start = np.interp(after, t, values)
    if start >= level:
        return float(after)
    later = np.flatnonzero((t > after) & (values >= level))
    if not later.size:
        return np.inf
    i = later[0]
    left, low = (t[i - 1], values[i - 1]) if t[i - 1] > after else (after, start)
    return float(left + (level - low) / (values[i] - low) * (t[i] - left))


DepthSnapshot = Snapshot[DepthSeparator, AbstractObjective]


class Alpha(AbstractObservable):
    r"""$\alpha$, the size of the first layer."""

    name: str = "alpha"
    label: str = "α"
    axes: tuple[str, ...] = ()

    def __call__(self, snapshot: DepthSnapshot) -> Float[Array, "..."]:
        return snapshot.model.alpha


class SecondWeights(AbstractObservable):
    """All second-layer weights."""

    name: str = "second_weight"
    label: str = "w₂"
    axes: tuple[str, ...] = ("second",)

    def __call__(self, snapshot: DepthSnapshot) -> Float[Array, "..."]:
        return snapshot.model.second_weight


class SecondBiases(AbstractObservable):
    """All second-layer biases."""

    name: str = "second_bias"
    label: str = "b₂"
    axes: tuple[str, ...] = ("second",)

    def __call__(self, snapshot: DepthSnapshot) -> Float[Array, "..."]:
        return snapshot.model.second_bias


class TangentSpread(AbstractObservable):
    r"""See `tangent_spread`."""

    name: str = "tangent_spread"
    label: str = "δ₁ᵀ"
    axes: tuple[str, ...] = ()

    def __call__(self, snapshot: DepthSnapshot) -> Float[Array, "..."]:
        return tangent_spread(snapshot.model, snapshot.start)


class RadialSpread(AbstractObservable):
    r"""See `radial_spread`."""

    name: str = "radial_spread"
    label: str = "δ₁ᴿ"
    axes: tuple[str, ...] = ()

    def __call__(self, snapshot: DepthSnapshot) -> Float[Array, "..."]:
        return radial_spread(snapshot.model)


class SecondSpread(AbstractObservable):
    r"""See `second_spread`."""

    name: str = "second_spread"
    label: str = "δ₂"
    axes: tuple[str, ...] = ()

    def __call__(self, snapshot: DepthSnapshot) -> Float[Array, "..."]:
        return second_spread(snapshot.model.second_weight, snapshot.model.second_bias)


class DirectionError(AbstractObservable):
    r"""See `direction_l2`."""

    name: str = "direction_error"
    label: str = "e₂"
    axes: tuple[str, ...] = ()

    def __call__(self, snapshot: DepthSnapshot) -> Float[Array, "..."]:
        return direction_l2(snapshot.model)


class DirectionSup(AbstractObservable):
    r"""See `direction_sup`; costs an ascent at every record.

    Args:
        starts, iterations: as in `direction_sup`.
    """

    starts: int = eqx.field(static=True, default=16)
    iterations: int = eqx.field(static=True, default=100)
    name: str = "direction_sup"
    label: str = "e∞"
    axes: tuple[str, ...] = ()

    def __check_init__(self):
        check_count("starts", self.starts)
        check_count("iterations", self.iterations)

    def __call__(self, snapshot: DepthSnapshot) -> Float[Array, "..."]:
        return direction_sup(snapshot.model, starts=self.starts, iterations=self.iterations)


class EnergyBalance(AbstractObservable):
    r"""See `energy_balance`."""

    name: str = "energy_balance"
    label: str = "mean ‖w₁‖² − 2 mean w₂²"
    axes: tuple[str, ...] = ()

    def __call__(self, snapshot: DepthSnapshot) -> Float[Array, "..."]:
        return energy_balance(snapshot.model)


class ProjectedPairs(AbstractObservable):
    """Pairs (sample, neuron) projected in all steps so far: first layer, weights, biases."""

    name: str = "projected_pairs"
    label: str = "projected pairs"
    axes: tuple[str, ...] = ("threshold",)

    def __call__(self, snapshot: DepthSnapshot) -> Float[Array, "..."]:
        return snapshot.state.held


class LossDecomposition(AbstractObservable):
    r"""$(L_1, L_2, L_3)$ and the prediction of equation (6) on the given inputs; see `loss_parts`.

    Args:
        inputs: shape (sample, feature).
    """

    inputs: Float[Array, "sample feature"]
    name: str = "loss_parts"
    label: str = "L₁, L₂, L₃, eq. (6)"
    axes: tuple[str, ...] = ("part",)

    def __check_init__(self):
        real_values("inputs", self.inputs, "(sample, feature)")

    def __call__(self, snapshot: DepthSnapshot) -> Float[Array, "..."]:
        parts = loss_parts(snapshot.model, self.inputs)
        return jnp.stack([parts.symmetric, parts.asymmetric, parts.cross, parts.predicted])


class Profile(AbstractObservable):
    r"""$f(r \bar x)$ at the given radii on the given directions, (radius, direction).

    Args:
        radii: the $r$, shape (radius,).
        directions: the unit vectors $\bar x$, shape (direction, feature).
    """

    radii: Float[Array, " radius"]
    directions: Float[Array, "direction feature"]
    name: str = "profile"
    label: str = "f(r x̄)"
    axes: tuple[str, ...] = ("radius", "direction")

    def __check_init__(self):
        real_values("radii", self.radii, "(radius)")
        real_values("directions", self.directions, "(direction, feature)")

    def __call__(self, snapshot: DepthSnapshot) -> Float[Array, "..."]:
        inputs = self.radii[:, None, None] * self.directions
        return jax.vmap(snapshot.model.outputs)(inputs)
