r"""Who wins the lottery, and the masses of winners against the rate equations (li2020, Lemma A.3, Claim A.10).

The share $\max_i\bar v_i(0)^2$ of a neuron at the start predicts whether it is basis-like at the end of the plateau, and its largest initial
coordinate is the direction it takes. From there on, the masses $\gamma_i$ (basis-like) and $\beta_i$ (all others) follow the rate
equations of stage 2.

Run:  wideflow run li2020-lottery            Takes:  default 20 s on two cores, smoke 5 s, paper 2 min
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ....dynamics.descent import GradientDescent
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, Line, Panel, Points
from ....models.homogeneous import Homogeneous
from ....training.train import train
from ..limits.stage_rates import stage_flow
from ..observables.lottery import (
    DirectionMasses,
    basis_like,
    direction_persistence,
    lottery_scores,
    neuron_sets,
    ranking_quality,
    winning_threshold,
)
from .stage_runs import teacher_of


@dataclass(frozen=True)
class Settings:
    features: int = 16
    width: int = 256
    rate: float = 0.25
    draw_time: float = 250.0
    time: float = 500.0
    records: int = 100
    seeds: int = 2


def run(settings: Settings, key, session) -> xr.Dataset:
    d = settings.features
    teacher = teacher_of(d)
    nets = [
        Homogeneous.init(named_key(key, "net", s), features=d, width=settings.width)
        for s in range(settings.seeds)
    ]
    first, rest = (
        round(t / settings.rate) for t in (settings.draw_time, settings.time - settings.draw_time)
    )
    every = max(1, (first + rest) // settings.records)
    part = lambda start, length: session.within(start, first + rest, "descent", weight=length)
    dynamics = GradientDescent(settings.rate)
    plateau = train(nets, teacher, dynamics, steps=first, every=first, session=part(0, first))
    after = train(
        list(plateau.model),
        teacher,
        dynamics,
        steps=rest,
        every=every,
        record=[DirectionMasses()],
        session=part(first, rest),
    )
    start = np.stack([np.asarray(net.weights) for net in nets])
    drawn = np.stack([np.asarray(net.weights) for net in plateau.model])
    final = np.stack([np.asarray(net.weights) for net in after.model])
    masses = after.table.direction_masses
    times = after.table.time.values
    predicted = [stage_flow(m[0, 0], m[0, 1], np.full(d, 1 / d), times) for m in masses.values]
    axes = ("seed", "width", "feature")
    return xr.Dataset(
        {
            "start_weights": (axes, start), "drawn_weights": (axes, drawn), "final_weights": (axes, final),
            "masses": (("seed", "record", "part", "direction"), masses.values, {"label": "masses of basis-like and other neurons"}),
            "predicted": (("seed", "record", "part", "direction"), np.array([np.stack(p, axis=1) for p in predicted]), {"label": "rate equations"}),
        },
        {"seed": np.arange(settings.seeds), "time": ("record", settings.draw_time + times), "part": ["gamma", "beta"]},
        {"features": d, "width_count": settings.width, "draw_time": settings.draw_time, "loss": "population mean of squares"},
    )  # fmt: skip


def draw(table: xr.Dataset) -> FigureSpec:
    start, drawn, final = (
        table[f"{name}_weights"].isel(seed=0).values for name in ("start", "drawn", "final")
    )
    winners, _ = basis_like(drawn)
    score, size = lottery_scores(start), np.sum(final**2, axis=1)
    scatter = [
        Points(score[winners], size[winners], f"basis-like at τ = {table.attrs['draw_time']:g}"), Points(score[~winners], size[~winners], "others"),
    ]  # fmt: skip
    t = table.time.values
    marks = []
    for part, name in (("gamma", "γ"), ("beta", "β")):
        for kind, dash in (("masses", "solid"), ("predicted", "dashed")):
            curve = table[kind].isel(seed=0).sel(part=part).sum("direction").values
            marks.append(
                Line(
                    t,
                    curve,
                    f"Σ{name}, {'measured' if kind == 'masses' else 'rate equations'}",
                    dash=dash,
                    group=part + kind,
                )
            )
    return FigureSpec(
        f"The lottery, d = {table.attrs['features']}, m = {table.attrs['width_count']}",
        [
            Panel("Tickets and prizes", "initial max_i v̄_i²", "final ‖v‖²", scatter, yscale="log"),
            Panel("Masses after the plateau", "mean-field time τ", "total mass", marks),
        ],
        caption="Left: a neuron's initial share of its largest coordinate decides. Right: rate equations started from the measured masses.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    seeds = range(table.sizes["seed"])
    starts, drawn = table.start_weights.values, table.drawn_weights.values
    winners = [basis_like(w)[0] for w in drawn]
    quality = [ranking_quality(lottery_scores(starts[i]), winners[i]) for i in seeds]
    raw = [ranking_quality(lottery_scores(starts[i], normalised=False), winners[i]) for i in seeds]
    kept = [direction_persistence(starts[i], drawn[i]) for i in seeds]
    sets = [
        neuron_sets(
            w, winning_threshold(np.full(w.shape[1], 1 / w.shape[1]), table.attrs["draw_time"])
        )
        for w in starts
    ]
    in_pot = [
        np.mean(s.any_pot[w]) - np.mean(s.any_pot[~w]) for s, w in zip(sets, winners, strict=True)
    ]
    last = table.masses.isel(record=-1).sum("direction").sel(part="gamma")
    told = table.predicted.isel(record=-1).sum("direction").sel(part="gamma")
    full = table.attrs["features"] >= 16
    note = "0.89 to 0.98 over 14 seeds at d = 16, m = 256, τ = 250" if full else ""
    return (
        Claim("the initial share ranks the winners: AUC (smallest)", float(np.min(quality)), at_least=0.85 if full else 0.7, note=note),
        Claim("it ranks them better than the raw largest square (mean difference of AUC)", float(np.mean(quality) - np.mean(raw)), at_least=0.0),
        Claim("winners keep their first direction (smallest share)", float(np.min(kept)), at_least=0.93 if full else 0.8),
        Claim("winners are more often in the a priori set S_pot than losers (mean difference of shares)", float(np.mean(in_pot)), at_least=0.0),
        Claim("Σγ at the end against the rate equations (largest relative difference)", float(abs(last / told - 1).max()), at_most=0.25, note="errors O(1/d²) per unit time, and late joiners"),
        Claim("the winners carry most of the mass at the end (smallest Σγ)", float(last.min()), at_least=0.7),
    )  # fmt: skip


EXPERIMENT = Experiment(
    name="li2020-lottery", paper="li2020", title="The lottery of the plateau", figure="Lemma A.3, Claim A.10",
    settings={
        "smoke": Settings(features=10, width=100, draw_time=80.0, time=200.0, records=20, seeds=2),
        "default": Settings(),
        "paper": Settings(seeds=14),
    },
    run=run, draw=draw, claims=claims,
)  # fmt: skip
