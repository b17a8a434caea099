r"""The same learner on laws with finite moments (ren2023, extension of Section 4).

Uniform and Gaussian radii need no projection. Two starts, norm 1 and bias 0.3 both: weight $0^-$
and weight -0.01, which is about 1 % earlier. A Gaussian radius concentrates as $d$ grows, so the
target's variance, and with it the loss to be learnt, vanishes.

Run:  wideflow run ren2023-regular-laws     Takes:  default about 30 s, most of it compilation
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.errors import check_choice
from ...._core.precision import double
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, Line, Panel
from ..laws.arcsine import ArcsineLaw
from ..laws.bessel import BesselLaw
from ..laws.regular import GaussianRadius, UniformRadius
from ..limits.flow import alpha_of_norm, reduced_flow
from .crossings import first_times

# times to L = 1e-3, 1e-4 from 0- and from -0.01; LSODA on the incomplete gamma function and on
# polynomials
EXPECTED = {
    "uniform radius, d = 20": ((109.47, 146.80), (108.81, 146.15)),
    "Gaussian, d = 20": ((868.12, 1360.49), (859.38, 1351.75)),
    "Gaussian, d = 5": ((156.41, 237.51), (155.32, 236.42)),
}
WEIGHTS = (-1e-6, -0.01)
LEVELS = (1e-3, 1e-4)

LAWS = {
    "uniform radius, d = 20": lambda: UniformRadius(20, 2.0),
    "Gaussian, d = 20": lambda: GaussianRadius(20),
    "Gaussian, d = 5": lambda: GaussianRadius(5),
    "Bessel, d = 100": lambda: BesselLaw(100),
    "arcsine, d = 100": lambda: ArcsineLaw(100),
}


@dataclass(frozen=True)
class Settings:
    horizon: float = 1500.0
    points: int = 3000
    bias: float = 0.3
    laws: tuple[str, ...] = tuple(LAWS)
    seeds: int = 1

    def __post_init__(self):
        for name in self.laws:
            check_choice("laws", name, LAWS)


@double
def run(settings: Settings, key, session) -> xr.Dataset:
    times = np.linspace(settings.horizon / settings.points, settings.horizon, settings.points)
    losses = np.zeros((len(settings.laws), len(WEIGHTS), settings.points))
    for i, name in enumerate(settings.laws):
        law = LAWS[name]()
        for j, weight in enumerate(WEIGHTS):
            losses[i, j] = reduced_flow(
                law, alpha_of_norm(law.d, 1.0), weight, settings.bias, times
            ).loss
        session.progress(i + 1, len(settings.laws), name)
    reached = np.array([[first_times(curve, times, LEVELS) for curve in pair] for pair in losses])
    return xr.Dataset(
        {
            "loss": (("law", "start", "time"), losses),
            "reached": (("law", "start", "level"), reached),
        },
        {"law": list(settings.laws), "time": times, "start": list(WEIGHTS), "level": list(LEVELS)},
        {"bias": settings.bias},
    )


def draw(table: xr.Dataset) -> FigureSpec:
    late = table.time.values >= 1
    lines = []
    for name in table.law.values:
        loss = table.loss.sel(law=name).isel(start=0).values[late]
        dash = "dashed" if str(name).startswith("arcsine") else "solid"
        lines.append(
            Line(table.time.values[late], np.where(loss > 1e-9, loss, np.nan), str(name), dash=dash)
        )
    panel = Panel("Loss at infinite width", "time t", "L", lines, xscale="log", yscale="log")
    return FigureSpec(
        "The learner on other radial laws",
        (panel,),
        columns=1,
        caption="From weight 0⁻; losses below 1e-9 are not drawn.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    statements = [
        Claim(
            f"{name}: loss falls monotonically, largest rise",
            float(table.loss.sel(law=name).diff("time").max()),
            at_most=1e-12,
        )
        for name in table.law.values
    ]
    if table.attrs["bias"] != 0.3 or table.time.values[-1] < 1500:
        return tuple(statements)
    for name in set(EXPECTED) & set(table.law.values):
        for start, expected in zip(table.start.values, EXPECTED[str(name)], strict=True):
            error = np.abs(table.reached.sel(law=name, start=start).values - expected).max()
            text = (
                f"{name}, from weight {start:g}: times to the two levels, distance from the table"
            )
            statements.append(Claim(text, float(error), at_most=0.02))
    if {"arcsine, d = 100", "Bessel, d = 100"} <= set(table.law.values):
        times = table.reached.isel(start=0)
        gap = abs(times.sel(law="arcsine, d = 100") / times.sel(law="Bessel, d = 100") - 1)
        statements.append(
            Claim(
                "arcsine limit of the Bessel law: times at d = 100, relative difference",
                float(gap.max()),
                at_most=2e-3,
                note="the partial moments differ by 3e-4 to 5e-4",
            )
        )
    return tuple(statements)


EXPERIMENT = Experiment(
    name="ren2023-regular-laws",
    paper="ren2023",
    title="The learner on laws with finite moments",
    figure="Section 4 (other laws)",
    settings={
        "smoke": Settings(horizon=20.0, points=40, laws=("uniform radius, d = 20",)),
        "default": Settings(),
        "paper": Settings(points=15000),
    },
    run=run,
    draw=draw,
    claims=claims,
)
