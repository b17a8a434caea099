r"""Stage-wise convergence on the exact population (li2020, Figure 1).

$d = 30$, $m = 100$, absolute-value learner, $a_i = 1/d$, exact population gradient at mean-field rate 0.25. Orders 0 and 2
settle within $\tau \approx d$, a long plateau follows, then all higher orders fall together while neurons align with the
target's directions. The figure's axes fit $d^2c_k\ell_k$ (the un-normalised target), which is what is drawn.

Run:  wideflow run li2020-figure1            Takes:  default 10 s on two cores, smoke 3 s, paper (92 seeds) 3 min
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, HLine, Line, Panel, VLine
from .stage_runs import (
    EVENT_LABELS,
    median,
    order_panel,
    run_events,
    scaled_orders,
    stage_table,
    value_at,
)


@dataclass(frozen=True)
class Settings:
    features: int = 30
    width: int = 100
    rate: float = 0.25
    time: float = 1000.0
    records: int = 400
    seeds: int = 2


def run(settings: Settings, key, session) -> xr.Dataset:
    return stage_table(
        key, features=settings.features, width=settings.width, rate=settings.rate, time=settings.time,
        records=settings.records, seeds=settings.seeds, session=session.within(0, 1.0, "descent"),
    )  # fmt: skip


def draw(table: xr.Dataset) -> FigureSpec:
    d, floor, time = table.attrs["features"], table.attrs["floor"], table.time.values
    events = {name: median(values) for name, values in run_events(table).items()}
    marks = [
        VLine(t, EVENT_LABELS[n]) for n, t in events.items() if n in EVENT_LABELS and np.isfinite(t)
    ]
    losses = [
        Line(time, d * table.population.isel(seed=i).values, "d × loss", group="loss")
        for i in range(table.sizes["seed"])
    ]
    counts = [
        Line(time, table.basis_neurons.median("seed").values, "basis-like neurons"),
        Line(time, table.covered_directions.median("seed").values, "directions found"),
    ]
    return FigureSpec(
        f"Tensor stages on the exact population: d = {d}, m = {table.attrs['width']}",
        [
            order_panel(table, "Loss by tensor order (one seed)"),
            Panel(
                "Population loss", "mean-field time τ", "d × loss",
                [*losses, HLine(d * floor, "degree-two floor"), *marks], yscale="log",
            ),
            Panel("Neurons", "mean-field time τ", "count", [*counts, *marks]),
            Panel(
                "Largest neuron", "mean-field time τ", "max ‖w‖²",
                [Line(time, table.largest_neuron.median("seed").values, "max ‖w‖²"), *marks],
            ),
        ],
        caption="Orders 0 and 2 settle first, then a long plateau, then all higher orders fall. Vertical lines are detected events.",
    )  # fmt: skip


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    d, m, floor = (table.attrs[name] for name in ("features", "width", "floor"))
    events = {name: median(values) for name, values in run_events(table).items()}
    orders, scaled, end = table.order_losses, scaled_orders(table), table.isel(step=-1)
    warm = table.time.values >= 5
    ordered = (orders.sel(order=0) < orders.sel(order=2)).values[:, warm].all()
    settled = value_at(table, scaled, 2.5 * events["T1"])
    both_first = events["T1"] < events["T2"] < events["T3"]
    made = [
        Claim("after the warm-up (τ ≥ 5) the order-0 loss stays below the order-2 loss, in every seed", holds=bool(ordered)),
        Claim("the stages come in order: order 2 settles, half the floor, a tenth of it", holds=bool(both_first)),
        Claim("on the plateau order 2 is far below order 4 (largest ratio over seeds)", float((settled[:, 1] / settled[:, 2]).max()), at_most=0.1),
        Claim("at the end the loss is far below the degree-two floor (largest over seeds)", float(end.population.max()) / floor, at_most=0.05),
        Claim("every direction of the target is found, in every seed", float(end.covered_directions.min()), at_least=float(d)),
    ]  # fmt: skip
    if (d, m) == (30, 100) and table.time.values[-1] >= 1000:
        made += _paper_size(table, events, orders, scaled)
    return tuple(made)


def _paper_size(table, events, orders, scaled) -> list[Claim]:
    """The assertions measured over 92 seeds, about four standard deviations wide."""
    d, floor = table.attrs["features"], table.attrs["floor"]
    at = lambda variable, time: value_at(table, variable, time)
    start, end = at(orders, 0), table.isel(step=-1)
    plateau = table.population.where((table.time >= 50) & (table.time <= 190), drop=True)
    return [
        Claim("raw order-2 loss at the start (mean)", float(start[:, 1].mean()), at_least=0.008, at_most=0.014),
        Claim("raw order-4 loss at the start (mean)", float(start[:, 2].mean()), at_least=0.038, at_most=0.045),
        Claim("raw order-0 loss at τ = 50 (largest)", float(at(orders, 50)[:, 0].max()), at_most=2e-6),
        Claim("raw order-2 loss at τ = 50 (largest)", float(at(orders, 50)[:, 1].max()), at_most=2e-5),
        Claim("order 4 has not moved at τ = 50 (smallest ratio to the start)", float((at(orders, 50)[:, 2] / start[:, 2]).min()), at_least=0.88),
        Claim("d × loss on the plateau, τ = 50 (mean)", d * float(at(table.population, 50).mean()), at_least=0.052, at_most=0.058),
        Claim("the loss stays above the floor for τ in [50, 190] (smallest ratio)", float(plateau.min()) / floor, at_least=1.0),
        Claim("end of stage 1.1, T₁ (median)", events["T1"], at_least=24.0, at_most=39.0, note="Θ(d log d) in the paper; measured τ ≈ d"),
        Claim("first time below the floor (median)", events["below_floor"], at_least=190.0, at_most=410.0),
        Claim("half the floor, T₂ (median)", events["T2"], at_least=370.0, at_most=580.0),
        Claim("a tenth of the floor, T₃ (median)", events["T3"], at_least=560.0, at_most=790.0),
        Claim("d × loss at τ = 1000 (largest)", d * float(at(table.population, 1000).max()), at_most=1.2e-3),
        Claim("raw order-4 loss at τ = 1000 (largest)", float(at(orders, 1000)[:, 2].max()), at_most=6e-4),
        Claim("largest squared norm at the end", float(end.largest_neuron.max()), at_least=2.9, at_most=3.4),
        Claim("basis-like neurons at the end (median)", float(np.median(end.basis_neurons)), at_least=40.0, at_most=70.0),
        Claim("order 2 falls below 0.1 in the figure's units (τ = 180, largest)", float(at(scaled, 180)[:, 1].max()), at_most=0.1),
        Claim("order 4 falls below 0.02 in the figure's units (τ = 1000, median)", float(np.median(at(scaled, 1000)[:, 2])), at_most=0.02, note="the paper says 1e-2, at an unstated number of iterations"),
        Claim(
            "order 0 starts above order 4 (share of seeds)", float(np.mean(at(scaled, 0)[:, 0] > at(scaled, 0)[:, 2])), at_least=0.5,
            reproduces=False, note="at κ = 1 the order-0 loss starts at (2/π)·2d/m = 0.38 on average, below order 4 (0.98): true only by chance of the seed",
        ),
    ]  # fmt: skip


EXPERIMENT = Experiment(
    name="li2020-figure1", paper="li2020", title="Tensor stages on the exact population", figure="Figure 1",
    settings={
        "smoke": Settings(features=10, width=40, time=300.0, records=150, seeds=2),
        "default": Settings(),
        "paper": Settings(seeds=20, records=1000),
    },
    run=run, draw=draw, claims=claims,
)  # fmt: skip
