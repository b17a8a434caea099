r"""A staircase is climbed coordinate by coordinate; a parity of as many coordinates is not seen
(abbe2022, Theorem 1 and figure 1).

On $x \sim N(0, I_d)$ a two-layer network in the mean-field scaling learns
$z_1 + z_1z_2 + z_1z_2z_3$ or $z_1z_2z_3$ alone, $z = (x_1, x_2, x_3)$, by one-pass SGD. The
staircase has leap 1: once $z_1$ is found, $z_1z_2$ looks linear in $z_2$, and so on, each after
$O(d)$ samples. The parity has leap 3: its gradient at the start is of order $d^{-1}$, and nothing
happens in the same time. The loss shows the steps: a function that does not depend on $z_2$ and
$z_3$ cannot get below $\frac12(1 + 1)$, one that does not depend on $z_3$ not below $\frac12$.

Run:  wideflow run abbe2022-staircase
"""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from ...._core.activations import activation as as_activation
from ...._core.errors import check_count, check_positive
from ...._core.randomness import named_key
from ....data.multi_index import MultiIndex
from ....dynamics.online_sgd import OnlineSGD
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, HLine, Line, Panel
from ....limits.hermite_order import leap
from ....models.shallow import Shallow
from ....observables.base import test_objective
from ....observables.overlaps import StudentOverlap, TeacherOverlap, weak_recovery_time
from ....observables.risks import mean_squares
from ....training.session import Session
from ....training.train import train

INDICES = 3
FOUND = 0.05  # share of the squared weights that lies along a coordinate; chance gives 1/d
TEST = 8192  # samples behind the loss: a standard error of about 0.03
ONE_STEP = 1.0  # the least loss without z_2 and z_3: half of E (z_1 z_2)^2 + E (z_1 z_2 z_3)^2


def loss(snapshot):
    """On test samples, in the place of the exact loss, which would be an integral in four
    dimensions for every neuron.
    """
    return mean_squares(test_objective(snapshot), snapshot.model) / 2


def shifted_tanh(z):
    """Neither odd nor even, so that all degrees are within reach of a network without biases."""
    return jnp.tanh(z + 0.7)


def staircase(z):
    return z[0] + z[0] * z[1] + z[0] * z[1] * z[2]


def parity(z):
    return z[0] * z[1] * z[2]


TARGETS = {"staircase": staircase, "parity": parity}


@dataclass(frozen=True)
class Settings:
    features: tuple[int, ...] = (100, 200)
    width: int = 32
    output: float = 4.0  # size of the frozen output weights
    start: float = 0.1  # deviation of a weight
    rate: float = 0.2  # times the width
    batch: int = 100
    horizon: float = 16.0  # steps / d
    records: int = 80
    seeds: int = 4

    def __post_init__(self):
        for name in ("width", "batch", "records", "seeds"):
            check_count(name, getattr(self, name))
        for name in ("output", "start", "rate", "horizon"):
            check_positive(name, getattr(self, name))


def run(settings: Settings, key, session: Session) -> xr.Dataset:
    features, targets = settings.features, list(TARGETS)
    times = np.linspace(0.0, settings.horizon, settings.records + 1)
    shape = (len(targets), len(features), settings.seeds, len(times))
    losses, shares = np.full(shape, np.nan), np.full((*shape, INDICES), np.nan)
    jobs = len(targets) * len(features)
    for i, target in enumerate(targets):
        for j, d in enumerate(features):
            part = session.within(i * len(features) + j, jobs, f"{target}, d = {d}")
            losses[i, j], shares[i, j] = _simulate(settings, key, target, d, times, part)
    return xr.Dataset(
        {
            "loss": (("target", "features", "seed", "time"), losses),
            "share": (("target", "features", "seed", "time", "index"), shares),
            "leap": ("target", [leap(TARGETS[target], INDICES)[0] for target in targets]),
        },
        {
            "target": targets,
            "features": list(features),
            "time": times,
            "index": 1 + np.arange(INDICES),
        },
    )


def _simulate(settings: Settings, key, target: str, d: int, times, session):
    width, act = settings.width, as_activation(shifted_tanh)
    # NTK scaling divides outputs by sqrt(K); the output weights make that 1/K, with both signs
    # alike
    output = settings.output * (-1.0) ** np.arange(width) / math.sqrt(width)
    draw = lambda seed: jax.random.normal(named_key(key, "hidden", d, seed), (width, d), float)
    nets = [
        Shallow(settings.start * draw(seed), output, activation=act)
        for seed in range(settings.seeds)
    ]
    population = MultiIndex(TARGETS[target], np.eye(INDICES, d))
    steps = np.round(times * d).astype(int)
    run = train(
        nets,
        population,
        OnlineSGD(settings.rate * width, settings.batch),
        steps=int(steps[-1]),
        every=[int(step) for step in steps],
        record=[loss, TeacherOverlap(), StudentOverlap()],
        test=population.sample(named_key(key, "test", d), TEST),
        key=[named_key(key, "samples", target, d, seed) for seed in range(settings.seeds)],
        session=session,
    )
    M = run.table["teacher_overlap"].transpose("seed", "step", "width", "index").values
    Q = run.table["student_overlap"].transpose("seed", "step", "width", "other_width").values
    shares = np.sum(M**2, axis=2) / np.trace(Q, axis1=2, axis2=3)[..., None]
    return run.table["loss"].transpose("seed", "step").values, shares


def discovery_times(table: xr.Dataset, target: str = "staircase") -> np.ndarray:
    """The time at which each coordinate is found, (features, seed, index); NaN where it is not."""
    share = table["share"].sel(target=target).transpose("features", "seed", "index", "time")
    time = lambda curve: weak_recovery_time(table["time"].values, curve, FOUND)
    return np.apply_along_axis(time, -1, share.values)


def _below(table: xr.Dataset, level: float) -> np.ndarray:
    """The time at which the staircase's loss first lies below the level, (features, seed); infinite
    where it never does.
    """
    loss = table["loss"].sel(target="staircase").transpose("features", "seed", "time").values
    first = table["time"].values[np.argmax(loss < level, axis=-1)]
    return np.where((loss < level).any(axis=-1), first, np.inf)


def draw(table: xr.Dataset) -> FigureSpec:
    largest, times = table.isel(features=-1), table["time"].values
    losses = [
        Line(times, largest["loss"].sel(target=t).mean("seed").values, str(t))
        for t in table["target"].values
    ]
    losses += [HLine(ONE_STEP, "without z₂ and z₃"), HLine(ONE_STEP / 2, "without z₃", "dotted")]
    title = f"Loss at d = {int(largest['features'])}"
    panels = [Panel(title, "τ = steps / d", "half the mean of squares", losses)]
    for target in table["target"].values:
        curves = [
            Line(
                times,
                largest["share"].sel(target=target, index=r).mean("seed").values,
                f"coordinate {int(r)}",
            )
            for r in table["index"].values
        ]
        panels.append(
            Panel(
                f"Weights along a coordinate, {target}",
                "τ = steps / d",
                "share of the squares",
                (*curves, HLine(FOUND, "found")),
                yscale="log",
            )
        )
    return FigureSpec("Staircase and parity", panels)


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    times = discovery_times(table)
    in_time = np.isfinite(discovery_times(table, "parity"))
    ordered = np.all(np.diff(times, axis=-1) > 0, axis=-1)
    flat = table["loss"].sel(target="parity")
    first = table["loss"].sel(target="staircase").isel(time=0)
    # a tenth below the bound, for the test samples' error and the share that counts as found
    margin = np.min(_below(table, 0.9 * ONE_STEP) - times[..., 1])
    last = np.mean(times[..., -1], axis=1)
    return (
        Claim("leaps of staircase and parity", holds=table["leap"].values.tolist() == [1, INDICES]),
        Claim(
            "first loss of the staircase: half the variance of three terms",
            float(first.mean()),
            expected=1.5,
            tolerance=0.1,
        ),
        Claim(
            "staircase: share of runs that find the coordinates in the order of its leap",
            float(ordered.mean()),
            at_least=0.9,
        ),
        Claim(
            "staircase: least time from finding the second coordinate to a loss that needs it",
            float(margin),
            at_least=0.0,
        ),
        Claim(
            "staircase: share of runs whose loss gets below what the first coordinate alone allows",
            float((_below(table, 0.9 * ONE_STEP) < np.inf).mean()),
            at_least=0.9,
        ),
        Claim(
            "staircase: time to the third coordinate in steps / d, largest over smallest "
            "dimension's",
            float(last[-1] / last[0]),
            expected=1.0,
            tolerance=0.4,
        ),
        Claim(
            "parity: share of coordinates found in the same time",
            float(in_time.mean()),
            at_most=0.1,
        ),
        Claim(
            "parity: last loss over the first",
            float((flat.isel(time=-1) / flat.isel(time=0)).mean()),
            at_least=0.95,
            at_most=1.1,
        ),
    )


EXPERIMENT = Experiment(
    name="abbe2022-staircase",
    paper="abbe2022",
    title="A staircase is climbed step by step, a parity is not seen",
    figure="Theorem 1, Figure 1",
    settings={
        "smoke": Settings(features=(20,), width=8, batch=20, horizon=1.0, records=4, seeds=2),
        "default": Settings(),
        "paper": Settings(features=(100, 200, 400), width=64, horizon=24.0, seeds=10),
    },
    run=run,
    draw=draw,
    claims=claims,
    claims_from_size="default",
)
