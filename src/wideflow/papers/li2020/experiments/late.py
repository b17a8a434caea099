r"""The late law: $L \propto \tau^{-2}$ in stage 2.2 (li2020, Lemma A.6).

Overparametrised networks on the exact population far beyond the plateau, on a log-log scale: the
masses of typical neurons fade like $1/\tau$, so the loss falls like $\tau^{-2}$ or a little faster;
at $m = d$ there are none left and the decay is exponential.

Run:  wideflow run li2020-late
Takes:  default 30 s on two cores, smoke 5 s, paper 5 min
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, HLine, Line, Panel
from ..theorems.stage_two import LateDecay
from .stage_runs import shared, stage_table


@dataclass(frozen=True)
class Settings:
    features: int = 10
    widths: tuple[int, ...] = (10, 40, 100)
    rate: float = 0.25
    time: float = 2000.0
    records: int = 400
    seeds: int = 2


def run(settings: Settings, key, session) -> xr.Dataset:
    tables = [
        stage_table(
            named_key(key, "width", width),
            **shared(settings),
            width=width,
            session=session.within(i, len(settings.widths), f"m = {settings.widths[i]}"),
        )
        for i, width in enumerate(settings.widths)
    ]
    joined = xr.concat(
        [t[["population"]] for t in tables],
        xr.DataArray(list(settings.widths), dims="width", name="width"),
    )
    return joined.assign_attrs(tables[0].attrs)


def _slopes(table: xr.Dataset, width: int) -> np.ndarray:
    time = table.time.values
    curves = table.population.sel(width=width).values
    return np.array(
        [LateDecay()(time, curve, start=0.4 * time[-1]).numbers["slope"] for curve in curves]
    )


def draw(table: xr.Dataset) -> FigureSpec:
    time = table.time.values
    keep = time > 0
    lines = [
        Line(
            time[keep],
            np.maximum(
                table.attrs["features"] * table.population.sel(width=m).isel(seed=i).values[keep],
                1e-16,
            ),
            f"m = {int(m)}",
            group=str(m),
        )
        for m in table.width.values
        for i in range(table.sizes["seed"])
    ]
    late = time[time >= time[-1] / 10]
    anchor = float(table.population.isel(width=-1, step=-1).mean()) * table.attrs["features"]
    law = Line(late, anchor * (late / time[-1]) ** -2, "τ⁻²", dash="dotted")
    floor = HLine(table.attrs["features"] * table.attrs["floor"], "degree-two floor")
    return FigureSpec(
        f"The late law, d = {table.attrs['features']}",
        [
            Panel(
                "Population loss",
                "mean-field time τ",
                "d × loss",
                [*lines, law, floor],
                xscale="log",
                yscale="log",
            )
        ],
        caption="Overparametrised networks decay like τ⁻²; the exactly parametrised one (m = d) "
        "exponentially.",
        columns=1,
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    d = table.attrs["features"]
    statements = []
    for m in table.width.values.tolist():
        if m < 4 * d:
            continue
        slopes = _slopes(table, m)
        statements.append(
            Claim(
                f"m = {m}: slope of log L on log τ at late times (mean)",
                float(slopes.mean()),
                at_least=-3.2,
                at_most=-1.8,
                note="Lemma A.6: −2; −2.1 to −2.5 measured",
            )
        )
    if d in table.width.values:
        last = float(abs(table.population.sel(width=d).isel(step=-1)).max())
        statements.append(
            Claim(
                "m = d: the loss is rounding by the end",
                last,
                at_most=1e-14,
                note="exponential decay; the closed form itself, a difference of numbers of "
                "order one, rounds at about 1e-15",
            )
        )
    return tuple(statements)


EXPERIMENT = Experiment(
    name="li2020-late",
    paper="li2020",
    title="The late law",
    figure="Lemma A.6",
    settings={
        "smoke": Settings(features=8, widths=(8, 32), time=800.0, records=80, seeds=1),
        "default": Settings(),
        "paper": Settings(widths=(10, 40, 200), time=4000.0, records=1000, seeds=3),
    },
    run=run,
    draw=draw,
    claims=claims,
)
