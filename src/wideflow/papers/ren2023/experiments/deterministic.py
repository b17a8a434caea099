r"""A finite network without samples: the first-layer error falls monotonically (ren2023, Lemmas
D.11, D.12 and D.14).

Radius and directions are integrated, so no sampling noise hides Stage 2: the angular error $e_2$
only falls, and the spread $\delta_2$ of the second layer does not grow while every second-layer
neuron is active on the unit ball. Near the end $\bar w_2\alpha \approx -1$, $\bar b_2 \approx 1$,
and the neurons are off in the directions with $F > \alpha$: there the lemma says nothing, and
$\delta_2$ grows by a tenth.

Run:  wideflow run ren2023-deterministic     Takes:  default about 15 s of one core
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.precision import double
from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, Line, Panel, VLine
from ....training.train import train
from ..clipped_flow import ClippedFlow
from ..depth_separator import DepthSeparator
from ..laws.bessel import BesselLaw
from ..observables import depth
from ..population import Radial
from ..theorems.stage_two import LemmaD12, LemmaD18
from .start import start_claim
from .verdicts import verdict_claims, with_verdicts

AT_THE_END = "Lemma D.12 at the end: alone, the second term of equation (6) lowers e₂"
ALONG = "Lemma D.18 along the run"


@dataclass(frozen=True)
class Settings:
    features: int = 10
    width: int = 256
    second: int = 32
    rate: float = 0.2
    time: float = 300.0
    weight: float = -0.05
    bias: float = 0.3
    records: int = 60
    seeds: int = 1


@double
def run(settings: Settings, key, session) -> xr.Dataset:
    law = BesselLaw(settings.features)
    tables, verdicts = [], []
    for seed in range(settings.seeds):
        start = DepthSeparator.init(
            named_key(key, "seed", seed),
            features=settings.features,
            width=settings.width,
            second=settings.second,
            radius=1.0,
        )
        weights = settings.weight * (1 + 0.1 * np.linspace(-1, 1, settings.second))
        net = DepthSeparator(start.first, weights, start.second_bias - 0.3 + settings.bias)
        steps = round(settings.time / settings.rate)
        inf = float("inf")
        record = [
            depth.Alpha(),
            depth.DirectionError(),
            depth.SecondSpread(),
            depth.EnergyBalance(),
            depth.SecondWeights(),
            depth.SecondBiases(),
            depth.DirectionSup(),
        ]
        flow = ClippedFlow(settings.rate, inf, inf, inf, adaptive=True)
        end = train(
            net,
            Radial.integrated(law),
            flow,
            steps=steps,
            every=max(1, steps // settings.records),
            record=record,
            session=session.within(seed, settings.seeds),
        )
        tables.append(end.table)
        weight = end.table.second_weight.mean("second").values
        verdicts.append(
            {
                AT_THE_END: LemmaD12()(end.model),
                ALONG: LemmaD18()(law, end.table.alpha.values, weight),
            }
        )
    full = settings.time >= 300 and settings.width >= 256
    sizes = {"features": settings.features, "width": settings.width}
    joined = xr.concat(tables, "seed").assign_attrs(full=int(full), **sizes)
    return with_verdicts(joined, verdicts)


def active_on_the_ball(table: xr.Dataset) -> xr.DataArray:
    r"""$\min_j (b_j + w_j \sup_{\lVert x\rVert\le1} F)$ at every record: positive where Lemma D.14
    applies.
    """
    highest = table.alpha * (1 + table.direction_sup)
    return (table.second_bias + table.second_weight * highest).min("second")


def draw(table: xr.Dataset) -> FigureSpec:
    one = table.isel(seed=0)
    time = one.time.values
    applies = active_on_the_ball(one).values > 0
    ends = (
        []
        if applies.all()
        else [VLine(float(time[np.argmin(applies)]), "neurons leave the unit ball")]
    )
    panels = (
        Panel("Loss", "time t", "L", (Line(time, one.loss.values),), yscale="log"),
        Panel(
            "Error of the first layer", "time t", "e₂", (Line(time, one.direction_error.values),)
        ),
        Panel(
            "Spread of the second layer",
            "time t",
            "δ₂",
            (Line(time, one.second_spread.values), *ends),
        ),
    )
    return FigureSpec("A finite network without sampling noise", panels, columns=3)


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    balance = table.energy_balance
    statements = [
        Claim(
            "e₂ falls at every record: largest rise",
            float(table.direction_error.diff("step").max()),
            at_most=1e-9,
        ),
        Claim(
            "loss falls at every record: largest rise",
            float(table.loss.diff("step").max()),
            at_most=1e-9,
        ),
        Claim(
            "mean ‖w₁‖² − 2 mean w₂² drifts by",
            float(abs(balance - balance.isel(step=0)).max()),
            at_most=0.05,
            note="zero for the exact flow, also with directions integrated: what is left are the "
            "Euler steps",
        ),
    ]
    if table.attrs["full"]:
        end = table.isel(step=-1)
        applies = (active_on_the_ball(table) > 0).cumprod("step").astype(bool)
        growth = table.second_spread.diff("step") / table.second_spread.isel(step=0)
        statements += [
            Claim("loss at the end", float(end.loss.max()), at_most=5e-5),
            start_claim(table),
            Claim(
                "e₂(end)/e₂(0)",
                float((end.direction_error / table.direction_error.isel(step=0)).max()),
                at_most=0.25,
            ),
            Claim(
                "records from the start on at which every neuron is active on the unit ball",
                float(applies.sum("step").min()),
                at_least=5,
            ),
            Claim(
                "Lemma D.14: while they are, δ₂ does not grow, largest relative rise between "
                "records",
                float(growth.where(applies.isel(step=slice(1, None))).max()),
                at_most=1e-4,
            ),
            *verdict_claims(table),
        ]
    return tuple(statements)


EXPERIMENT = Experiment(
    name="ren2023-deterministic",
    paper="ren2023",
    title="A finite network without sampling noise",
    figure="Lemmas D.11, D.12, D.14",
    settings={
        "smoke": Settings(features=4, width=48, second=4, time=6.0, records=6),
        "default": Settings(),
        "paper": Settings(width=512, seeds=3),
    },
    run=run,
    draw=draw,
    claims=claims,
)
