r"""A finite network follows its infinite-width tracers, with an error that falls like $1/m$ (li2020, section 4, Lemmas B.1-B.3).

A symmetric cloud stands for infinite width. The initial neurons of a finite network move twice: as that network, and as passive tracers in
the cloud's field; $\xi_i$ is the difference. Predicted and seen: mean $\|\xi\|^2 \propto 1/m$ at a fixed time.

Run:  wideflow run li2020-coupling           Takes:  default 1 min on two cores, smoke 5 s, paper 15 min
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, Line, Panel
from ....models.homogeneous import Homogeneous
from ..limits.symmetric_cloud import SymmetricCloud, coupling
from ..theorems.propagation import ErrorPropagation


@dataclass(frozen=True)
class Settings:
    features: int = 8
    particles: int = 24
    widths: tuple[int, ...] = (32, 128, 512)
    rate: float = 0.25
    time: float = 10.0
    records: int = 20
    seeds: int = 2


def run(settings: Settings, key, session) -> xr.Dataset:
    a = np.full(settings.features, 1 / settings.features)
    steps = round(settings.time / settings.rate)
    every = max(1, steps // settings.records)
    mean, largest = [], []
    total = settings.seeds * len(settings.widths)
    for i, width in enumerate(settings.widths):
        rows = []
        for seed in range(settings.seeds):
            session.progress(i * settings.seeds + seed, total, f"m = {width}")
            cloud = SymmetricCloud.init(
                named_key(key, "cloud", seed),
                features=settings.features,
                particles=settings.particles,
            )
            net = Homogeneous.init(
                named_key(key, "net", width, seed), features=settings.features, width=width
            )
            rows.append(coupling(net.weights, cloud, a, settings.rate, steps, every=every))
        mean.append([r.mean for r in rows])
        largest.append([r.largest for r in rows])
    axes = ("width", "seed", "record")
    return xr.Dataset(
        {
            "mean_square": (axes, np.array(mean), {"label": "mean ‖ξ‖²"}),
            "largest_square": (axes, np.array(largest), {"label": "max ‖ξ‖²"}),
        },
        {
            "width": list(settings.widths),
            "seed": np.arange(settings.seeds),
            "time": ("record", rows[0].times),
        },
        {
            "features": settings.features,
            "particles": settings.particles,
            "loss": "population mean of squares",
        },
    )


def draw(table: xr.Dataset) -> FigureSpec:
    m, end = table.width.values.astype(float), table.isel(record=-1)
    mean = end.mean_square.mean("seed").values
    growth = [
        Line(table.time.values[1:], table.mean_square.sel(width=w).mean("seed").values[1:], f"m = {int(w)}") for w in table.width.values
    ]  # fmt: skip
    sizes = [
        Line(m, mean, "mean ‖ξ‖²", end.mean_square.min("seed").values, end.mean_square.max("seed").values),
        Line(m, end.largest_square.mean("seed").values, "max ‖ξ‖²"), Line(m, mean[0] * m[0] / m, "1/m", dash="dotted"),
    ]  # fmt: skip
    return FigureSpec(
        f"Finite networks against infinite width, d = {table.attrs['features']}",
        [
            Panel("Error along the run", "mean-field time τ", "mean ‖ξ‖²", growth, yscale="log"),
            Panel(
                "Error against the width",
                "width m",
                f"at τ = {table.time.values[-1]:g}",
                sizes,
                xscale="log",
                yscale="log",
            ),
        ],
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    end = table.mean_square.isel(record=-1).mean("seed").values
    verdict = ErrorPropagation()(table.width.values, end)
    return (
        Claim(
            "slope of log mean ‖ξ‖² on log m",
            verdict.numbers["slope"],
            expected=-1.0,
            tolerance=0.35,
        ),
        Claim(
            "the error grows from zero",
            float(table.mean_square.isel(record=0).max()),
            at_most=1e-30,
        ),
    )


EXPERIMENT = Experiment(
    name="li2020-coupling", paper="li2020", title="Finite networks against infinite width", figure="Section 4, Lemmas B.1-B.3",
    settings={
        "smoke": Settings(features=5, particles=24, widths=(16, 256), time=5.0, records=5, seeds=4),
        "default": Settings(),
        "paper": Settings(particles=48, time=30.0, seeds=6),
    },
    run=run, draw=draw, claims=claims,
)  # fmt: skip
