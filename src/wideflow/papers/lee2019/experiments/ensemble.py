r"""A hundred trained wide networks on the predicted mean and covariance, over time (lee2019, Figure
2 and equations 14 to 16).

Networks from independent starts descend on the half sum of squares, in the NTK parametrisation; at
several times the mean and the covariance of their outputs at test inputs are held against the
Gaussian that `limits.ensemble` predicts from both kernels, entry by entry, in standard errors of an
ensemble of this size.

Inputs lie on a sphere of several dimensions, as images do, so that the spread at a test input stays
comparable with that at the start. Where training inputs surround a test input closely the predicted
variance goes to zero, while a network of finite width interpolates with its own random kernel:
there a wider network is needed for the same agreement. (On a circle with 8 training inputs a
prediction of 3e-4 met 1e-3 at width 256, for the networks' exact linearisations as well.)

Run:  wideflow run kernels-ensemble            Takes:  default about 1 min of one core
"""

import math
from dataclasses import dataclass

import equinox as eqx
import jax
import numpy as np
import scipy.special
import xarray as xr

from ...._core.architecture import mlp
from ...._core.errors import check_count
from ...._core.precision import double
from ...._core.randomness import named_key
from ....data.dataset import Dataset
from ....dynamics.descent import GradientDescent
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, Line, Panel
from ....limits.kernels import kernels
from ....limits.predict import ensemble
from ....models.deep import Deep
from ....observables.base import AbstractObservable, SampleSnapshot, test_objective
from ....training.session import Session
from ....training.train import train

FALSE_ALARMS = 1e-3  # the share of ensembles that would fail a claim though the prediction is right


@dataclass(frozen=True)
class Settings:
    seeds: int = 100  # trained networks
    together: int = 10  # of them in one program
    width: int = 512
    depth: int = 2
    activation: str = "erf"
    weight_std: float = 1.5
    bias_std: float = 0.1
    features: int = 10
    samples: int = 16
    tests: int = 8
    steps: tuple[int, ...] = (0, 2, 8, 32, 128)

    def __post_init__(self):
        for name in ("width", "depth", "features", "samples", "tests", "together"):
            check_count(name, getattr(self, name))
        check_count("seeds", self.seeds, least=3)
        if self.steps[0] != 0 or np.any(np.diff(self.steps) <= 0):
            raise ValueError(f"`steps` must begin with 0 and increase, got {self.steps}.")


class TestOutputs(AbstractObservable):
    """What a network says at the test inputs."""

    name: str = eqx.field(static=True, default="test_outputs")
    label: str = eqx.field(static=True, default="output")
    axes: tuple[str, ...] = eqx.field(static=True, default=("test",))

    def __call__(self, snapshot: SampleSnapshot):
        return snapshot.model.respond(test_objective(snapshot).features)


@double
def run(settings: Settings, key, session: Session) -> xr.Dataset:
    data, test = _data(settings, key)
    chain = mlp(
        settings.depth,
        settings.width,
        settings.activation,
        weight_std=settings.weight_std,
        bias_std=settings.bias_std,
    )
    k = kernels(chain)
    train_kernels, cross = k.both(data.inputs), k.both(test.inputs, data.inputs)
    rate = float(1 / np.linalg.eigvalsh(train_kernels.ntk)[-1])  # half of the largest stable one
    times = rate * np.array(settings.steps, float)
    predicted = ensemble(
        train_kernels, data.targets, times, cross=cross, test_nngp=k.nngp(test.inputs), rate=rate
    )
    outputs = []
    for first in range(0, settings.seeds, settings.together):
        members = range(first, min(first + settings.together, settings.seeds))
        part = session.within(first, settings.seeds, f"network {first}", weight=len(members))
        nets = [Deep.init(named_key(key, "network", i), chain, settings.features) for i in members]
        path = train(
            nets,
            data,
            GradientDescent(rate),
            steps=settings.steps[-1],
            every=settings.steps,
            record=[TestOutputs()],
            test=test,
            session=part,
        )
        outputs.append(path.table["test_outputs"].transpose("seed", "step", "test").values)
    return _table(np.concatenate(outputs), predicted, times, rate)


def _data(settings: Settings, key) -> tuple[Dataset, Dataset]:
    """Inputs on the sphere of radius sqrt(d), labelled by the sign of a product: no linear function
    fits them.
    """
    count, d = settings.samples + settings.tests, settings.features
    x = np.asarray(jax.random.normal(named_key(key, "inputs"), (count, d), float))
    x = math.sqrt(d) * x / np.linalg.norm(x, axis=1, keepdims=True)
    y, cut = np.sign(x[:, 0] * x[:, -1]), settings.samples
    return Dataset(x[:cut], y[:cut], "signs"), Dataset(x[cut:], y[cut:], "signs, test")


def _table(outputs: np.ndarray, predicted, times: np.ndarray, rate: float) -> xr.Dataset:
    """Mean and covariance of outputs (network, time, test) beside the predicted ones."""
    away = outputs - outputs.mean(0)
    covariance = np.einsum("stx,stz->txz", away, away) / (len(outputs) - 1)
    one, two = ("time", "test"), ("time", "test", "other")
    return xr.Dataset(
        {
            "mean": (one, outputs.mean(0)),
            "covariance": (two, covariance),
            "predicted_mean": (one, np.asarray(predicted.mean)),
            "predicted_covariance": (two, np.asarray(predicted.covariance)),
        },
        {"time": times},
        {"networks": len(outputs), "rate": rate},
    )


def deviations(table: xr.Dataset) -> tuple[float, float]:
    r"""The largest distances of mean and covariance from the prediction, in standard errors of $N$
    Gaussian networks.

    These are $\sqrt{C_{xx}/N}$ for the mean and $\sqrt{(C_{xx}C_{zz} + C_{xz}^2)/(N - 1)}$ for an
    entry of the covariance.
    """
    networks, C = table.attrs["networks"], table["predicted_covariance"].values
    variance = np.diagonal(C, axis1=1, axis2=2)
    means = (table["mean"].values - table["predicted_mean"].values) / np.sqrt(variance / networks)
    errors = np.sqrt((variance[:, :, None] * variance[:, None, :] + C**2) / (networks - 1))
    spreads = (table["covariance"].values - C) / errors
    return float(np.abs(means).max()), float(np.abs(spreads).max())


def bounds(table: xr.Dataset) -> tuple[float, float]:
    r"""Deviations that all entries together exceed in one of a thousand ensembles (Bonferroni).

    A mean is normal. A variance is $\chi^2_{N-1}/(N-1)$ in its own units, whose upper tail is the
    heaviest among covariances.
    """
    times, tests = table.sizes["time"], table.sizes["test"]
    freedom = table.attrs["networks"] - 1
    mean = -scipy.special.ndtri(FALSE_ALARMS / (2 * times * tests))
    entries = times * tests * (tests + 1) / 2
    top = scipy.special.chdtri(freedom, FALSE_ALARMS / (2 * entries))
    return float(mean), float((top / freedom - 1) / np.sqrt(2 / freedom))


def draw(table: xr.Dataset) -> FigureSpec:
    panels, times = [], table["time"].values
    shown = np.maximum(times, times[1] / 4)  # time 0 on a log axis
    for x in range(min(table.sizes["test"], 4)):
        at = table.isel(test=x, other=x)
        marks = []
        for label, prefix in (("networks", ""), ("predicted", "predicted_")):
            mean, std = at[f"{prefix}mean"].values, np.sqrt(at[f"{prefix}covariance"].values)
            dash = "solid" if prefix else "dashed"
            marks.append(
                Line(shown, mean, label, low=mean - std, high=mean + std, dash=dash, group=label)
            )
        panels.append(Panel(f"test input {x + 1}", "time", "output", marks, "log"))
    caption = (
        f"Mean and standard deviation of {table.attrs['networks']} trained networks and of the "
        "prediction; the leftmost time is 0."
    )
    return FigureSpec("Trained networks on their prediction", panels, columns=2, caption=caption)


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    (mean, spread), (mean_bound, spread_bound) = deviations(table), bounds(table)
    return (
        Claim(
            "mean of the networks: largest distance from the prediction, in standard errors",
            mean,
            at_most=mean_bound,
        ),
        Claim(
            "covariance of the networks: largest distance from the prediction, in standard errors",
            spread,
            at_most=spread_bound,
        ),
    )


EXPERIMENT = Experiment(
    name="kernels-ensemble",
    paper="lee2019",
    title="Trained networks on the predicted mean and spread",
    figure="Figure 2",
    settings={
        "smoke": Settings(seeds=4, together=4, width=16, depth=1, samples=4, tests=3, steps=(0, 5)),
        "default": Settings(),
        "paper": Settings(width=2048, samples=32, tests=12),
    },
    run=run,
    draw=draw,
    claims=claims,
    claims_from_size="default",
)
