r"""How lazy a network will be, before training it.

The lazy prediction itself says how far the weights must go: with $K = c\,JJ^\top$ at time zero,
linearised flow has at time $T$
$$\Delta\theta = -c\,J^\top \frac{1-e^{-KT}}{K}\, r_0.$$
Take $T$ where the linearised loss has fallen to a given share, put the network there, and look: by
how much does its kernel differ from the one that brought it there, and by how much do its outputs
differ from what the linearisation says? Both are small exactly when the lazy prediction contradicts
itself little. No training is done; the cost is two Gram matrices and one eigen decomposition.

The regime is judged at half of the loss. Much further along, the slow modes of an ill-conditioned
Gram matrix carry the linearised path to places where training never goes, and there the gap is of
order one whatever the network; at half, the order of networks is that of training.

The same path says what the predicted times are worth (`time_spans`), in two ways of which neither
sees everything. What the outputs miss there makes the loss uncertain, and a loss that falls slowly
makes a time very uncertain. And the Gram matrix changes on the way: slow modes, in which the loss
ends up, hardly show in the outputs' gap, $(J-J_0)J_0^\top r$, but they do in $J_0(J-J_0)^\top r$,
so the times are predicted once more with the Gram matrix of the lazy path in place of the first.
"""

import itertools
import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._core.errors import check_between, check_kind
from .._core.host import on_device
from .._core.precision import cast, double
from .._core.randomness import named_key
from .._core.scalings import ABC, NTK, Weights, Zipf
from .._core.trees import parameters, unlabelled, with_parameters
from ..data.dataset import Dataset
from ..limits.time_to_loss import times_to_loss
from ..models.base import AbstractModel
from ..models.shallow import Shallow
from ..observables.block_kernels import block_of_features
from ..observables.regime import Regime

SHARE = 0.5  # of the initial loss, at which the lazy prediction is put to the test
GAMMAS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the comparison along gamma (chosen)
WIDTH_FACTORS = (0.25, 1.0, 4.0)  # of the comparison along the width (chosen)
# places on the lazy path at which its Gram matrix is taken for the second prediction of times, and
# the share of the first time from which they are spread out evenly in the logarithm (chosen)
PLACES, FROM = 16, 0.03


@dataclass(frozen=True)
class Laziness:
    """The regime at the chosen width and scaling, and along the width and along gamma (draws of the
    same law).

    Attributes:
        here: of the given network.
        time: at which the linearised loss reaches `share` of its start (or the cap, where it never
            does).
        samples: how many rows it was computed on.
        widths, along_width: the same scaling at other widths.
        gammas, along_gamma: the same width with another symmetric share, where the scaling has one.
        path: the regime of the given network where the lazy path reaches each of `shares` of the
            loss: how far the prediction is consistent.
        slope: of log(kernel change) on log(width): -1/2 is NTK's, 0 means features are learned at
            every width.
        spans: how early and how late training may reach each of `shares`, as factors of the
            predicted time (`time_spans`).
    """

    here: Regime
    time: float
    share: float
    samples: int
    widths: tuple[int, ...]
    along_width: tuple[Regime, ...]
    gammas: tuple[float, ...]
    along_gamma: tuple[Regime, ...]
    slope: float
    shares: tuple[float, ...] = ()
    path: tuple[Regime, ...] = ()
    spans: tuple[tuple[float, float], ...] = ()

    def to_dict(self) -> dict:
        return {
            **_numbers_of(self.here),
            "time": self.time,
            "share": self.share,
            "samples": self.samples,
            "slope": self.slope,
            "along_width": [
                {"width": w, **_numbers_of(r)} for w, r in zip(self.widths, self.along_width)
            ],
            "along_gamma": [
                {"gamma": g, **_numbers_of(r)} for g, r in zip(self.gammas, self.along_gamma)
            ],
            "along_path": [
                {"share": s, **_numbers_of(r), "time_span": list(span)}
                for s, r, span in zip(self.shares, self.path, self.spans)
            ],
        }


def _numbers_of(regime: Regime) -> dict:
    return {
        "index": regime.index,
        "verdict": regime.verdict,
        "kernel_change": regime.kernel_change,
        "linearisation_gap": regime.linearisation_gap,
    }


@double
def lazy_step(model, data: Dataset, share: float = SHARE) -> tuple[Regime, float]:
    r"""The regime that the lazy prediction of `model` on `data` leads to, and its time $T$.

    For several outputs the kernel is that of all samples and outputs. Modes slower than its error
    bar stay where they are; if they keep the loss above `share`, $T$ is where the slowest resolved
    mode has decayed.

    Args:
        model: the network at time zero.
        data: the training set.
        share: of the initial loss, at which $T$ is reached.
    """
    check_kind("model", model, AbstractModel, "a wideflow model")
    check_kind("data", data, Dataset, "a `Dataset`")
    check_between("share", share, 0, 1, open=True)
    regimes, times = lazy_path(model, data, (share,))
    return regimes[0], times[0]


@double
def lazy_path(
    model, data: Dataset, shares: tuple[float, ...]
) -> tuple[tuple[Regime, ...], tuple[float, ...]]:
    """`lazy_step` at several shares of the loss, from one kernel at the start."""
    return _LazyPath.of(model, data).regimes(shares)


@double
def time_spans(model, data: Dataset, shares: tuple[float, ...]) -> tuple[tuple[float, float], ...]:
    r"""How early and how late training may reach each of `shares` of the loss, as factors of the
    time $T$ at which the linearised flow does.

    With $e$ what the linearised outputs miss at $T$, the linearised loss has fallen to between
    $(\sqrt\rho\mp|e|/|r_0|)^2$ where training is at $\rho$. With $T_2$ the time that
    $\dot r = -K(\theta_{\rm lazy}(t))\,r$ takes, it lies between $T$ and $T_2^2/T$: the second
    prediction may be off by as much as it corrects the first. The span is that of the two together.
    It is an estimate and no bound. NaN where the share is never reached, infinite where the gap
    alone may keep the loss above it.

    Args:
        model: the network at time zero.
        data: the training set.
        shares: of the initial loss.
    """
    return _LazyPath.of(model, data).spans(shares)


class _End(NamedTuple):
    """A place on the lazy path: its regime, its kernel, and what the linearised outputs miss there
    as a share of the first residual, their `defect`.
    """

    regime: Regime
    kernel: jax.Array
    defect: float


@dataclass(frozen=True)
class _LazyPath:
    """A network with its kernel and residual at time zero."""

    model: AbstractModel
    inputs: jax.Array
    kernel: np.ndarray
    residual: np.ndarray
    ends: dict[float, _End] = field(default_factory=dict)  # that have been computed

    @classmethod
    def of(cls, model, data: Dataset) -> "_LazyPath":
        # without its scaling, of which it has the numbers: the networks along gamma share two
        # programs
        model = unlabelled(cast(model, "float64"))
        inputs = on_device(np.asarray(data.inputs, dtype=float))
        outputs, kernel = _start(model, inputs)
        residual = (np.asarray(outputs) - np.asarray(data.targets, dtype=float)).reshape(-1)
        return cls(model, inputs, np.asarray(kernel), residual)

    def reach(self, shares: tuple[float, ...]) -> tuple[float, ...]:
        """Where the linearised loss reaches each share, or the slowest resolved mode is gone."""
        times = times_to_loss(self.kernel, self.residual, shares)
        if not np.all(np.isfinite(times)):
            values = np.linalg.eigvalsh(self.kernel)
            resolved = values[values > len(values) * np.finfo(float).eps * values[-1]]
            times = np.where(np.isfinite(times), times, 1.0 / resolved[0] if resolved.size else 1.0)
        return tuple(float(time) for time in times)

    def end(self, time: float) -> _End:
        if time not in self.ends:
            arguments = (self.kernel, self.residual, time)
            change, gap, kernel, defect = _end(self.model, self.inputs, *map(on_device, arguments))
            self.ends[time] = _End(Regime(float(change), float(gap)), kernel, float(defect))
        return self.ends[time]

    def gap_span(self, share: float, time: float) -> tuple[float, float]:
        """The span that the outputs' gap at `time` leaves, as factors of it."""
        linear = times_to_loss(self.kernel, self.residual, (share,))[0]
        if not np.isfinite(linear):
            return math.nan, math.nan
        defect = self.end(time).defect
        above, below = (math.sqrt(share) + defect) ** 2, math.sqrt(share) - defect
        low = times_to_loss(self.kernel, self.residual, (above,))[0] if above < 1 else 0.0
        high = times_to_loss(self.kernel, self.residual, (below**2,))[0] if below > 0 else math.inf
        return (float(low / time), float(high / time)) if time > 0 else (1.0, 1.0)

    def regimes(self, shares: tuple[float, ...]) -> tuple[tuple[Regime, ...], tuple[float, ...]]:
        """As `lazy_path` has them."""
        times = self.reach(shares)
        return tuple(self.end(time).regime for time in times), times

    def spans(self, shares: tuple[float, ...]) -> tuple[tuple[float, float], ...]:
        """As `time_spans` has them."""
        times = self.reach(shares)
        spans = [self.gap_span(share, time) for share, time in zip(shares, times, strict=True)]
        trusted = [time for time, (_, high) in zip(times, spans, strict=True) if np.isfinite(high)]
        if not trusted or not min(trusted) > 0:
            return tuple(spans)
        places = np.geomspace(FROM * min(trusted), max(trusted), PLACES)
        kernels = [self.kernel, *(np.asarray(self.end(time).kernel) for time in places)]
        second = _times_along(kernels, places, self.residual, shares)
        factors = [
            (t2 / t) ** 2 if np.isfinite(h) else 1.0 for t, t2, (_, h) in zip(times, second, spans)
        ]
        return tuple((min(f, low), max(f, high)) for f, (low, high) in zip(factors, spans))


def _times_along(kernels, places, residual, shares) -> list[float]:
    r"""When $\dot r = -K(t)\,r$ reaches each share of the loss. $K$ is constant between two places,
    the mean of theirs, and beyond the last one what it is there.
    """
    initial, times = float(residual @ residual), [math.inf] * len(shares)
    begin = np.concatenate([[0.0], places])
    means = [(one + two) / 2 for one, two in itertools.pairwise(kernels)] + [kernels[-1]]
    for kernel, start, length in zip(means, begin, [*np.diff(begin), math.inf], strict=True):
        now = float(residual @ residual) / initial
        open_shares = [i for i, time in enumerate(times) if not np.isfinite(time)]
        wanted = tuple(min(shares[i] / now, 1.0) for i in open_shares)
        for i, time in zip(open_shares, times_to_loss(kernel, residual, wanted), strict=True):
            if time <= length and np.isfinite(time):
                times[i] = float(start + time)
        if np.isfinite(length):
            values, vectors = np.linalg.eigh(kernel)
            residual = vectors @ (np.exp(-np.maximum(values, 0) * length) * (vectors.T @ residual))
    return times


@eqx.filter_jit
def _start(model, inputs):
    features = model.embed(inputs)
    return model.respond(features), block_of_features(model, features)


@eqx.filter_jit
def _end(model, inputs, kernel, residual, time):
    """Relative kernel change and linearisation gap at the end of the lazy path, the kernel there,
    and the gap relative to the first residual.
    """
    features = model.embed(inputs)
    outputs, pull = model.pullback(features)
    values, vectors = jnp.linalg.eigh(kernel)
    resolved = values > len(values) * jnp.finfo(float).eps * jnp.max(values)
    # int_0^t e^{-lambda s} ds, mode by mode; unresolved modes stand still
    spans = jnp.where(resolved, -jnp.expm1(-values * time) / jnp.where(resolved, values, 1.0), 0.0)
    integral = vectors @ (spans * (vectors.T @ residual))
    gradient = pull(integral.reshape(outputs.shape))
    factors, theta = model.rate_factors(), parameters(model)
    end = with_parameters(
        model, {name: theta[name] - factors[name] * gradient[name] for name in theta}
    )
    step = (end.respond(features) - outputs).reshape(-1)
    kernel_after = block_of_features(end, features)
    change = jnp.linalg.norm(kernel_after - kernel) / jnp.linalg.norm(kernel)
    size, whole = jnp.linalg.norm(step), jnp.linalg.norm(residual)
    defect = jnp.linalg.norm(step + kernel @ integral)
    gap = defect / jnp.where(size > 0, size, 1.0)
    return change, gap, kernel_after, defect / jnp.where(whole > 0, whole, 1.0)


@double
def laziness(
    model,
    data: Dataset,
    key,
    *,
    share: float = SHARE,
    shares: tuple[float, ...] = (),
    samples: int = 256,
) -> Laziness:
    """Regime here, along the lazy path's `shares`, along the width and along gamma, on at most
    `samples` residuals: rows times outputs.
    """
    most = max(1, samples * len(data) // data.targets.size)
    if len(data) > most:
        rows = np.random.default_rng(0).permutation(len(data))[:most]
        data = data.take(np.sort(rows))
    lazy = _LazyPath.of(model, data)
    (here, *path), (time, *_) = lazy.regimes((share, *shares))
    widths, gammas = (), ()
    along_width: tuple[Regime, ...] = ()
    along_gamma: tuple[Regime, ...] = ()
    if isinstance(model, Shallow):
        widths = tuple(sorted({max(1, round(model.width * f)) for f in WIDTH_FACTORS}))
        if isinstance(model.scaling, Weights) and not callable(model.scaling.sequence):
            widths = tuple(w for w in widths if w <= len(model.scaling.sequence))
        draws = _draws(model, key, max(widths))
        along_width = tuple(
            _redrawn(model, data, draws, model.scaling, width, share) for width in widths
        )
        scalings = [_with_gamma(model.scaling, gamma) for gamma in GAMMAS]
        if all(s is not None for s in scalings):
            gammas = GAMMAS
            along_gamma = tuple(
                _redrawn(model, data, draws, s, model.width, share) for s in scalings
            )
    changes = [r.kernel_change for r in along_width]
    slope = math.nan
    if len(widths) > 1 and min(changes) > 0:
        slope = float(np.polyfit(np.log(widths), np.log(changes), 1)[0])
    return Laziness(
        here,
        time,
        share,
        len(data),
        widths,
        along_width,
        gammas,
        along_gamma,
        slope,
        shares,
        tuple(path),
        lazy.spans(shares),
    )


def _redrawn(model: Shallow, data: Dataset, draws, scaling, width: int, share: float) -> Regime:
    """A fresh network like `model` with another scaling or width: the first nodes of one long
    draw.
    """
    hidden, signs = draws
    deviation = scaling.initial_deviation(width)
    magnitude = float(np.sqrt(np.mean(np.asarray(model.output, float) ** 2)))
    if isinstance(scaling, ABC):
        magnitude *= scaling.output_deviation(width) / scaling.output_deviation(model.width)
    output = magnitude * signs[..., :width]
    fresh = Shallow(deviation * hidden[:width], output, scaling, model.activation, model.embedding)
    return lazy_step(fresh, data, share)[0]


def _draws(model: Shallow, key, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal hidden weights and signs for up to `width` nodes."""
    generator = np.random.default_rng(
        np.asarray(jax.random.key_data(named_key(key, "laziness"))).astype(np.uint32)
    )
    hidden = generator.standard_normal((width, model.weights.shape[0]))
    return hidden, generator.choice([-1.0, 1.0], (*model.output.shape[:-1], width))


def _with_gamma(scaling, gamma: float):
    """The node scaling with another symmetric share; None for scalings that have none. NTK is the
    end of the Zipf line at alpha = 0.7.
    """
    if isinstance(scaling, NTK):
        return Zipf(gamma)
    if isinstance(scaling, Zipf | Weights):
        return replace(scaling, gamma=gamma)
    return None
