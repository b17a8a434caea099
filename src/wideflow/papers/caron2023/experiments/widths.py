"""Lazy or not as the width grows: what replaces the width conditions no computer meets (caron2023,
sections 4 and 5).

Sphere data (n = 20, d = 10, noise 0.1), descent of rate 2 on the half sum of squares to equal flow
times. Under gamma = 1 the largest movement of a node and the change of the Gram matrix fall like
m^(-1/2); under gamma < 1 both stay flat, and nodes move in proportion to the root of their weight.

Run:  wideflow run caron2023-widths            Takes:  default 1 min on two cores, smoke 10 s
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from scipy.special import stdtrit

from .... import data, observables
from ...._core.precision import Precision
from ...._core.randomness import named_key
from ....dynamics.descent import GradientDescent
from ....dynamics.losses import HalfSumSquares
from ....experiments.base import Claim, Experiment
from ....experiments.spread import deviation
from ....figures import FigureSpec, Line, Panel, Points
from .members import ALPHAS, GAMMAS, LAZY, check_settings, numbers, start, train_members


@dataclass(frozen=True)
class Settings:
    samples: int = 20
    features: int = 10
    noise: float = 0.1
    widths: tuple[int, ...] = (125, 250, 500, 1000, 2000)
    width: int = 0  # set from `widths`, one after the other
    gammas: tuple[float, ...] = GAMMAS
    alphas: tuple[float, ...] = ALPHAS
    convention: str = "paper"
    shifted: bool = False  # the released code's power law, one index too low
    rate: float = 2.0
    steps: int = 1000
    records: int = 1
    seeds: int = 5
    precision: Precision = "float64"

    def __post_init__(self):
        check_settings(self)
        if len(set(self.widths)) < 2:
            raise ValueError(
                "`widths` must hold at least two different widths, as slopes are fitted over "
                f"them, got {self.widths}."
            )


def run(settings: Settings, key, session) -> xr.Dataset:
    dataset = data.sphere_sines(
        named_key(key, "data"), settings.samples, settings.features, settings.noise
    )
    record = [
        observables.Risk(),
        observables.WeightMovement(),
        observables.KernelDistance("spectral", relative=False),
        observables.KernelMinEigenvalue(),
    ]
    tables = []
    for number, width in enumerate(settings.widths):
        one = replace(settings, width=width)
        table, nets = train_members(
            one,
            key,
            dataset,
            None,
            GradientDescent(settings.rate),
            loss=HalfSumSquares(),
            record=record,
            session=session.within(number, len(settings.widths), f"width {width}"),
        )
        end = table.isel(step=-1, drop=True)
        tables.append(
            xr.Dataset(
                {
                    "risk": end["risk"],
                    "movement": end["most_moved"],
                    "drift": end["kernel_drift"],
                    "gap": table["kernel_gap"].isel(step=0, drop=True),
                    "slope": (("setting", "seed"), _slopes(one, key, nets, settings.features)),
                }
            )
        )
    joined = xr.concat(
        tables, xr.DataArray(list(settings.widths), dims="width", name="width"), join="exact"
    )
    return joined.assign_attrs(table.attrs | {"time": settings.rate * settings.steps})


def _slopes(settings, key, nets, features) -> np.ndarray:
    """Slope of log movement against log weight over the nodes that moved; NaN where all weights are
    equal.
    """
    slopes = np.full((len(nets), settings.seeds), np.nan)
    for i, row in enumerate(nets):
        if settings.gammas[i] == 1:
            continue
        for s, net in enumerate(row):
            first = start(settings, key, s, i, features)
            moved = np.linalg.norm(np.asarray(net.weights - first.weights), axis=0)
            moving = moved > 0
            slopes[i, s] = np.polyfit(
                np.log(np.asarray(first.node_weights)[moving]), np.log(moved[moving]), 1
            )[0]
    return slopes


def exponent(values: xr.DataArray) -> tuple[float, float]:
    """Fitted power of the width and the half length of its 95 % interval, from one fit a seed."""
    x = np.log(values["width"].values)
    fits = [np.polyfit(x, np.log(values.sel(seed=s).values), 1)[0] for s in values["seed"].values]
    spread = np.std(fits, ddof=1) / math.sqrt(len(fits)) if len(fits) > 1 else math.nan
    return float(np.mean(fits)), float(stdtrit(max(1, len(fits) - 1), 0.975) * spread)


def draw(table: xr.Dataset) -> FigureSpec:
    shown = []
    for name, title, axis in (
        ("movement", "Movement of the most-moved node", "‖w(T) − w(0)‖"),
        ("drift", "Change of the Gram matrix", "‖Θ(T) − Θ(0)‖₂"),
    ):
        marks = []
        for setting in table["setting"].values:
            values = table[name].sel(setting=setting)
            mean, width = numbers(values.mean("seed")), numbers(table["width"])
            marks.append(Line(width, mean, str(setting), group=str(setting)))
            marks.append(
                Points(
                    width,
                    mean,
                    errors=numbers(deviation(values)),
                    group=str(setting),
                )
            )
        shown.append(Panel(title, "width m", axis, marks, xscale="log", yscale="log"))
    return FigureSpec(
        "Lazy (γ=1) or feature learning (γ<1) as the width grows",
        shown,
        caption="Mean over seeds with standard deviations.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    statements = []
    for name, text, low, high in (
        ("movement", "movement", -0.65, -0.35),
        ("drift", "Gram change", -0.8, -0.2),
    ):
        value, half = exponent(table[name].sel(setting=LAZY))
        statements.append(
            Claim(
                f"γ=1: power of the width in the {text}",
                value,
                at_least=low,
                at_most=high,
                note=f"95 % interval ± {half:.2f}",
            )
        )
        for setting in table["setting"].values:
            if setting == LAZY:
                continue
            mean = table[name].sel(setting=setting).mean("seed").values
            statements.append(
                Claim(
                    f"{setting}: {text}, largest over smallest mean across widths",
                    float(mean.max() / mean.min()),
                    at_most=2.5,
                )
            )
    widest = table.isel(width=-1)
    if int(table["width"].values[-1]) >= 2000:
        for setting in table["setting"].values:
            if setting != LAZY:
                statements.append(
                    Claim(
                        f"{setting}: slope of log movement in log weight at m = "
                        f"{int(widest['width'])}",
                        float(widest["slope"].sel(setting=setting).mean()),
                        at_least=0.36,
                        at_most=0.56,
                    )
                )
    drift, gap = (widest[name].mean("seed").values for name in ("drift", "gap"))
    statements.append(
        Claim(
            "Gram change rises along the settings at the largest width",
            holds=bool(np.all(np.diff(drift) > 0)),
        )
    )
    statements.append(
        Claim(
            "smallest eigenvalue at t = 0 falls along the settings",
            holds=bool(np.all(np.diff(gap) < 0)),
        )
    )
    return tuple(statements)


EXPERIMENT = Experiment(
    name="caron2023-widths",
    paper="caron2023",
    title="Feature learning as the width grows",
    figure="Theorems 4.1 and 5.1, scaling in the width",
    claims_from_size="default",
    settings={
        "smoke": Settings(widths=(125, 500), steps=200, seeds=2),
        "default": Settings(),
        "paper": Settings(widths=(125, 250, 500, 1000, 2000, 4000, 8000), seeds=10),
    },
    run=run,
    draw=draw,
    claims=claims,
)
