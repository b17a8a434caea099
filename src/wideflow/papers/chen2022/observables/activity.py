r"""Active neurons and what Lemma 1 of chen2022 says about them along a run.

With an open interval $I = (I_l, I_r)$, $\xi = (I_r - I_l)/3$ and its middle third $I_0$,
$$\eta^t = \min_a \frac1m \#\{i : h^t_i(x_a) \in I\}, \qquad \tilde\eta^0 = \min_a \frac1m \#\{i :
  h^0_i(x_a) \in I_0\} \quad (18).$$
All kernels are those of $\dot f = -K r$ in the time of the half sum of squares, whichever reduction
is descended.
"""

import warnings
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...._core import host
from ...._core.arrays import increasing, paired, real_array
from ...._core.errors import (
    check_between,
    check_flag,
    check_interval,
    check_kind,
    check_nonnegative,
)
from ...._core.precision import double
from ....data.dataset import Dataset
from ....models.shallow import Shallow
from ....observables.base import (
    AbstractObservable,
    SampleSnapshot,
    ShallowSnapshot,
    one_residual,
    probe_features,
    test_objective,
)
from ....observables.kernels import gram_of_features

Interval = tuple[float | int, float | int]


def middle_third(interval: Interval) -> Interval:
    r"""$I_0 = (I_l + \xi, I_r - \xi)$."""
    low, high = check_interval(interval)
    return (2 * low + high) / 3, (low + 2 * high) / 3


def share_inside(h: Float[Array, "sample width"], interval: Interval) -> Float[Array, " sample"]:
    """For each sample, the share of neurons whose pre-activation lies strictly inside."""
    low, high = interval
    if host.on_host(h):
        inside = (np.asarray(h) > low) & (np.asarray(h) < high)
        return host.on_device(np.mean(inside, axis=1))
    return jnp.mean(((h > low) & (h < high)).astype(jnp.float64), axis=1)


class LeastActiveFraction(AbstractObservable):
    r"""$\eta^t$: the least share, over inputs, of neurons inside the interval; with `middle=True`
    inside its middle third, $\tilde\eta^t$.

    Args:
        interval: $I$; the activation's own if None.
        middle: whether to take the middle third of $I$.
    """

    interval: Interval | None = eqx.field(static=True)
    middle: bool = eqx.field(static=True)
    name: str = eqx.field(static=True)
    label: str = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, interval: Interval | None = None, middle: bool = False):
        check_flag("middle", middle)
        self.interval = None if interval is None else check_interval(interval)
        self.middle = middle
        self.name = "eta_tilde" if middle else "eta"
        self.label = (
            "least share of neurons in the middle third"
            if middle
            else "least share of active neurons"
        )

    def __call__(self, snapshot: ShallowSnapshot):
        interval = self.interval or snapshot.model.activation.interval
        h = probe_features(snapshot, None) @ snapshot.model.weights
        return jnp.min(share_inside(h, middle_third(interval) if self.middle else interval))


class DisplacedFraction(AbstractObservable):
    r"""$\max_a \frac1m \#\{i : |h^t_i(x_a) - h^0_i(x_a)| \ge \xi\}$ (40): $\eta^t$ is at least
    $\tilde\eta^0$ minus this.

    Args:
        interval: $I$, of which $\xi$ is a third of the length; the activation's own if None.
    """

    interval: Interval | None = eqx.field(static=True)
    name: str = eqx.field(static=True, default="displaced")
    label: str = eqx.field(
        static=True, default="largest share of neurons displaced by a third of the interval"
    )
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(self, interval: Interval | None = None):
        self.interval = None if interval is None else check_interval(interval)

    def __call__(self, snapshot: ShallowSnapshot):
        low, high = self.interval or snapshot.model.activation.interval
        features = probe_features(snapshot, None)
        moved = jnp.abs(features @ (snapshot.model.weights - snapshot.start.weights))
        return jnp.max(jnp.mean((moved >= (high - low) / 3).astype(jnp.float64), axis=1))


class PointMovement(AbstractObservable):
    r"""$M_a = \frac1m \sum_i |h^t_i(x_a) - h^0_i(x_a)|$ at every training (or test) input.

    Args:
        test: whether to take the test inputs.
    """

    test: bool = eqx.field(static=True)
    name: str = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True)
    label: str = eqx.field(static=True, default="mean over neurons of |h(t) − h(0)|")

    def __init__(self, test: bool = False):
        check_flag("test", test)
        self.test = test
        self.name = "test_point_movement" if test else "point_movement"
        self.axes = ("test_sample" if test else "sample",)

    def __call__(self, snapshot: ShallowSnapshot):
        features = (
            test_objective(snapshot).features if self.test else probe_features(snapshot, None)
        )
        return jnp.mean(
            jnp.abs(features @ (snapshot.model.weights - snapshot.start.weights)), axis=1
        )


class LossSlope(AbstractObservable):
    r"""$\dot L = -r^\top K r$ (14) of the half sum of squares under gradient flow; no
    differencing.
    """

    name: str = eqx.field(static=True, default="loss_slope")
    label: str = eqx.field(static=True, default="dL/dt = −rᵀKr")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot):
        gram, residual = _kernel_and_residual(snapshot)
        return -residual @ gram @ residual


class WeightedResidual(AbstractObservable):
    r"""$\sum_a r_a^2 A_{aa}$, $A_{aa} = \frac1m \sum_i \sigma'(h_i(x_a))^2$: by (14),
    $\dot L \le -\hat c^2 \lambda_{\min}(G) \sum_a r_a^2 A_{aa}$.
    """

    name: str = eqx.field(static=True, default="weighted_residual")
    label: str = eqx.field(static=True, default="Σ r² A")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot: ShallowSnapshot):
        slopes = snapshot.model.activation.slope(
            probe_features(snapshot, None) @ snapshot.model.weights
        )
        residual = one_residual(snapshot)
        return jnp.sum(residual**2 * jnp.mean(slopes**2, axis=1))


class SumLoss(AbstractObservable):
    r"""$\frac12 \sum_a r_a^2$ whatever loss is descended: the $L$ of every theorem of chen2022."""

    name: str = eqx.field(static=True, default="sum_loss")
    label: str = eqx.field(static=True, default="½ Σ (f − y)²")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot: SampleSnapshot):
        residual = (snapshot.objective.outputs(snapshot.model) - snapshot.objective.targets).astype(
            jnp.float64
        )
        return jnp.sum(residual**2) / 2


class PreactivationSpeed(AbstractObservable):
    r"""$\frac1m \sum_i |\dot h_i(x_a)|$ under gradient flow, at every training input; bounded by
    (43).
    """

    name: str = eqx.field(static=True, default="preactivation_speed")
    label: str = eqx.field(static=True, default="mean |dh/dt|")
    axes: tuple[str, ...] = eqx.field(static=True, default=("sample",))

    def __call__(self, snapshot: ShallowSnapshot):
        model, features = snapshot.model, probe_features(snapshot, None)
        slopes = model.activation.slope(features @ model.weights)
        residual = one_residual(snapshot)
        mixed = model.rate_factor * model.scales * model.output
        return jnp.mean(
            jnp.abs((features @ features.T) @ (slopes * residual[:, None] * mixed)), axis=1
        )


class Diversity(AbstractObservable):
    r"""Eigenvalues of the covariance over neurons of $(h_i(x_1), \dots, h_i(x_n))$, ascending:
    collapsed features leave few.
    """

    name: str = eqx.field(static=True, default="diversity")
    label: str = eqx.field(
        static=True, default="eigenvalues of the covariance of features over neurons"
    )
    axes: tuple[str, ...] = eqx.field(static=True, default=("eigenvalue",))

    def __call__(self, snapshot: ShallowSnapshot):
        h = (probe_features(snapshot, None) @ snapshot.model.weights).astype(jnp.float64)
        centred = h - jnp.mean(h, axis=1, keepdims=True)
        return jnp.linalg.eigvalsh(centred @ centred.T / h.shape[1])


class DeadFraction(AbstractObservable):
    r"""Share of neurons with $\sigma'(h_i(x_a)) = 0$ at every training input: these never move
    again.
    """

    name: str = eqx.field(static=True, default="dead")
    label: str = eqx.field(static=True, default="share of dead neurons")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, snapshot: ShallowSnapshot):
        slopes = snapshot.model.activation.slope(
            probe_features(snapshot, None) @ snapshot.model.weights
        )
        return jnp.mean(jnp.all(slopes == 0, axis=0).astype(jnp.float64))


class FeatureScatter(AbstractObservable):
    r"""The pairs $(h_i(x_1), h_i(x_2))$ of every neuron at two given inputs (chen2022, Figures 4,
    7, 8).

    Args:
        first, second: $x_1$ and $x_2$, each of shape (input,).
    """

    first: Float[Array, " input"]
    second: Float[Array, " input"]
    name: str = eqx.field(static=True, default="scatter")
    label: str = eqx.field(static=True, default="pre-activations at two inputs")
    axes: tuple[str, ...] = eqx.field(static=True, default=("input", "width"))

    @double
    def __init__(self, first, second):
        self.first = real_array("first", first, "(input,)")
        self.second = real_array("second", second, f"({len(self.first)},)")

    def __call__(self, snapshot: ShallowSnapshot):
        return snapshot.model.embed(jnp.stack([self.first, self.second])) @ snapshot.model.weights


class KernelChain(NamedTuple):
    r"""$\lambda_{\min}(K) \ge \hat c^2 \lambda_{\min}(G) \min_a A_{aa} \ge \hat c^2
    \lambda_{\min}(G) K_{\sigma'}^2 \eta$ (from 14 and 37).

    Attributes:
        kernel: $\lambda_{\min}(K)$.
        slopes: $\hat c^2\lambda_{\min}(G)\min_aA_{aa}$.
        active: $\hat c^2\lambda_{\min}(G)K_{\sigma'}^2\eta$.
    """

    kernel: float
    slopes: float
    active: float


@double
def kernel_chain(
    model: Shallow, inputs, interval: Interval | None = None, slope_floor: float | int | None = None
) -> KernelChain:
    r"""The chain of lower bounds on $\lambda_{\min}(K)$; `slope_floor` is $K_{\sigma'}(I)$, by
    default the activation's own for its interval.

    Args:
        model: a `Shallow` network with one output; where its node scales differ the least one
            counts.
        inputs: $x_a$, shape (sample, feature).
        interval: $I$; the activation's own if None.
        slope_floor: $K_{\sigma'}(I)$.
    """
    low, high = check_interval(model.activation.interval if interval is None else interval)
    if slope_floor is not None:
        check_nonnegative("slope_floor", slope_floor)
    floor = model.activation.interval_slope if slope_floor is None else slope_floor
    features = model.embed(real_array("inputs", inputs))
    h = features @ model.weights
    # c^2 G = rate factor * m * (s A)^2 * Phi Phi^T for equal node scales, at least that for others
    factor = model.rate_factor * model.width * jnp.min((model.scales * model.output) ** 2)
    gap = jnp.linalg.eigvalsh(factor * (features @ features.T))[0]
    diagonal = jnp.mean(model.activation.slope(h) ** 2, axis=1)
    return KernelChain(
        float(jnp.linalg.eigvalsh(gram_of_features(model, features, features))[0]),
        float(gap * jnp.min(diagonal)),
        float(gap * floor**2 * jnp.min(share_inside(h, (low, high)))),
    )


def path_integral(times, slopes) -> np.ndarray:
    r"""$\int_0^t |\dot L|^{1/2} \mathrm ds$ (44) at every record, by the trapezoid rule; record
    densely early.

    Args:
        times: of the records, increasing.
        slopes: $\dot L$ at each, as `LossSlope` records it.
    """
    times = increasing("times", times)
    speed = np.sqrt(np.abs(paired("slopes", slopes, "times", len(times))))
    steps = np.diff(times) * (speed[1:] + speed[:-1]) / 2
    return np.concatenate([[0.0], np.cumsum(steps)])


@double
def safe_rate(model: Shallow, data, fraction: float | int = 0.1, mean: bool = False) -> float:
    r"""$\delta$ with $\delta_{\mathrm{eff}} \lambda_{\max}(K^0)$ = `fraction`; `mean=True` for
    `HalfMeanSquares`, where $\delta_{\mathrm{eff}} = \delta/n$.

    0.1 to 0.5 is safe for `MeanField()` and `NTK()`; for `MeanField(hidden=1.0)`, whose first steps
    decide which neurons die, take 0.02 or less.

    Args:
        model: at time zero.
        data: the training set.
        fraction: between 0 and 2, where descent becomes unstable.
        mean: whether the loss is a mean over samples.
    """
    check_between("fraction", fraction, 0, 2, open=True, remedy="From 2 on descent is unstable.")
    check_flag("mean", mean)
    check_kind("model", model, Shallow, "a `Shallow` network")
    check_kind(
        "data", data, Dataset, "a `Dataset`", "Arrays become one by `Dataset(inputs, targets)`."
    )
    features = model.embed(data.inputs)
    top = float(
        jnp.linalg.eigvalsh(gram_of_features(model, features, features).astype(jnp.float64))[-1]
    )
    return fraction / top * (len(data) if mean else 1)


def stability(table, samples: int) -> float:
    r"""$\max_k \delta_{\mathrm{eff}} \lambda_{\max}(K^k)$ of a descent recorded with
    `KernelMaxEigenvalue`; from 2 on it is locally unstable, and a warning says so.

    `samples` is $n$: $\delta_{\mathrm{eff}} = \delta/n$ where the half mean was descended, $\delta$
    for the half sum.

    Args:
        table: of a run with `KernelMaxEigenvalue` in its record.
        samples: $n$.
    """
    if "kernel_top" not in table:
        raise ValueError(
            "`table` must hold kernel_top; train with `record=[KernelMaxEigenvalue()]`."
        )
    rate = float(np.max(table["time"].values)) / max(int(np.max(table["step"].values)), 1)
    mean = str(table.attrs.get("loss", "")).startswith("half mean")
    largest = rate / (samples if mean else 1) * float(table["kernel_top"].max())
    if not largest < 2:
        warnings.warn(
            f"rate x largest kernel eigenvalue reached {largest:.3g}; descent is unstable from 2 "
            "on. Use `safe_rate`.",
            stacklevel=2,
        )
    return largest


def _kernel_and_residual(snapshot):
    features = probe_features(snapshot, None)
    gram = gram_of_features(snapshot.model, features, features).astype(jnp.float64)
    residual = one_residual(snapshot)
    return gram, residual.astype(jnp.float64)
