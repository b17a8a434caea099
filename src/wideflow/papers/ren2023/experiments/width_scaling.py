r"""A wide finite network follows the reduced flow with an error of order $1/m_1$ (ren2023, Section
4).

Both are stepped by explicit Euler of the same length, so that only the width differs.

Run:  wideflow run ren2023-width     Takes:  default about 1 min on two cores
"""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.precision import double
from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....experiments.spread import standard_error
from ....figures import FigureSpec, Line, Panel, Points
from ....training.train import train
from ..clipped_flow import ClippedFlow
from ..depth_separator import DepthSeparator
from ..laws.base import sphere
from ..laws.bessel import BesselLaw
from ..limits.flow import reduced_flow
from ..population import Radial

SETTING = dict(features=10, alpha=0.2, weight=-0.8, bias=0.5, rate=0.1, time=40.0)  # of the table
# relative deviation at t = 40, mean and standard error over 6, 6 and 4 seeds: alpha, w, b
TABLE = {
    32: ((-2.79e-2, 3.0e-3), (-1.55e-2, 1.7e-3), (-1.40e-2, 1.5e-3)),
    128: ((-6.9e-3, 9e-4), (-3.9e-3, 5e-4), (-3.5e-3, 5e-4)),
    512: ((-1.55e-3, 1.3e-4), (-9.9e-4, 7e-5), (-7.5e-4, 5e-5)),
}


@dataclass(frozen=True)
class Settings:
    features: int = 10
    widths: tuple[int, ...] = (32, 128, 512)
    second: int = 4
    alpha: float = 0.2
    weight: float = -0.8
    bias: float = 0.5
    batch: int = 1024
    rate: float = 0.1
    time: float = 40.0
    seeds: int = 4


@double
def run(settings: Settings, key, session) -> xr.Dataset:
    law = BesselLaw(settings.features)
    limit = reduced_flow(
        law, settings.alpha, settings.weight, settings.bias, settings.time, rate=settings.rate
    )
    reference = {name: float(getattr(limit, name)[-1]) for name in ("alpha", "w", "b")}
    norm = math.sqrt(settings.alpha / law.gain)
    population = Radial.fresh(law, settings.batch, stratified=True, antithetic=True, evaluation=256)
    deviations = {name: np.zeros((len(settings.widths), settings.seeds)) for name in reference}
    for i, width in enumerate(settings.widths):
        for seed in range(settings.seeds):
            here = named_key(key, "seed", seed, "width", width)
            net = DepthSeparator(
                norm * sphere(named_key(here, "net"), width, settings.features),
                np.full(settings.second, settings.weight),
                np.full(settings.second, settings.bias),
            )
            steps = round(settings.time / settings.rate)
            done = i * settings.seeds + seed
            end = train(
                net,
                population,
                ClippedFlow(settings.rate),
                steps=steps,
                every=steps,
                key=here,
                session=session.within(
                    done, len(settings.widths) * settings.seeds, f"width {width}"
                ),
            ).model
            values = {
                "alpha": end.alpha,
                "w": end.second_weight.mean(),
                "b": end.second_bias.mean(),
            }
            for name in reference:
                deviations[name][i, seed] = float(values[name]) / reference[name] - 1
    columns = {name: (("width", "seed"), values) for name, values in deviations.items()}
    table = xr.Dataset(columns, {"width": list(settings.widths), "seed": np.arange(settings.seeds)})
    table = table.assign_attrs({f"limit_{name}": value for name, value in reference.items()})
    tabulated = {name: getattr(settings, name) for name in SETTING} == SETTING
    return table.assign_attrs(tabulated=int(tabulated))


def draw(table: xr.Dataset) -> FigureSpec:
    marks = []
    for name, label in (("alpha", "α"), ("w", "w̄₂"), ("b", "b̄₂")):
        mean = np.abs(table[name].mean("seed").values)
        error = standard_error(table[name]).values
        marks.append(Points(table.width.values, mean, label, errors=error))
    guide = np.abs(table.alpha.mean("seed").values[0]) * table.width.values[0] / table.width.values
    marks.append(Line(table.width.values, guide, "1/m₁", dash="dashed"))
    panel = Panel(
        "Deviation from infinite width",
        "first-layer width m₁",
        "|mean relative deviation|",
        marks,
        xscale="log",
        yscale="log",
    )
    return FigureSpec("Finite networks against the reduced flow", (panel,), columns=1)


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    mean = np.abs(table.alpha.mean("seed").values)
    statements = [
        Claim("deviation of α at the largest width, relative", float(mean[-1]), at_most=0.1)
    ]
    if not table.attrs["tabulated"] or table.sizes["seed"] < 4 or table.sizes["width"] < 3:
        return tuple(statements)
    slope = float(np.polyfit(np.log(table.width.values), np.log(mean), 1)[0])
    statements += [
        Claim("slope of log |mean deviation of α| on log m₁", slope, at_least=-1.3, at_most=-0.8),
        Claim(
            "α at infinite width, Euler with rate 0.1, t = 40",
            table.attrs["limit_alpha"],
            expected=0.41051899,
            tolerance=1e-8,
        ),
        Claim(
            "α, w̄₂, b̄₂ at every width against the tabulated deviations, in standard errors",
            _distance(table),
            at_most=4.0,
        ),
    ]
    return tuple(statements)


def _distance(table: xr.Dataset) -> float:
    """The largest difference from the table, over the standard error of the difference."""
    worst = 0.0
    for width in set(TABLE) & {int(m) for m in table.width.values}:
        at = table.sel(width=width)
        for name, (expected, error) in zip(("alpha", "w", "b"), TABLE[width], strict=True):
            own = float(standard_error(at[name]))
            worst = max(worst, abs(float(at[name].mean()) - expected) / math.hypot(error, own))
    return worst


EXPERIMENT = Experiment(
    name="ren2023-width",
    paper="ren2023",
    title="Wide networks follow the reduced flow",
    figure="Section 4 (width)",
    settings={
        "smoke": Settings(widths=(64,), batch=128, time=4.0, seeds=2),
        "default": Settings(),
        "paper": Settings(widths=(32, 128, 512, 2048), seeds=6),
    },
    run=run,
    draw=draw,
    claims=claims,
)
