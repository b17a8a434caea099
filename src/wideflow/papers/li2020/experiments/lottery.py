r"""Who wins the lottery, and the masses of winners against the rate equations (li2020, Lemma A.3,
Claim A.10).

The share $\max_i\bar v_i(0)^2$ of a neuron at the start predicts whether it is basis-like at the
end of the plateau, and its largest initial coordinate is the direction it takes. From there on, the
masses $\gamma_i$ (basis-like) and $\beta_i$ (all others) are compared with the rate equations of
stage 2, direction by direction and in sum, along the whole run: they hold up to $O(1/d^2)$ a unit
of time, and neurons that become basis-like later move mass from $\beta$ to $\gamma$, which the
equations do not know.

Run:  wideflow run li2020-lottery
Takes:  default 20 s on two cores, smoke 5 s, paper 2 min
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
    lottery_scores,
    neuron_sets,
    winning_threshold,
)
from ..theorems.stage_one import Lottery
from ..theorems.stage_two import RateEquations, WarmStart
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
            "start_weights": (axes, start),
            "drawn_weights": (axes, drawn),
            "final_weights": (axes, final),
            "masses": (
                ("seed", "record", "part", "direction"),
                masses.values,
                {"label": "masses of basis-like and other neurons"},
            ),
            "predicted": (
                ("seed", "record", "part", "direction"),
                np.array([np.stack(p, axis=1) for p in predicted]),
                {"label": "rate equations"},
            ),
        },
        {
            "seed": np.arange(settings.seeds),
            "time": ("record", settings.draw_time + times),
            "part": ["gamma", "beta"],
        },
        {
            "features": d,
            "width_count": settings.width,
            "draw_time": settings.draw_time,
            "loss": "population mean of squares",
        },
    )


def draw(table: xr.Dataset) -> FigureSpec:
    start, drawn, final = (
        table[f"{name}_weights"].isel(seed=0).values for name in ("start", "drawn", "final")
    )
    winners, _ = basis_like(drawn)
    score, size = lottery_scores(start), np.sum(final**2, axis=1)
    scatter = [
        Points(score[winners], size[winners], f"basis-like at τ = {table.attrs['draw_time']:g}"),
        Points(score[~winners], size[~winners], "others"),
    ]
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
    directions = [
        Line(
            t,
            table[kind].isel(seed=0).sel(part="gamma").isel(direction=i).values,
            label,
            dash=dash,
            group=kind,
        )
        for kind, label, dash in (
            ("masses", "γ_i, measured", "solid"),
            ("predicted", "γ_i, rate equations", "dashed"),
        )
        for i in range(table.sizes["direction"])
    ]
    return FigureSpec(
        f"The lottery, d = {table.attrs['features']}, m = {table.attrs['width_count']}",
        [
            Panel("Tickets and prizes", "initial max_i v̄_i²", "final ‖v‖²", scatter, yscale="log"),
            Panel("Masses after the plateau", "mean-field time τ", "total mass", marks),
            Panel(
                "Direction by direction",
                "mean-field time τ",
                "mass of basis-like neurons",
                directions,
            ),
        ],
        caption="A neuron's initial share of its largest coordinate decides. The rate equations "
        "start from the measured masses; neurons "
        "that become basis-like later move mass from β to γ.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    d = table.attrs["features"]
    starts, drawn = table.start_weights.values, table.drawn_weights.values
    verdicts = [Lottery()(first, then).numbers for first, then in zip(starts, drawn, strict=True)]
    auc, raw, persistence = (
        np.array([v.get(name, np.nan) for v in verdicts])
        for name in ("auc", "auc_raw", "persistence")
    )
    full = d >= 16
    note = "0.89 to 0.98 over 14 seeds at d = 16, m = 256, τ = 250" if full else "checked at d = 16"
    end = table.masses.isel(record=-1).sum("direction").sel(part="gamma")
    return (
        Claim(
            "Lemma A.3: the initial share ranks the winners, AUC (smallest)",
            float(auc.min()),
            at_least=0.85 if full else 0.7,
            note=note,
        ),
        Claim(
            "it ranks them better than the raw largest square (mean difference of AUC)",
            float(np.mean(auc - raw)),
            at_least=0.0,
        ),
        Claim(
            "Lemma A.3: winners keep their first direction (smallest share)",
            float(persistence.min()),
            at_least=0.93 if full else 0.8,
        ),
        Claim(
            "winners are more often in the a priori set S_pot than losers (mean difference of "
            "shares)",
            _in_pot(table),
            at_least=0.0,
        ),
        *_rate_claims(table),
        Claim(
            "the winners carry most of the mass at the end (smallest Σγ)",
            float(end.min()),
            at_least=0.7,
        ),
    )


def _in_pot(table: xr.Dataset) -> float:
    """How much more often winners than losers were in the a priori set, on average over seeds."""
    d = table.attrs["features"]
    threshold = winning_threshold(np.full(d, 1 / d), table.attrs["draw_time"])
    differences = []
    for start, drawn in zip(table.start_weights.values, table.drawn_weights.values, strict=True):
        pot, winners = neuron_sets(start, threshold).any_pot, basis_like(drawn)[0]
        differences.append(np.mean(pot[winners]) - np.mean(pot[~winners]))
    return float(np.mean(differences))


def _rate_claims(table: xr.Dataset) -> list[Claim]:
    """Lemma A.5 and Claim A.10 on the final weights, and the masses along the whole run against the
    rate equations.
    """
    d, final = table.attrs["features"], table.final_weights.values
    a = np.full(d, 1 / d)
    warm = [WarmStart()(w, a).numbers["loss_over_floor"] for w in final]
    growth = [RateEquations()(w, a).numbers.get("error_times_d2", np.nan) for w in final]
    gap = abs(table.masses - table.predicted)
    measured, predicted = (x.sum("direction") for x in (table.masses, table.predicted))
    relative = abs(measured / predicted - 1).max(("seed", "record"))
    gamma, beta = (float(relative.sel(part=part)) for part in ("gamma", "beta"))
    # at d = 10 typical neurons still carry a fifth of the mass at the end of the run
    full = d >= 16
    other = "four other seeds at d = 16: up to 0.025 and 0.19" if full else "checked at d = 16"
    basis = "Claim A.10: growth rates of basis-like neurons at the end, error times d² (largest)"
    return [
        *([Claim(basis, max(growth), at_most=1.0)] if full else []),
        Claim("Lemma A.5: the loss over the floor at the end (largest)", max(warm), at_most=0.1),
        Claim(
            "Σγ along the run against the rate equations (largest relative difference)",
            gamma,
            at_most=0.05 if full else 0.4,
            note=f"late joiners; {other}",
        ),
        Claim(
            "Σβ along the run against the rate equations (largest relative difference)",
            beta,
            at_most=0.3 if full else 0.6,
            note=f"late joiners; {other}",
        ),
        Claim(
            "γ_i direction by direction (mean difference at the end, in units of 1/d)",
            d * float(gap.sel(part="gamma").isel(record=-1).mean()),
            at_most=0.04 if full else 0.15,
        ),
    ]


EXPERIMENT = Experiment(
    name="li2020-lottery",
    paper="li2020",
    title="The lottery of the plateau",
    figure="Lemma A.3, Claim A.10",
    settings={
        "smoke": Settings(features=10, width=100, draw_time=80.0, time=200.0, records=20, seeds=2),
        "default": Settings(),
        "paper": Settings(seeds=14),
    },
    run=run,
    draw=draw,
    claims=claims,
)
