"""The output factor alpha makes any network lazy, at any width (chizat2019, section 1 and Figure
2).

A network of fixed width is trained as alpha (f - f_0) at 1/alpha^2 times the rate, which keeps its
tangent kernel, beside its tangent model (`taylor` of order 1). As alpha grows the outputs' path
comes to the tangent model's like 1/alpha, weights move like 1/alpha, and the test error becomes
that of the tangent model; for small alpha features are learnt. The teacher is a narrow network, as
in the paper's Figure 2.

Run:  wideflow run chizat2019-laziness            Takes:  default 15 s of one core
"""

from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr

from ...._core.architecture import mlp
from ...._core.errors import check_count, check_positive
from ...._core.randomness import named_key
from ....data.dataset import Dataset
from ....dynamics.descent import GradientDescent
from ....dynamics.losses import HalfMeanSquares
from ....experiments.base import Claim, Experiment
from ....experiments.slopes import slope
from ....experiments.spread import deviation
from ....figures import FigureSpec, HLine, Line, Mark, Panel
from ....models.deep import Deep
from ....models.rescaled import rescaled
from ....models.taylor import taylor
from ....observables.laziness import LinearisationGap
from ....observables.movement import ParameterMovement
from ....observables.risks import TestRisk
from ....training.session import Session
from ....training.train import train


@dataclass(frozen=True)
class Settings:
    alphas: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
    samples: int = 100
    tests: int = 400
    features: int = 10
    teacher: int = 3
    width: int = 64
    depth: int = 1
    activation: str = "tanh"
    rate: float = 0.5
    steps: int = 4000
    seeds: int = 3

    def __post_init__(self):
        for name in ("samples", "tests", "features", "teacher", "width", "depth", "steps", "seeds"):
            check_count(name, getattr(self, name))
        check_positive("rate", self.rate)


def run(settings: Settings, key, session: Session) -> xr.Dataset:
    parts = ("linearisation_gap", "parameter_movement", "test_risk", "distance")
    values = {name: np.full((settings.seeds, len(settings.alphas)), np.nan) for name in parts}
    tangent = np.full(settings.seeds, np.nan)
    for seed in range(settings.seeds):
        rescaled_part = session.within(2 * seed, 2 * settings.seeds, f"seed {seed}")
        tangent_part = session.within(2 * seed + 1, 2 * settings.seeds, f"seed {seed}, tangent")
        training, test = _data(settings, named_key(key, seed))
        architecture = mlp(settings.depth, settings.width, settings.activation)
        net = Deep.init(named_key(key, seed, "network"), architecture, settings.features)
        moves = [GradientDescent(settings.rate)] * len(settings.alphas)
        nets = [rescaled(net, alpha=alpha, centred=True) for alpha in settings.alphas]
        run = train(
            nets,
            training,
            moves,
            steps=settings.steps,
            every=settings.steps,
            test=test,
            loss=HalfMeanSquares(),
            record=[LinearisationGap(), ParameterMovement(), TestRisk()],
            axis="alpha",
            session=rescaled_part,
        )
        lazy = train(
            taylor(rescaled(net, alpha=1.0, centred=True)),
            training,
            moves[0],
            steps=settings.steps,
            every=settings.steps,
            test=test,
            loss=HalfMeanSquares(),
            record=[TestRisk()],
            session=tangent_part,
        )
        tangent[seed] = float(lazy.table["test_risk"][-1])
        limit = np.asarray(lazy.model.outputs(test.inputs))
        for name in parts[:-1]:
            values[name][seed] = run.table[name].values[:, -1]
        for k, model in enumerate(run.model):
            away = np.asarray(model.outputs(test.inputs)) - limit
            values["distance"][seed, k] = np.sqrt(np.mean(away**2))
    axes = ("seed", "alpha")
    return xr.Dataset(
        {name: (axes, value) for name, value in values.items()}
        | {"tangent_risk": ("seed", tangent)},
        {"seed": np.arange(settings.seeds), "alpha": list(settings.alphas)},
        {"rate": settings.rate, "steps": settings.steps, "width": settings.width},
    )


def _data(settings: Settings, key) -> tuple[Dataset, Dataset]:
    """Normal inputs on the sphere of radius sqrt(d), labelled by a narrow teacher of unit output
    size.
    """
    count = settings.samples + settings.tests
    x = np.asarray(jax.random.normal(named_key(key, "inputs"), (count, settings.features), float))
    x = np.sqrt(settings.features) * x / np.linalg.norm(x, axis=1, keepdims=True)
    teacher = Deep.init(
        named_key(key, "teacher"),
        mlp(1, settings.teacher, settings.activation, weight_std=2.0),
        settings.features,
    )
    y = np.asarray(teacher.outputs(x))
    y = y / np.sqrt(np.mean(y**2))
    cut = settings.samples
    return Dataset(x[:cut], y[:cut], "teacher"), Dataset(x[cut:], y[cut:], "teacher, test")


def lazy_slope(table: xr.Dataset, name: str, largest: int = 3) -> float:
    """Of the mean over seeds against alpha, over the largest few, on log-log axes."""
    mean = table[name].mean("seed").isel(alpha=slice(-largest, None))
    return slope(mean["alpha"], mean)


def draw(table: xr.Dataset) -> FigureSpec:
    alpha = table["alpha"].values
    mean, spread = table.mean("seed"), deviation(table)
    panels = []
    for name, title, axis in (
        ("linearisation_gap", "Share of the change that first order misses", "linearisation gap"),
        ("distance", "Distance to the tangent model", "root mean square on test inputs"),
        ("test_risk", "Test error", "mean of squares"),
    ):
        low, high = (mean[name] - spread[name]).values, (mean[name] + spread[name]).values
        marks: list[Mark] = [
            Line(alpha, mean[name].values, low=np.maximum(low, mean[name].values / 10), high=high)
        ]
        if name == "test_risk":
            marks.append(HLine(float(mean["tangent_risk"]), "tangent model"))
        panels.append(Panel(title, "output factor α", axis, marks, "log", "log"))
    return FigureSpec(
        "From rich to lazy at one width",
        panels,
        columns=3,
        caption="Mean over seeds with standard deviations.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    mean = table.mean("seed")
    risk = mean["test_risk"].values
    return (
        Claim(
            "distance to the tangent model: slope in alpha",
            lazy_slope(table, "distance"),
            expected=-1.0,
            tolerance=0.1,
        ),
        Claim(
            "relative movement of the weights: slope in alpha",
            lazy_slope(table, "parameter_movement"),
            expected=-1.0,
            tolerance=0.1,
        ),
        Claim(
            "linearisation gap: slope in alpha",
            lazy_slope(table, "linearisation_gap"),
            expected=-1.0,
            tolerance=0.1,
        ),
        Claim(
            "test error at the largest alpha over the tangent model's",
            float(risk[-1] / mean["tangent_risk"]),
            expected=1.0,
            tolerance=0.05,
        ),
        Claim(
            "best test error over the tangent model's: features help",
            float(risk.min() / mean["tangent_risk"]),
            at_most=0.8,
        ),
    )


EXPERIMENT = Experiment(
    name="chizat2019-laziness",
    paper="chizat2019",
    title="Laziness by the output factor",
    figure="Figure 2 and Theorem 2.2",
    settings={
        "smoke": Settings(
            alphas=(1.0, 10.0, 100.0), samples=10, tests=20, width=8, steps=40, seeds=1
        ),
        "default": Settings(),
        "paper": Settings(
            samples=1000,
            tests=4000,
            features=100,
            width=1000,
            steps=20_000,
            seeds=10,
            activation="relu",
        ),
    },
    run=run,
    draw=draw,
    claims=claims,
    claims_from_size="default",
)
