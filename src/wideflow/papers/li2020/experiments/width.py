r"""How width shortens the plateau, and that a narrow network still converges (li2020, sections 1 and 4; Claim 2.1).

Exact population. The time to half the floor falls from $m = d$ to $m \gg d$ and levels off at its infinite-width value; at time
zero the loss exceeds the Gaussian cloud's by exactly $(1 + 2/d - d\mu_d^2)/m$ on average (Claim 2.1).

Run:  wideflow run li2020-width              Takes:  default 1 min on two cores, smoke 5 s, paper (m to 1000) 1 h
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, HLine, Line, Panel, Points
from ..limits.gaussian_cloud import gaussian_cloud_loss, width_excess
from .stage_runs import median, run_events, stage_table


@dataclass(frozen=True)
class Settings:
    features: int = 20
    widths: tuple[int, ...] = (20, 40, 80, 160)
    rate: float = 0.25
    time: float = 1400.0
    records: int = 250
    seeds: int = 4


def run(settings: Settings, key, session) -> xr.Dataset:
    d, halves, starts, ends, found = settings.features, [], [], [], []
    for i, width in enumerate(settings.widths):
        table = stage_table(
            named_key(key, "width", width), features=d, width=width, rate=settings.rate, time=settings.time,
            records=settings.records, seeds=settings.seeds, session=session.within(i, len(settings.widths), f"m = {settings.widths[i]}"),
        )  # fmt: skip
        halves.append(run_events(table)["T2"])
        starts.append(table.population.isel(step=0).values)
        ends.append(table.population.isel(step=-1).values)
        found.append(table.covered_directions.isel(step=-1).values)
    axes = ("width", "seed")
    return xr.Dataset(
        {
            "half_time": (axes, np.array(halves), {"label": "τ at half the floor"}),
            "start": (axes, np.array(starts), {"label": "population loss at time 0"}),
            "end": (axes, np.array(ends), {"label": "population loss at the end"}),
            "covered_directions": (axes, np.array(found), {"label": "directions found"}),
            "predicted_start": ("width", [float(gaussian_cloud_loss(np.full(d, 1 / d))) + width_excess(d, m) for m in settings.widths]),
        },
        {"width": list(settings.widths), "seed": np.arange(settings.seeds)},
        {"features": d, "loss": "population mean of squares", "limit_start": float(gaussian_cloud_loss(np.full(d, 1 / d))), "floor": table.attrs["floor"]},
    )  # fmt: skip


def draw(table: xr.Dataset) -> FigureSpec:
    m, d = table.width.values, table.attrs["features"]
    every = np.repeat(m, table.sizes["seed"])
    return FigureSpec(
        f"Width and the plateau, d = {d}",
        [
            Panel(
                "Length of the plateau", "width m", "τ at half the floor",
                [Points(every, table.half_time.values.ravel(), "each seed"), Line(m, [median(row) for row in table.half_time.values], "median")], xscale="log",
            ),
            Panel(
                "Loss at time zero (Claim 2.1)", "width m", "d × loss",
                [Points(every, d * table.start.values.ravel(), "each seed"), Line(m, d * table.predicted_start.values, "L∞ + (1 + 2/d − dμ²)/m"), HLine(d * table.attrs["limit_start"], "infinite width")],
                xscale="log", yscale="log",
            ),
        ],
    )  # fmt: skip


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    halves = np.array([median(row) for row in table.half_time.values])
    error = table.start.std("seed", ddof=1) / np.sqrt(table.sizes["seed"])
    deviation = float((abs(table.start.mean("seed") - table.predicted_start) / error).max())
    d = table.attrs["features"]
    return (
        Claim("the widest network leaves the plateau first (ratio of T₂, widest to narrowest)", float(halves[-1] / halves[0]), at_most=0.9),
        Claim("every width ends below a twentieth of the floor (largest ratio)", float(table.end.max()) / table.attrs["floor"], at_most=0.05),
        Claim("every width finds all directions, also m = d", float(table.covered_directions.min()), at_least=float(d)),
        Claim("mean loss at time 0 minus prediction, in standard errors (largest)", deviation, at_most=5.0, note="Claim 2.1 with its exact constant"),
    )  # fmt: skip


EXPERIMENT = Experiment(
    name="li2020-width", paper="li2020", title="Width and the plateau", figure="Sections 1 and 4, Claim 2.1",
    settings={
        "smoke": Settings(features=8, widths=(8, 64), time=250.0, records=60, seeds=3),
        "default": Settings(),
        "paper": Settings(features=30, widths=(30, 60, 100, 120, 300, 1000), time=1500.0, records=500, seeds=5),
    },
    run=run, draw=draw, claims=claims,
)  # fmt: skip
