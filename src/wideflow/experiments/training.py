"""A plain `train` as an experiment, so that `run` and sweeps can turn every knob of the grid.

Run:  wideflow run train --set width=512 --set scaling=zipf:0.5,0.7      Takes:  seconds
"""

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
import xarray as xr

from .. import data
from .._core.activations import activation
from .._core.errors import check_choice, check_count, check_positive
from .._core.randomness import named_key
from .._core.scalings import parse_scaling
from ..dynamics.descent import GradientDescent
from ..dynamics.flow import GradientFlow
from ..dynamics.losses import HalfSumSquares, MeanSquares
from ..dynamics.sgd import SGD
from ..figures import FigureSpec, Line, Panel
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
from ..observables.visual import FeaturePair, NeuronPlaces, OutputsAt
from ..training.train import train
from .base import Claim, Experiment
from .predictions import predict
from .training_panels import COLOURS, panels as everything

GENERATED = ("sphere-sines", "random-labels", "wave-1d", "wave-2d")
DYNAMICS = ("descent", "flow", "sgd")
LOSSES = {"half-sum-squares": HalfSumSquares, "mean-squares": MeanSquares}
FACTORS = {"half-sum-squares": lambda samples: 1.0, "mean-squares": lambda samples: 2.0 / samples}
ALL = "all"
KERNEL_DRIFT = partial(KernelDistance, "spectral", False)
OBSERVABLES = {
    kind().name: kind
    for kind in (
        Risk, TestRisk, KERNEL_DRIFT, KernelMinEigenvalue, KernelTrace, EffectiveRank, KernelAlignment, FeatureMovement,
        LargestMovement, ParameterMovement, ActiveFraction, KernelDistance, LinearisationGap, WeightMovement,
        KernelSpectrum, FeaturePair,
    )
}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """Every field may be an axis of a sweep.

    Attributes:
        data: "sphere-sines", "random-labels", "wave-1d", "wave-2d", "uci:NAME", or the path of a CSV file.
        samples, features, noise, test_samples: of generated data; random labels have no noise, waves their own number of features.
        target, rows, prepared: of tables: the target column (default the last one), at most so many rows (0 takes all), and whether
            they are brought into the form that theorems ask for (standardised, a bias column, inputs in the unit ball).
        width, scaling, activation, deviation, symmetric: of the `Shallow` network; `scaling` as text, such as "zipf:0.5,0.7".
        dynamics: "descent" and "sgd" take `steps` of `rate`, the latter on a `batch`; "flow" runs for `time`.
        records: how many equal intervals between records; `record`: names of observables besides the loss, or "all" for everything
            that is drawn of one network, with the predictions of its limits.
        devices: how many devices carry the neurons; 0 is JAX's first alone.
        seeds: networks trained together.
    """

    data: str = "sphere-sines"
    samples: int = 100
    features: int = 50
    noise: float = 0.1
    test_samples: int = 0
    target: str = ""
    rows: int = 0
    prepared: bool = False
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
    record: tuple[str, ...] = ("kernel_drift", "largest_movement")
    stop_below: float = 0.0
    precision: str = "float64"
    devices: int = 0
    seeds: int = 1

    def __post_init__(self):
        if (
            self.data not in GENERATED
            and not self.data.startswith("uci:")
            and not self.data.endswith(".csv")
        ):
            raise ValueError(
                f"`data` must be {', '.join(map(repr, GENERATED))}, 'uci:NAME' or a path that ends in .csv, got {self.data!r}."
            )
        for name in ("samples", "features", "width", "batch", "steps", "records", "seeds"):
            check_count(name, getattr(self, name))
        for name in ("test_samples", "devices", "rows"):
            check_count(name, getattr(self, name), least=0)
        for name in ("rate", "time", "deviation"):
            check_positive(name, getattr(self, name))
        check_choice("dynamics", self.dynamics, DYNAMICS)
        check_choice("loss", self.loss, LOSSES)
        check_choice("precision", self.precision, ("float32", "float64"))
        for name in self.record:
            check_choice("record", name, (*OBSERVABLES, ALL))
        if ALL in self.record and (
            self.seeds > 1 or len(self.record) > 1 or self.dynamics == "sgd"
        ):
            raise ValueError(
                f"`record` = 'all' stands alone, and is for one network under descent or flow, got {self.record} with "
                f"`seeds` = {self.seeds} and `dynamics` = {self.dynamics!r}."
            )
        if "test_risk" in self.record and not self.test_samples:
            raise ValueError(
                "`record` has 'test_risk', which needs `test_samples` of at least 1, got 0."
            )
        if self.test_samples and self.data not in GENERATED:
            raise ValueError(
                f"`test_samples` is for generated data, got {self.test_samples} with `data` = {self.data!r}."
            )
        parse_scaling(self.scaling)
        activation(self.activation)


def run(settings: Settings, key, session) -> xr.Dataset:
    """Trains `seeds` networks on the data and records on the way."""
    s = settings
    networks, training, test = build(s, key)
    dynamics = {
        "descent": lambda: GradientDescent(s.rate),
        "sgd": lambda: SGD(s.rate, batch=s.batch),
        "flow": GradientFlow,
    }[s.dynamics]()
    if s.dynamics == "flow":
        length = {"time": s.time, "every": s.time / s.records}
    else:
        length = {"steps": s.steps, "every": max(1, s.steps // s.records)}
    observables, known = [OBSERVABLES[name]() for name in s.record if name != ALL], xr.Dataset()
    if ALL in s.record:
        observables, known = _everything(s, networks[0], training, named_key(key, "predictions"))
    table = train(
            networks if s.seeds > 1 else networks[0], training, dynamics, **length, test=test, loss=LOSSES[s.loss](),
            record=observables, key=named_key(key, "dynamics"), precision=s.precision,
            stop_below=s.stop_below or None, devices=s.devices or None, axis="network",
            session=session.showing(lambda so_far: so_far.assign(known.data_vars)),
        ).table  # fmt: skip
    return table.assign(known.data_vars)


SHOWN = (KernelMinEigenvalue, KERNEL_DRIFT, KernelDistance, LinearisationGap, WeightMovement, FeaturePair, KernelSpectrum)  # fmt: skip


def _everything(s: Settings, network: Shallow, training: data.Dataset, key):
    """The observables of the panels, and what is known before the run: predictions, and the data where one can look at them."""
    grid, places = None, xr.Dataset()
    observables = [kind() for kind in SHOWN]
    if training.features[-1:] == ("bias",) and training.dimension in (2, 3):
        grid, places = _plane(training)
        observables += [OutputsAt(grid), NeuronPlaces()]
    flow = s.dynamics == "flow"
    times = np.linspace(0.0, s.time, s.records + 1)
    if not flow:
        times = s.rate * np.round(np.linspace(0, s.steps, min(s.records, s.steps) + 1))
    factor = FACTORS[s.loss](len(training))
    ahead = predict(network, training, times, None if flow else s.rate, factor, grid, key)
    return observables, ahead.assign(places.data_vars)


def _plane(training: data.Dataset) -> tuple[np.ndarray, xr.Dataset]:
    """A grid of inputs over the data, and both in units of the constant last column."""
    unit = float(training.inputs[0, -1])
    points = np.asarray(training.inputs[:, :-1], float) / unit
    low, high = points.min(axis=0), points.max(axis=0)
    count = 201 if points.shape[1] == 1 else 41
    lines = [np.linspace(a - 0.1 * (b - a), b + 0.1 * (b - a), count) for a, b in zip(low, high)]
    mesh = np.stack([axis.ravel() for axis in np.meshgrid(*lines)], axis=1)
    grid = unit * np.concatenate([mesh, np.ones((len(mesh), 1))], axis=1)
    told = {
        "grid_places": (("grid", "plane"), mesh), "data_places": (("sample", "plane"), points),
        "data_targets": ("sample", np.asarray(training.targets, float)),
    }  # fmt: skip
    return grid, xr.Dataset(told)


def build(s: Settings, key) -> tuple[list[Shallow], data.Dataset, data.Dataset | None]:
    """The networks before training, the training set, and the test set where one is asked for."""
    training, test = _data(s, named_key(key, "data"))
    networks = [
        Shallow.init(
            named_key(named_key(key, "network"), i), features=training.dimension, width=s.width, scaling=parse_scaling(s.scaling),
            activation=s.activation, weight_std=s.deviation, symmetric=s.symmetric,
        )
        for i in range(s.seeds)
    ]  # fmt: skip
    return networks, training, test


def _data(s: Settings, key) -> tuple[data.Dataset, data.Dataset | None]:
    """The training set, and the test set where one is asked for; both from one draw."""
    if s.data not in GENERATED:
        table = data.uci(s.data.removeprefix("uci:")) if s.data.startswith("uci:") else None
        table = table or data.read_csv(s.data, s.target or None, constant="drop")
        if 0 < s.rows < len(table):
            rows = jax.random.permutation(named_key(key, "rows"), len(table))[: s.rows]
            table = table.take(np.sort(np.asarray(rows)))
        return data.prepare(table).data if s.prepared else table, None
    count = s.samples + s.test_samples
    drawn = {
        "sphere-sines": lambda: data.sphere_sines(key, count, s.features, s.noise),
        "random-labels": lambda: data.random_labels(key, count, s.features),
        "wave-1d": lambda: data.waves(key, count, 1, s.noise),
        "wave-2d": lambda: data.waves(key, count, 2, s.noise),
    }[s.data]()
    training, test = np.split(np.arange(len(drawn)), [s.samples])
    return drawn.take(training), drawn.take(test) if s.test_samples else None


def draw(table: xr.Dataset) -> FigureSpec:
    """Every recorded number over time, one panel each; of a run with `record` = "all" what there is to look at."""
    whole = "limit_spectrum" in table
    panels = everything(table) if whole else _curves(table)
    return FigureSpec(
        "Training",
        panels,
        columns=2 if len(panels) < 6 else 3,
        caption=f"{table.attrs['model']}, {_told(table.attrs['dynamics'])}; {table.attrs['status']}.",
        first=COLOURS if whole else (),
    )


def _told(dynamics: str) -> str:
    """Descent and SGD with their numbers, flow without those of its solver."""
    return dynamics.partition("(")[0] if dynamics.startswith("GradientFlow") else dynamics


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
    """None: whoever asks for a run of their own claims nothing."""
    return ()


EXPERIMENT = Experiment(
    name="train", paper="", title="A shallow network trained on the asked data", figure="",
    settings={
        "smoke": Settings(samples=16, features=8, width=64, steps=50, records=5),
        "default": Settings(),
        "paper": Settings(width=2000, steps=50_000, rate=1.0),
    },
    run=run, draw=draw, claims=claims,
)  # fmt: skip
