r"""Tour: the features of two inputs under three scalings (chen2022, Experiment 3, Figure 4).

One draw of data, frozen first layer, weights and signs, trained under the paper's own scaling,
under the older mean-field scaling (MF) and under NTK scaling. Every neuron is a point: its
pre-activation at a training input and at a test input of the other label.

The three run as one batch: each network is written in the paper's own scaling, which the exact maps
of `as_ours` allow.

Run:  wideflow run tour-chen2022            Takes:  default 12 s on two cores, smoke 5 s
"""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ... import data, observables
from ..._core.errors import check_count, check_positive
from ..._core.precision import double
from ..._core.randomness import named_key
from ..._core.scalings import MeanField
from ...dynamics.descent import GradientDescent
from ...dynamics.losses import HalfMeanSquares
from ...experiments.base import Claim, Experiment
from ...experiments.tours.moments import Moment, line_at, moment_when
from ...figures import FigureSpec, Line, Panel, Points
from ...models.shallow import Shallow
from ...training.train import train
from .experiments.common import REDUCTION, recording
from .experiments.scalings import SCALINGS, networks

NAMES = tuple(SCALINGS)
TITLES = {"ours": "Features, the paper's scaling", "MF": "Features, MF", "NTK": "Features, NTK"}


@dataclass(frozen=True)
class Settings:
    samples: int = 200
    features: int = 20
    width: int = 512
    test_samples: int = 500
    time: float = 30.0
    fraction: float = 0.1
    records: int = 60

    def __post_init__(self):
        for name in ("samples", "features", "width", "test_samples"):
            check_count(name, getattr(self, name), least=2)
        check_count("records", self.records, least=10)
        check_positive("time", self.time)
        check_positive("fraction", self.fraction)


@double
def as_ours(net: Shallow) -> tuple[Shallow, float]:
    r"""The same network in the paper's own scaling, and the factor on the rate that makes the two
    move alike.

    With $c = p\sqrt D$ and $u = cw$, $f = \sum_j s_ja_j\sigma(p\,w_j\cdot\Phi) =
    \frac1m\sum_j(m\,s_ja_j)\,\sigma(D^{-1/2}u_j\cdot\Phi)$, and a step of $w$ by
    $-\eta\,r\,\partial_wL$ moves $u$ by $-\eta\,r\,c^2\,\partial_uL$, where the paper's own scaling
    has $r = m$, $c = 1$.
    """
    width, features = net.hidden.shape
    stretch = net.hidden_scale * math.sqrt(features)
    twin = Shallow(
        stretch * net.hidden,
        width * net.scales * net.output,
        MeanField(),
        net.activation,
        net.embedding,
    )
    return twin, net.rate_factor * stretch**2 / width


@double
def run(settings: Settings, key, session) -> xr.Dataset:
    s = settings
    training = data.axis_types(named_key(key, "data"), s.samples, s.features)
    test = data.axis_types(named_key(key, "test"), s.test_samples, s.features)
    nets = [networks(key, name, s.features, s.width, 1)[0] for name in NAMES]
    twins, factors = zip(*map(as_ours, nets), strict=True)
    rate = min(observables.safe_rate(net, training, s.fraction, mean=True) for net in nets)
    steps = math.ceil(s.time * s.samples / rate)
    other = int(np.argmax(np.asarray(test.targets) != float(training.targets[0])))
    record = [
        observables.Risk(),
        observables.TestRisk(),
        observables.Accuracy(),
        observables.FeatureMovement(),
        observables.FeatureScatter(training.inputs[0], test.inputs[other]),
    ]
    attributes = dict(samples=s.samples, width=s.width, loss=REDUCTION)

    def finished(table: xr.Dataset) -> xr.Dataset:
        """With `time` as that of the half sum of squares under each network's own scaling: the same
        for all three.
        """
        time = table.step.values * rate / s.samples
        return table.assign_coords(time=("step", time), scaling=list(NAMES)).assign_attrs(
            attributes
        )

    table = train(
        twins,
        training,
        [GradientDescent(rate * factor) for factor in factors],
        steps=steps,
        every=recording(steps, s.records),
        loss=HalfMeanSquares(),
        test=test,
        record=record,
        axis="scaling",
        session=session.showing(finished),
    ).table
    return finished(table)


def spread(table: xr.Dataset) -> xr.DataArray:
    """Root mean square of the points' coordinates."""
    return np.sqrt((table.scatter**2).mean(("input", "width")))


def mean_field_left(table: xr.Dataset) -> Moment | None:
    """Under MF the cloud, which starts as a dot, is ten times wider than at the start."""
    times, size = table.time.values, spread(table).sel(scaling="MF").values
    return moment_when(
        times,
        size >= 10 * size[0],
        lambda time, now: (
            f"At t = {time:.2g} the MF cloud is {size[now] / size[0]:.0f} times as wide as at "
            f"the start ({size[0]:.3f} to {size[now]:.2f})."
        ),
    )


def at_equal_fit(table: xr.Dataset, name: str) -> np.ndarray:
    """At every record, the test error that scaling `name` had when it first fitted the training
    data as well as NTK does now; NaN before.
    """
    risk, error = (table[which].sel(scaling=name).values for which in ("risk", "test_risk"))
    best = np.minimum.accumulate(risk)
    errors = np.full(len(best), np.nan)
    for now, fit in enumerate(table.risk.sel(scaling="NTK").values):
        if best[now] <= fit:
            errors[now] = error[np.argmax(best <= fit)]
    return errors


def features_learnt(table: xr.Dataset) -> Moment | None:
    """Features moved ten times as far as NTK's, and at an equal training error the test error was
    half of NTK's.
    """
    times, moved = table.time.values, table.feature_movement
    ours, lazy = (moved.sel(scaling=name).values for name in ("ours", "NTK"))
    error, fitted = table.test_risk.sel(scaling="NTK").values, at_equal_fit(table, "ours")
    with np.errstate(invalid="ignore"):
        paid = (ours >= 10 * lazy) & (fitted <= error / 2) & (times > 0)
    return moment_when(
        times,
        paid,
        lambda time, now: (
            f"At t = {time:.1f} the features of the paper's scaling have moved "
            f"{ours[now] / lazy[now]:.0f} times as far as NTK's. NTK's test error is "
            f"{error[now]:.2f}; the paper's scaling had {fitted[now]:.2f} when it fitted the "
            "training data as well."
        ),
    )


def live(table: xr.Dataset) -> FigureSpec:
    time, event = (
        table.time.values,
        line_at(features_learnt(table), "half of NTK's test error at equal training error"),
    )
    scatters = []
    for name in NAMES:
        pairs = table.scatter.sel(scaling=name)
        now, start = (pairs.isel(step=at).values for at in (-1, 0))
        marks = [
            Points(now[0], now[1], "now", size=3.0),
            Points(start[0], start[1], "start", size=2.0),
        ]
        scatters.append(
            Panel(TITLES[name], "h(x₁), training input", "h(x₂), other label", marks, one_unit=True)
        )
    curves = [
        Panel(
            title,
            "flow time t",
            label,
            [
                *(Line(time, table[variable].sel(scaling=name).values, name) for name in NAMES),
                event,
            ],
            yscale=scale,
        )
        for variable, title, label, scale in (
            ("risk", "Training error", "mean of squares", "log"),
            ("test_risk", "Test error", "mean of squares", "log"),
            ("feature_movement", "Feature movement", "mean |h(t) − h(0)|", "linear"),
        )
    ]
    return FigureSpec(
        f"Two inputs seen by {table.attrs['width']} neurons under three scalings, n = "
        f"{table.attrs['samples']}",
        [*scatters, *curves],
        columns=3,
        caption=f"One draw of everything; {table.attrs['loss']}. Compare chen2022, Figure 4.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    end = table.isel(step=-1)
    moved, risk = (end[name].sel for name in ("feature_movement", "test_risk"))
    ratio = float(moved(scaling="ours") / moved(scaling="NTK"))
    return (
        Claim(
            "features of the paper's scaling move and pay", holds=features_learnt(table) is not None
        ),
        Claim("the MF cloud leaves its start", holds=mean_field_left(table) is not None),
        Claim("feature movement at the end, ours / NTK", ratio, at_least=10.0),
        Claim(
            "test error at equal training error, NTK at its end / ours",
            float(risk(scaling="NTK") / at_equal_fit(table, "ours")[-1]),
            at_least=2.0,
        ),
        Claim(
            "test error at equal training error, NTK at its end / MF",
            float(risk(scaling="NTK") / at_equal_fit(table, "MF")[-1]),
            at_least=1.0,
        ),
    )


EXPERIMENT = Experiment(
    name="tour-chen2022",
    paper="chen2022",
    title="Tour: two inputs under three scalings",
    figure="Figure 4",
    settings={
        "smoke": Settings(samples=80, features=8, width=256, records=25),
        "default": Settings(),
        "paper": Settings(samples=600, features=50, width=8192, test_samples=1000, time=83.0),
    },
    run=run,
    draw=live,
    claims=claims,
)
