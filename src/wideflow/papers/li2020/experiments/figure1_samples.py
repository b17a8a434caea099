r"""Stage-wise convergence on samples, and how few samples are too few (li2020, Figure 1 as stated).

Full-batch descent on $N$ Gaussian samples, mean-field rate 0.3, float32 weights; the population
loss is watched exactly. With $N \gtrsim 11d^2$ the same stages appear, the plateau lengthens as $N$
shrinks, and with $N \approx 3d^2$ the network overfits and never leaves it: the effect that truly
sticks.

Run:  wideflow run li2020-figure1-samples
Takes:  default 1 min on two cores (d = 16), smoke 5 s, paper (d = 30) 15 min
"""

import itertools
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, HLine, Line, Panel, Points
from .stage_runs import furthest, median, order_panel, run_events, shared, stage_table, value_at


@dataclass(frozen=True)
class Settings:
    features: int = 16
    width: int = 53
    samples: tuple[int, ...] = (850, 2816, 11000)
    rate: float = 0.3
    time: float = 1200.0
    records: int = 200
    seeds: int = 2


def run(settings: Settings, key, session) -> xr.Dataset:
    tables = []
    for i, samples in enumerate(settings.samples):
        tables.append(
            stage_table(
                named_key(key, "samples", samples),
                **shared(settings),
                width=settings.width,
                samples=samples,
                session=session.within(i, len(settings.samples), f"N = {samples}"),
            )
        )
    joined = xr.concat(tables, xr.DataArray(list(settings.samples), dims="setting", name="setting"))
    return joined.assign_attrs(tables[0].attrs)


def draw(table: xr.Dataset) -> FigureSpec:
    d, time, floor = table.attrs["features"], table.time.values, table.attrs["floor"]
    middle = table.isel(setting=min(1, table.sizes["setting"] - 1))
    losses = []
    for n in table.setting.values:
        one = table.sel(setting=n)
        losses.append(
            Line(
                time, d * one.population.median("seed").values, f"population, N = {n}", group=str(n)
            )
        )
        losses.append(
            Line(
                time,
                d * one.training.median("seed").values,
                f"training, N = {n}",
                dash="dotted",
                group=str(n),
            )
        )
    ends = [median(run_events(table.sel(setting=n))["T2"]) for n in table.setting.values]
    reached = [(n, t) for n, t in zip(table.setting.values, ends, strict=True) if np.isfinite(t)]
    never = [int(n) for n, t in zip(table.setting.values, ends, strict=True) if not np.isfinite(t)]
    panels = [
        order_panel(middle, f"Loss by tensor order, N = {int(middle.setting)} (one seed)"),
        Panel(
            "Training and population loss",
            "mean-field time τ",
            "d × loss",
            [*losses, HLine(d * floor, "degree-two floor")],
            yscale="log",
        ),
    ]
    marks = []
    if reached:
        places = np.array(reached)
        marks.append(Points(places[:, 0], places[:, 1], "T₂ (median)", size=8.0))
    if never:
        label = f"not reached by τ = {time[-1]:g}"
        marks.append(Points(never, np.full(len(never), time[-1]), label, size=8.0))
    panels.append(
        Panel("Length of the plateau", "samples N", "τ at half the floor", marks, xscale="log")
    )
    return FigureSpec(
        f"Tensor stages on samples: d = {d}, m = {table.attrs['width']}",
        panels,
        caption="The plateau lengthens as N shrinks; too few samples are fitted without ever "
        "leaving it.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    d, m, floor = (table.attrs[name] for name in ("features", "width", "floor"))
    events = {
        int(n): run_events(table.sel(setting=n).assign_attrs(samples=int(n)))
        for n in table.setting.values
    }
    ends = {n: e["T2"] for n, e in events.items()}
    sizes = sorted(ends)
    big = table.sel(setting=sizes[-1])
    small = table.sel(setting=sizes[0])
    last = table.isel(step=-1)
    times = [median(ends[n]) for n in sizes]
    claims = [
        Claim(
            "with the most samples the loss ends far below the degree-two floor (largest over "
            "seeds)",
            float(last.sel(setting=sizes[-1]).population.max()) / floor,
            at_most=0.05,
        ),
        Claim(
            "with the most samples every direction is found",
            float(last.sel(setting=sizes[-1]).covered_directions.min()),
            at_least=float(d),
        ),
        *_stages(d, events),
        Claim(
            "the plateau does not shorten as N shrinks",
            holds=all(a >= b for a, b in itertools.pairwise(times)),
        ),
        Claim(
            "on the plateau the training loss is below the population loss",
            holds=bool((value_at(big, big.training, d) < value_at(big, big.population, d)).all()),
        ),
    ]
    if sizes[0] <= 4 * d**2:
        claims.append(
            Claim(
                "with N ≲ 4d² the training loss falls but the population loss stays above half "
                "the floor (smallest ratio to the floor)",
                float(last.sel(setting=sizes[0]).population.min()) / floor,
                at_least=0.5,
                note="the effect that truly sticks: too few samples",
            )
        )
        claims.append(
            Claim(
                "there the training loss is below a third of the population loss",
                float((small.training / small.population).isel(step=-1).max()),
                at_most=0.34,
            )
        )
    if (d, m) == (30, 100) and 10000 in sizes and table.time.values[-1] >= 3600:
        paper = table.sel(setting=10000)
        claims += [
            Claim(
                "N = 10⁴: half the floor, T₂ (the seed furthest from the middle)",
                furthest(ends[10000], 1000.0, 2700.0),
                at_least=1000.0,
                at_most=2700.0,
            ),
            Claim(
                "N = 10⁴: d × population loss at τ = 3600 (largest)",
                d * float(value_at(paper, paper.population, 3600).max()),
                at_most=8e-4,
            ),
            Claim(
                "N = 10⁴: directions found at τ = 3600",
                float(value_at(paper, paper.covered_directions, 3600).min()),
                at_least=30.0,
            ),
        ]
    return tuple(claims)


def _stages(d: int, events: dict[int, dict[str, np.ndarray]]) -> list[Claim]:
    """On samples order 2 settles at its noise floor; that comes first, in every seed of every
    sample.
    """
    settled = np.concatenate([e["T1"] for e in events.values()]) / d
    later = [e["T1"] / e["T2"] for e in events.values()]
    reached = [ratio[np.isfinite(ratio)] for ratio in later]
    return [
        Claim(
            "order 2 settles at its noise floor within a few d: T₁/d (largest, any N)",
            float(settled.max()),
            at_most=2.0,
        ),
        Claim(
            "order 2 settles before half the floor is reached (largest T₁/T₂ where it is)",
            float(np.concatenate(reached).max(initial=0.0)),
            at_most=0.5,
        ),
    ]


EXPERIMENT = Experiment(
    name="li2020-figure1-samples",
    paper="li2020",
    title="Tensor stages on samples",
    figure="Figure 1 (N samples)",
    settings={
        "smoke": Settings(
            features=8, width=24, samples=(200, 2500), time=200.0, records=50, seeds=1
        ),
        "default": Settings(),
        "paper": Settings(
            features=30, width=100, samples=(3000, 10000, 30000), time=3600.0, records=400, seeds=3
        ),
    },
    run=run,
    draw=draw,
    claims=claims,
)
