r"""The stages of training at infinite width, as detected events (ren2023, Section 4).

Four second-layer neurons of mixed sign start next to zero: $T_{1.1}$ all weights negative,
$T_{1.2}$ mean beyond $d\,\delta_2$, $T_1$ projections of the weights off, $T_2$ loss 1e-2.

Run:  wideflow run ren2023-stages     Takes:  default about 1 min, most of it compilation
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.errors import check_choice
from ...._core.precision import double
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, Line, Panel, VLine
from ..laws.arcsine import ArcsineLaw
from ..laws.bessel import BesselLaw
from ..limits.flow import alpha_of_norm, reduced_flow
from ..limits.stages import reduced_stages
from ..theorems.layers import LemmaC13
from ..theorems.stage_one import Lemma42, LemmaC5, LemmaC7
from .verdicts import verdict_claims, with_verdicts

EVENTS = ("T_1.1", "T_1.2", "T_1", "T_2")
LABELS = {"T_1.1": "T₁.₁", "T_1.2": "T₁.₂", "T_1": "T₁", "T_2": "T₂"}
DASHES = ("dotted", "dashdot", "dashed", "solid")
EXPECTED = (2.4205e-4, 5.04487e-3, 0.159321, 108.541)

LAWS = {"bessel": BesselLaw, "arcsine": ArcsineLaw}


@dataclass(frozen=True)
class Settings:
    features: int = 10
    weights: tuple[float, ...] = (2e-6, -1e-6, 0.5e-6, -2e-6)
    bias: float = 0.3
    clip: tuple[float, ...] = (100.0, 1000.0, 10.0)
    epsilon: float = 1e-2
    horizon: float = 200.0
    points: int = 120
    law: str = "bessel"
    seeds: int = 1

    def __post_init__(self):
        check_choice("law", self.law, LAWS)


@double
def run(settings: Settings, key, session) -> xr.Dataset:
    law = LAWS[settings.law](settings.features)
    alpha = alpha_of_norm(settings.features, settings.features**-0.5)
    w, b = np.asarray(settings.weights), np.full(len(settings.weights), settings.bias)
    stages = reduced_stages(
        law, alpha, w, b, clip=settings.clip, epsilon=settings.epsilon, horizon=settings.horizon
    )
    session.progress(1, 2, "events")
    times = np.geomspace(1e-6, settings.horizon, settings.points)
    path = reduced_flow(law, alpha, w, b, times, clip=settings.clip)
    session.progress(2, 2, "path")
    at = stages.state_at_t1
    table = xr.Dataset(
        {
            "event": ("name", [stages.t11, stages.t12, stages.t1, stages.t2]),
            "alpha": ("time", np.asarray(path.alpha)),
            "loss": ("time", np.asarray(path.loss)),
            "weight": (("time", "second"), np.asarray(path.w)),
            "bias": (("time", "second"), np.asarray(path.b)),
        },
        {"time": times, "name": list(EVENTS)},
    )
    default = (
        settings.features == 10
        and settings.law == "bessel"
        and settings.clip == (100.0, 1000.0, 10.0)
        and settings.epsilon == 1e-2
    )
    attributes = dict(
        weight_bound=settings.clip[1],
        level_time=stages.level_time,
        order_ok=int(stages.order_ok),
        worked_example=int(default),
    )
    if at is not None:
        attributes |= dict(alpha_at_t1=float(at.alpha), bias_at_t1=float(at.b.mean()))
    verdicts = {
        "Lemma C.5(b): the spread of the weights does not grow before T_1.1": LemmaC5()(
            times, path.w, stages.t11
        ),
        "Lemma C.7: the bias stays between half and twice E f*": LemmaC7()(
            law, alpha, clip=settings.clip
        ),
    }
    if default:
        verdicts["Lemma 4.2: the state at the end of Stage 1"] = Lemma42()(
            law, alpha, w, b, clip=settings.clip, horizon=10.0
        )
        assert at is not None  # the worked example ends Stage 1
        verdicts["Lemma C.13 at the end of Stage 1"] = LemmaC13()(law, float(at.alpha), at.w, at.b)
    return with_verdicts(table.assign_attrs(attributes), [verdicts])


def draw(table: xr.Dataset) -> FigureSpec:
    lines = [
        VLine(float(t), LABELS[str(name)], dash=dash)
        for name, t, dash in zip(table.name.values, table.event.values, DASHES, strict=True)
        if np.isfinite(t)
    ]
    finite = np.where(np.isfinite(table.loss.values), table.loss.values, np.nan)
    weights = [
        Line(
            table.time.values,
            table.attrs["weight_bound"] * table.weight.isel(second=j).values,
            group="w",
        )
        for j in range(table.sizes["second"])
    ]
    panels = (
        Panel(
            "Loss (infinite before T₁.₁)",
            "time t",
            "L",
            (Line(table.time.values, finite), *lines),
            xscale="log",
            yscale="log",
        ),
        Panel(
            "Second-layer weights",
            "time t",
            "R w₂, mean −1 at T₁",
            (*weights, *lines),
            xscale="log",
            yscale="symlog",
        ),
        Panel(
            "Size of the first layer",
            "time t",
            "α",
            (Line(table.time.values, table.alpha.values), *lines),
            xscale="log",
            yscale="log",
        ),
    )
    return FigureSpec("Stages of training at infinite width", panels, columns=3)


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    events = table.event.values
    statements = [
        Claim(
            "the stages come in their order",
            holds=bool(np.all(np.diff(events[:3]) > 0)) and bool(table.attrs["order_ok"]),
        ),
        *verdict_claims(table),
    ]
    if table.attrs["worked_example"]:
        for name, value, expected in zip(EVENTS, events, EXPECTED, strict=True):
            statements.append(
                Claim(f"{name}", float(value), expected=expected, tolerance=5e-5, relative=True)
            )
        statements.append(
            Claim(
                "α at T_1",
                table.attrs["alpha_at_t1"],
                expected=0.0129348,
                tolerance=1e-5,
                relative=True,
            )
        )
        statements.append(
            Claim(
                "mean bias at T_1",
                table.attrs["bias_at_t1"],
                expected=0.326108,
                tolerance=1e-5,
                relative=True,
            )
        )
        t1, t2 = float(table.event.sel(name="T_1")), float(table.event.sel(name="T_2"))
        states = {
            "the loss passes 1e-2 at T_2": (table.loss, t2, 1e-2),
            "α passes its value at T_1": (table.alpha, t1, table.attrs["alpha_at_t1"]),
            "the mean bias passes its value at T_1": (
                table.bias.mean("second"),
                t1,
                table.attrs["bias_at_t1"],
            ),
        }
        for text, (curve, time, level) in states.items():
            statements.append(Claim(f"on the path {text}", holds=_passes(curve, time, level)))
    return tuple(statements)


def _passes(curve: xr.DataArray, time: float, level: float) -> bool:
    """Whether `level` lies between the last record before `time` and the first one after it."""
    before = float(curve.values[curve.time.values <= time][-1])
    after = float(curve.values[curve.time.values >= time][0])
    return min(before, after) <= level <= max(before, after)


EXPERIMENT = Experiment(
    name="ren2023-stages",
    paper="ren2023",
    title="Stages of training as events",
    figure="Section 4 (stages)",
    settings={
        "smoke": Settings(
            features=3,
            clip=(30.0, 27.0, 10.0),
            epsilon=3e-2,
            horizon=40.0,
            points=30,
            law="arcsine",
        ),
        "default": Settings(),
        "paper": Settings(points=400),
    },
    run=run,
    draw=draw,
    claims=claims,
)
