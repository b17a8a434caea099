"""A plain `train` as an experiment, so that `run` and sweeps can turn every knob of the grid.

Run:  wideflow run train --set width=512 --set scaling=zipf:0.5,0.7      Takes:  seconds
      wideflow run train --set depth=3 --set scaling=maximal-update --set dynamics=adam
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import optax
import xarray as xr

from .. import data
from .._core.activations import activation
from .._core.architecture import mlp
from .._core.counted import counted
from .._core.errors import (
    check_choice,
    check_count,
    check_nonnegative,
    check_number,
    check_positive,
)
from .._core.parametrisations import TABLE as PARAMETRISATIONS
from .._core.precision import Precision
from .._core.randomness import named_key
from .._core.scalings import parse_scaling
from .._core.status import Status
from ..dynamics.descent import GradientDescent
from ..dynamics.flow import GradientFlow
from ..dynamics.losses import HalfSumSquares, MeanSquares
from ..dynamics.optimisers import Optax
from ..dynamics.sgd import SGD
from ..figures import FigureSpec, Line, Panel
from ..models.deep import Deep
from ..models.shallow import Shallow
from ..observables.kernels import (
    EffectiveRank,
    KernelAlignment,
    KernelDistance,
    KernelMinEigenvalue,
    KernelSpectrum,
    KernelTrace,
)
from ..observables.laziness import LinearisationGap
from ..observables.movement import (
    ActiveFraction,
    FeatureMovement,
    LargestMovement,
    ParameterMovement,
    WeightMovement,
)
from ..observables.risks import Risk, TestRisk
from ..observables.visual import FeaturePair
from ..training.train import train
from .background import Predictions
from .base import Claim, Experiment
from .training_data import GENERATED, training_and_test
from .training_panels import COLOURS, panels as everything
from .training_views import Views, views

LOSSES = {"half-sum-squares": HalfSumSquares, "mean-squares": MeanSquares}
FACTORS = {"half-sum-squares": lambda samples: 1.0, "mean-squares": lambda samples: 2.0 / samples}
DYNAMICS = {
    "descent": lambda s: GradientDescent(s.rate),
    "flow": lambda s: GradientFlow(),
    "sgd": lambda s: SGD(s.rate, batch=s.batch),
    "momentum": lambda s: Optax(optax.sgd(1.0, momentum=0.9), s.batch or None, rate=s.rate),
    "adam": lambda s: Optax(optax.adam(1.0), s.batch or None, rate=s.rate),
}
LINEARISED = ("descent", "flow")  # those whose path with a frozen kernel is known in closed form
ALL = "all"
MOST_SEEDS = 1_000_000  # networks of one run (chosen), as many as `--seeds` takes
KERNEL_DRIFT = partial(KernelDistance, "spectral", False)
OBSERVABLES = {
    kind().name: kind
    for kind in (
        Risk,
        TestRisk,
        KERNEL_DRIFT,
        KernelMinEigenvalue,
        KernelTrace,
        EffectiveRank,
        KernelAlignment,
        FeatureMovement,
        LargestMovement,
        ParameterMovement,
        ActiveFraction,
        KernelDistance,
        LinearisationGap,
        WeightMovement,
        KernelSpectrum,
        FeaturePair,
    )
}


@dataclass(frozen=True)
class Settings:
    """Every field may be an axis of a sweep.

    Attributes:
        data: "sphere-sines", "random-labels", "wave-1d", "wave-2d", "uci:NAME", or the path of a
            CSV file.
        samples, features, noise: of generated data; random labels have no noise, waves their own
            number of features.
        frequency, amplitude: of the waves.
        test_samples: further samples of generated data; of a table so many rows are set aside, at
            most a third.
        target, rows, prepared: of tables: the target column (default the last one), at most so many
            rows (0 takes all), and whether they are brought into the form that theorems ask for
            (standardised, a bias column, inputs in the unit ball).
        positive: of CSV files whose target holds names: the class that is told from all others; two
            names need none.
        depth, width, activation: hidden layers, their neurons, and what these apply. One layer is a
            `Shallow` network, whose hidden weights alone are trained; several are a `Deep` one, all
            of whose layers are.
        scaling: of a shallow network as text, such as "zipf:0.5,0.7"; of a deep one the name of a
            parametrisation.
        deviation, symmetric: of the weights at the start; a symmetric start is for shallow
            networks.
        dynamics: "descent", "sgd", "momentum" and "adam" take `steps` of `rate`, the last three on
            a `batch` (0 is all samples); "flow" runs for `time`.
        records: how many equal intervals between records; `record`: names of observables besides
            the loss, or "all" for everything that is drawn of one network, with the predictions of
            its limits.
        devices: how many devices carry the neurons; 0 is JAX's first alone.
        seeds: networks trained together.
    """

    data: str = "sphere-sines"
    samples: int = 100
    features: int = 50
    noise: float = 0.1
    frequency: float = 1.5
    amplitude: float = 1.0
    test_samples: int = 0
    target: str = ""
    positive: str = ""
    rows: int = 0
    prepared: bool = False
    depth: int = 1
    width: int = 1000
    scaling: str = "ntk"
    activation: str = "relu"
    deviation: float = 1.0
    symmetric: bool = False
    dynamics: str = "descent"
    loss: str = "half-sum-squares"
    rate: float = 0.1
    batch: int = 16
    steps: int = 1000
    time: float = 100.0
    records: int = 20
    record: tuple[str, ...] = ("kernel_drift", "parameter_movement")
    stop_below: float = 0.0
    precision: Precision = "float64"
    devices: int = 0
    seeds: int = 1

    def __post_init__(self):
        if (
            self.data not in GENERATED
            and not self.data.startswith("uci:")
            and not self.data.endswith(".csv")
        ):
            raise ValueError(
                f"`data` must be {', '.join(map(repr, GENERATED))}, 'uci:NAME' or a path that "
                f"ends in .csv, got {self.data!r}."
            )
        for name in ("samples", "features", "depth", "width", "steps", "records", "seeds"):
            check_count(name, getattr(self, name))
        for name in ("test_samples", "devices", "rows"):
            check_count(name, getattr(self, name), least=0)
        for name in ("rate", "time", "deviation"):
            check_positive(name, getattr(self, name))
        for name in ("frequency", "amplitude"):
            check_number(name, getattr(self, name))
        for name in ("noise", "stop_below"):
            check_nonnegative(name, getattr(self, name))
        if self.seeds > MOST_SEEDS:
            raise ValueError(f"`seeds` must be at most {MOST_SEEDS}, got {self.seeds}.")
        for name in ("target", "positive"):
            if getattr(self, name) and self.data in GENERATED:
                raise ValueError(
                    f"`{name}` is for tables, got {getattr(self, name)!r} with `data` = "
                    f"{self.data!r}. Leave it out."
                )
        check_choice("dynamics", self.dynamics, DYNAMICS)
        check_count("batch", self.batch, least=1 if self.dynamics == "sgd" else 0)
        check_choice("loss", self.loss, LOSSES)
        check_choice("precision", self.precision, ("float32", "float64"))
        activation(self.activation)
        self._check_network()
        self._check_record()

    def _check_network(self):
        if self.depth == 1:
            parse_scaling(self.scaling)
            return
        if self.scaling not in PARAMETRISATIONS:
            raise ValueError(
                f"`scaling` of a network of `depth` = {self.depth} must be one of "
                f"{', '.join(PARAMETRISATIONS)}, got {self.scaling!r}. "
                "Node scalings and explicit exponents are for `depth` = 1."
            )
        if self.symmetric:
            raise ValueError(f"`symmetric` is for `depth` = 1, got `depth` = {self.depth}.")

    def _check_record(self):
        for name in self.record:
            check_choice("record", name, (*OBSERVABLES, ALL))
        if ALL in self.record and (
            self.seeds > 1 or len(self.record) > 1 or self.dynamics == "sgd"
        ):
            raise ValueError(
                "`record` = 'all' must be the only entry, for one network under full-batch "
                f"dynamics, got {self.record} with "
                f"`seeds` = {self.seeds} and `dynamics` = {self.dynamics!r}."
            )
        if "test_risk" in self.record and not self.test_samples:
            raise ValueError(
                "`record` has 'test_risk', which needs `test_samples` of at least 1, got 0."
            )


def run(settings: Settings, key, session) -> xr.Dataset:
    """Trains `seeds` networks on the data and records on the way."""
    s = settings
    networks, training, test = build(s, key)
    length: dict[str, Any]
    if s.dynamics == "flow":
        length = {"time": s.time, "every": s.time / s.records}
    else:
        length = {"steps": s.steps, "every": max(1, s.steps // s.records)}
    observables, ahead = [OBSERVABLES[name]() for name in s.record if name != ALL], None
    watched = session
    if ALL in s.record:
        shown = _views(s, networks[0], training, test, named_key(key, "predictions"))
        observables, ahead = shown.observables, Predictions(shown.beginning, shown.parts)
        watched = ahead.watched(session)
    table = train(
        networks if s.seeds > 1 else networks[0],
        training,
        DYNAMICS[s.dynamics](s),
        **length,
        test=test,
        loss=LOSSES[s.loss](),
        record=observables,
        key=named_key(key, "dynamics"),
        precision=s.precision,
        stop_below=s.stop_below or None,
        devices=s.devices or None,
        axis="network",
        session=watched.showing(lambda so_far: so_far.assign_attrs(described=describe(s))),
    ).table
    table = table.assign_attrs(described=describe(s))
    return table if ahead is None else ahead.complete(table, session)


def _views(s: Settings, network, training: data.Dataset, test, key) -> Views:
    flow = s.dynamics == "flow"
    times = np.linspace(0.0, s.time, s.records + 1)
    if not flow:
        times = s.rate * np.round(np.linspace(0, s.steps, min(s.records, s.steps) + 1))
    factor = FACTORS[s.loss](len(training))
    closed = s.dynamics in LINEARISED
    return views(network, training, test, times, None if flow else s.rate, factor, key, closed)


def describe(s: Settings) -> str:
    """Network, data and dynamics in words, for captions."""
    layers = "" if s.depth == 1 else f" and {s.depth} hidden layers"
    network = f"{s.activation} network of width {s.width}{layers} under {s.scaling} scaling"
    if s.data in GENERATED:
        noise = "" if s.data == "random-labels" else f", noise {s.noise:g}"
        where = f"{s.data} ({counted(s.samples, 'sample')}{noise})"
    else:
        where = s.data.rpartition("/")[2]
    how = f"until time {s.time:g}" if s.dynamics == "flow" else f"at rate {s.rate:g}"
    return f"{network} on {where}, {s.dynamics} {how}"


def build(s: Settings, key) -> tuple[list[Shallow] | list[Deep], data.Dataset, data.Dataset | None]:
    """The networks before training, the training set, and the test set if there is one."""
    training, test = training_and_test(s, named_key(key, "data"))
    keys = [named_key(named_key(key, "network"), i) for i in range(s.seeds)]
    if s.depth > 1:
        layers = mlp(s.depth, s.width, s.activation, weight_std=s.deviation)
        return [Deep.init(k, layers, training.dimension, s.scaling) for k in keys], training, test
    networks = [
        Shallow.init(
            k,
            features=training.dimension,
            width=s.width,
            scaling=parse_scaling(s.scaling),
            activation=s.activation,
            weight_std=s.deviation,
            symmetric=s.symmetric,
        )
        for k in keys
    ]
    return networks, training, test


def draw(table: xr.Dataset) -> FigureSpec:
    """Every recorded number over time, one panel each; of a run with `record` = "all" what there is
    to look at.
    """
    whole = "time_ahead" in table
    panels = everything(table) if whole else _curves(table)
    status = str(table.attrs["status"])
    ended = "" if status == Status.FINISHED.sentence else "; " + status.replace("`", "")
    described = table.attrs.get("described") or table.attrs["model"]
    return FigureSpec(
        "Training",
        panels,
        columns=2 if len(panels) < 6 else 3,
        caption=f"{described[0].upper()}{described[1:]}{ended}.",
        first=COLOURS if whole else (),
    )


def _curves(table: xr.Dataset) -> list[Panel]:
    panels = []
    for name, values in table.data_vars.items():
        if set(values.dims) <= {"network", "step"}:
            curves = values.values.reshape(-1, values.sizes["step"])
            marks = [Line(table.time.values, curve, group=str(name)) for curve in curves]
            scale = "log" if bool((curves > 0).all()) else "linear"
            label = values.attrs.get("label", str(name))
            panels.append(Panel(str(name).replace("_", " "), "time", label, marks, yscale=scale))
    return panels


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    """None: a run with settings of one's own claims nothing."""
    return ()


EXPERIMENT = Experiment(
    name="train",
    paper="",
    title="A network trained on data of your choice",
    figure="",
    settings={
        "smoke": Settings(samples=16, features=8, width=64, steps=50, records=5),
        "default": Settings(),
        "paper": Settings(width=2000, steps=50_000, rate=1.0),
    },
    run=run,
    draw=draw,
    claims=claims,
)
