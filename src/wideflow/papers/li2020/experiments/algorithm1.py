r"""Algorithm 1: truncated descent in two stages, its variants and its schedules (li2020, Algorithm 1, Theorem 1.1).

Caps $1/\lambda_0$ and $1/\lambda_1$ with both threshold rules, a given and a detected switch, three learners. At these sizes truncation is barely
active and changes nothing of substance; the absolute-value learner ends at 1 to 3 per cent of the degree-two floor, ReLU learners
(slower tail) at 4 to 6. The literal `relu1` runs at half speed on a mass of two.

Run:  wideflow run li2020-algorithm1         Takes:  default 30 s on two cores, smoke 10 s, paper 3 min
"""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, HLine, Line, Panel
from ..theorems.main import FiniteConvergence
from ..truncated_descent import LossBelow, TruncatedDescent
from .stage_runs import stage_table

VARIANTS = ("1/λ", "1/(2λ)", "detected switch", "relu2", "relu1")


@dataclass(frozen=True)
class Settings:
    features: int = 16
    width: int = 64
    cap: float = 3.0
    final_cap: float = 50.0
    rate: float = 0.25
    records: int = 150
    seeds: int = 2

    @property
    def first(self) -> float:
        """Length of stage 1: 1.7 d²/ln d."""
        return 1.7 * self.features**2 / math.log(self.features)

    @property
    def second(self) -> float:
        """Length of stage 2: 6 d ln d."""
        return 6 * self.features * math.log(self.features)


def run(settings: Settings, key, session) -> xr.Dataset:
    switch = math.ceil(settings.first / settings.rate)
    tables = []
    for i, name in enumerate(VARIANTS):
        relu = name in ("relu1", "relu2")
        slow = 2.0 if name == "relu1" else 1.0  # relu1 is relu2 at half speed on W / sqrt 2
        how = TruncatedDescent(
            settings.rate, lambda_0=1 / (slow * settings.cap), lambda_1=1 / (slow * settings.final_cap),
            switch=LossBelow() if name == "detected switch" else int(slow) * switch,
            threshold="1/(2 lambda)" if name == "1/(2λ)" else "1/lambda",
        )  # fmt: skip
        table = stage_table(
            named_key(key, "start"), features=settings.features, width=settings.width, rate=settings.rate,
            time=slow * (settings.first + settings.second), records=settings.records, seeds=settings.seeds,
            activation="relu" if relu else "abs", factor=2.0 if name == "relu2" else 1.0, dynamics=how,
            scale=math.sqrt(2) if name == "relu1" else 1.0,
            session=session.within(i, len(VARIANTS), VARIANTS[i]),
        )  # fmt: skip
        part = table[["population", "largest_neuron", "covered_directions"]]
        tables.append(part.assign_coords(step=part.step / slow, time=part.time / slow))
    shortest = min(t.sizes["step"] for t in tables)
    grid = tables[0].isel(step=slice(0, shortest))
    aligned = [
        t.isel(step=np.linspace(0, t.sizes["step"] - 1, shortest).round().astype(int))
        for t in tables
    ]
    joined = xr.concat(
        [t.assign_coords(step=grid.step, time=grid.time) for t in aligned], xr.DataArray(list(VARIANTS), dims="setting", name="setting")
    )  # fmt: skip
    return joined.assign_attrs(table.attrs | {"first": settings.first, "cap": settings.cap})


def draw(table: xr.Dataset) -> FigureSpec:
    d, t = table.attrs["features"], table.time.values
    lines = [
        Line(t, d * table.population.sel(setting=n).median("seed").values, str(n))
        for n in table.setting.values
    ]
    sizes = [
        Line(t, table.largest_neuron.sel(setting=n).median("seed").values, str(n))
        for n in table.setting.values
    ]
    return FigureSpec(
        f"Algorithm 1, d = {d}, m = {table.attrs['width']}",
        [
            Panel("Population loss", "mean-field time τ (relu1: τ/2)", "d × loss", [*lines, HLine(d * table.attrs["floor"], "degree-two floor")], yscale="log"),
            Panel("Largest neuron", "mean-field time τ (relu1: τ/2)", "max ‖w‖²", [*sizes, HLine(table.attrs["cap"], "cap of stage 1")]),
        ],
    )  # fmt: skip


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    d, floor = table.attrs["features"], table.attrs["floor"]
    made = []
    for name in table.setting.values.tolist():
        last = float(table.population.sel(setting=name).isel(step=-1).max())
        ratio = FiniteConvergence()(last, np.full(d, 1 / d)).numbers["ratio"]
        relu = name.startswith("relu")
        note = (
            "ReLU learners have a slower tail: the first-order part couples opposite neurons"
            if relu
            else ""
        )
        made.append(
            Claim(
                f"Theorem 1.1, {name}: loss over the floor at the end (largest)",
                ratio,
                at_most=0.15 if relu else 0.05,
                note=note,
            )
        )
    after = table.population.isel(
        step=int(np.argmin(np.abs(table.time.values - table.attrs["first"])))
    )
    made.append(
        Claim(
            "after stage 1 the loss is about half the floor (abs, 1/λ, mean)",
            float(after.sel(setting="1/λ").mean()) / floor,
            at_least=0.15,
            at_most=0.9,
        )
    )
    same = table.population.sel(setting=["relu1", "relu2"]).isel(step=-1).values
    made.append(
        Claim(
            "relu1 at twice the time is relu2 (largest relative difference at the end)",
            float(np.abs(same[0] / same[1] - 1).max()),
            at_most=0.05,
        )
    )
    return tuple(made)


EXPERIMENT = Experiment(
    name="li2020-algorithm1", paper="li2020", title="Truncated descent in two stages", figure="Algorithm 1",
    settings={
        "smoke": Settings(features=8, width=32, cap=3.0, records=40, seeds=1),
        "default": Settings(),
        "paper": Settings(features=30, width=100, cap=2.5, records=300, seeds=3),
    },
    run=run, draw=draw, claims=claims,
)  # fmt: skip
