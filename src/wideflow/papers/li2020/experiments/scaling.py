r"""How the stages lengthen with the dimension (li2020, Theorem 1.1, Lemmas A.2, A.3, A.5).

Exact population, $m = 4d$, mean-field rate 0.25. Measured: $T_1 \approx d$ (paper: $O(d\log d)$),
half the floor at $\tau \approx 1.65\,d^2/\ln d$ (paper: $\Theta(d^2/\log d)$), and from there to a
tenth of it $\approx 2\,d\ln d$ (paper: $\Theta(d\log d)$).

Run:  wideflow run li2020-scaling
Takes:  default 1 min on two cores, smoke 5 s, paper (to d = 80) 1 h
"""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, Line, Panel, Points
from .stage_runs import median, run_events, stage_table, value_at

EVENTS = ("T1", "below_floor", "T2", "T3")


@dataclass(frozen=True)
class Settings:
    dimensions: tuple[int, ...] = (10, 20, 30)
    width_factor: int = 4
    rate: float = 0.25
    spread: float = 2.6
    records: int = 400
    seeds: int = 3


def run(settings: Settings, key, session) -> xr.Dataset:
    times, ends = [], []
    total = sum(d**4 for d in settings.dimensions)
    done = 0
    for d in settings.dimensions:
        budget = 1.7 * d**2 / math.log(d) + 6 * d * math.log(d)  # both stages
        time = max(settings.spread * d**2 / math.log(d) + 60, budget)
        table = stage_table(
            named_key(key, "dimension", d),
            features=d,
            width=settings.width_factor * d,
            rate=settings.rate,
            time=time,
            records=settings.records,
            seeds=settings.seeds,
            stop_below=None,
            session=session.within(done, total, f"d = {d}", weight=d**4),
        )
        done += d**4
        events = run_events(table)
        times.append(np.array([events[name] for name in EVENTS]))
        ends.append(value_at(table, table.population, budget))
    return xr.Dataset(
        {
            "time": (
                ("dimension", "event", "seed"),
                np.array(times),
                {"label": "mean-field time of the event"},
            ),
            "loss": (
                ("dimension", "seed"),
                np.array(ends),
                {"label": "population loss at τ = 1.7 d²/ln d + 6 d ln d"},
            ),
        },
        {
            "dimension": list(settings.dimensions),
            "event": list(EVENTS),
            "seed": np.arange(settings.seeds),
        },
        {
            "objective": "population mean of squares",
            "width_factor": settings.width_factor,
            "rate": settings.rate,
        },
    )


def _medians(table: xr.Dataset) -> dict[str, np.ndarray]:
    return {
        e: np.array([median(row) for row in table.time.sel(event=e).values])
        for e in table.event.values.tolist()
    }


def draw(table: xr.Dataset) -> FigureSpec:
    d, times = table.dimension.values.astype(float), _medians(table)
    labels = {
        "T1": "order 2 settled",
        "below_floor": "below the floor",
        "T2": "half the floor",
        "T3": "a tenth of the floor",
    }
    curves = [Line(d, times[e], labels[e]) for e in EVENTS]
    laws = [
        Line(d, d, "d", dash="dotted"),
        Line(d, 1.65 * d**2 / np.log(d), "1.65 d²/ln d", dash="dotted"),
    ]
    dots = [
        Points(
            np.repeat(d, table.sizes["seed"]),
            (
                table.time.sel(event="T2") * np.log(table.dimension) / table.dimension**2
            ).values.ravel(),
            "T₂ ln d/d², each seed",
        )
    ]
    return FigureSpec(
        f"Stage lengths against the dimension (m = {table.attrs['width_factor']}d)",
        [
            Panel(
                "Stage events",
                "dimension d",
                "mean-field time τ",
                [*curves, *laws],
                xscale="log",
                yscale="log",
            ),
            Panel("The plateau in its own unit", "dimension d", "T₂ ln d / d²", dots),
        ],
        caption="Medians over seeds.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    """Medians over three seeds or more; laws in d are checked from d = 20 on, as they have not set
    in below.
    """
    d, times = table.dimension.values.astype(float), _medians(table)
    ratio = times["T1"] / d
    loss = table.loss.sel(dimension=d[d <= 30]) * table.dimension
    claims = [
        Claim(
            "order 2 settles at τ ≈ d: T₁/d (smallest median)",
            float(ratio.min()),
            at_least=0.8,
            note="O(d log d) in the paper",
        ),
        Claim("order 2 settles at τ ≈ d: T₁/d (largest median)", float(ratio.max()), at_most=1.3),
        Claim(
            "d × loss at τ = 1.7 d²/ln d + 6 d ln d, d ≤ 30 (largest)",
            float(loss.max()),
            at_most=0.0012,
        ),
    ]
    large = d >= 20
    if not large.any():
        return tuple(claims)
    unit = (times["T2"] * np.log(d) / d**2)[large]
    tail = ((times["T3"] - times["T2"]) / (d * np.log(d)))[large]
    single = (table.time.sel(event="T2") * np.log(table.dimension) / table.dimension**2).sel(
        dimension=d[large]
    )
    claims += [
        Claim("T₂ ln d/d² (smallest median)", float(unit.min()), at_least=1.4),
        Claim("T₂ ln d/d² (largest median)", float(unit.max()), at_most=1.9),
        Claim("T₂ ln d/d² of single seeds (smallest)", float(single.min()), at_least=1.2),
        Claim("T₂ ln d/d² of single seeds (largest)", float(single.max()), at_most=2.1),
        Claim("(T₃ − T₂)/(d ln d) (smallest median)", float(tail.min()), at_least=1.5),
        Claim("(T₃ − T₂)/(d ln d) (largest median)", float(tail.max()), at_most=2.7),
    ]
    if large.sum() >= 2:
        slope = float(np.polyfit(np.log(d[large]), np.log(times["T2"][large]), 1)[0])
        claims.append(Claim("log-log slope of T₂ on d", slope, at_least=1.5, at_most=1.95))
    return tuple(claims)


EXPERIMENT = Experiment(
    name="li2020-scaling",
    paper="li2020",
    title="Stage lengths against the dimension",
    figure="Theorem 1.1, Lemmas A.2-A.5",
    settings={
        "smoke": Settings(dimensions=(8, 10), records=150, seeds=2),
        "default": Settings(),
        "paper": Settings(dimensions=(10, 20, 30, 40, 60, 80), records=1000, seeds=3),
    },
    run=run,
    draw=draw,
    claims=claims,
)
