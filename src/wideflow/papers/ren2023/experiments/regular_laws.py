r"""The same learner on laws with finite moments (ren2023, extension of Section 4).

Uniform and Gaussian radii need no projection. The start is norm 1, weight -0.01, bias 0.3; a start at weight 0 is about 1 % later. A Gaussian radius concentrates as $d$ grows, so the target's variance, and with
it the loss to be learnt, vanishes.

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

EXPECTED = {
    "uniform radius, d = 20": (109.0, 146.0),
    "Gaussian, d = 20": (859.0, 1352.0),
    "Gaussian, d = 5": (155.0, 236.0),
}

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
    weight: float = -0.01
    bias: float = 0.3
    laws: tuple[str, ...] = tuple(LAWS)
    seeds: int = 1

    def __post_init__(self):
        for name in self.laws:
            check_choice("laws", name, LAWS)


@double
def run(settings: Settings, key, session) -> xr.Dataset:
    times = np.linspace(settings.horizon / settings.points, settings.horizon, settings.points)
    losses = []
    for i, name in enumerate(settings.laws):
        law = LAWS[name]()
        path = reduced_flow(law, alpha_of_norm(law.d, 1.0), settings.weight, settings.bias, times)
        losses.append(np.asarray(path.loss))
        session.progress(i + 1, len(settings.laws), name)
    return xr.Dataset(
        {"loss": (("law", "time"), np.array(losses))}, {"law": list(settings.laws), "time": times}
    )


def draw(table: xr.Dataset) -> FigureSpec:
    lines = [
        Line(table.time.values, table.loss.sel(law=name).values, str(name))
        for name in table.law.values
    ]
    panel = Panel("Loss at infinite width", "time t", "L", lines, xscale="log", yscale="log")
    return FigureSpec("The learner on other radial laws", (panel,), columns=1)


def _time(table, law, level) -> float:
    curve = table.loss.sel(law=law).values
    below = np.flatnonzero(curve <= level)
    return float(table.time.values[below[0]]) if below.size else np.inf


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    found = [
        Claim(
            f"{name}: loss falls monotonically",
            holds=bool(np.all(np.diff(table.loss.sel(law=name).values) < 1e-12)),
        )
        for name in table.law.values
    ]
    if table.time.values[-1] >= 1500:
        for name, expected in EXPECTED.items():
            if name not in table.law.values:
                continue
            for level, time in zip((1e-3, 1e-4), expected, strict=True):
                found.append(
                    Claim(
                        f"{name}: time to L = {level:g}",
                        _time(table, name, level),
                        expected=time,
                        tolerance=1.5,
                    )
                )
    if {"arcsine, d = 100", "Bessel, d = 100"} <= set(table.law.values) and table.time.values[
        -1
    ] >= 400:
        gap = abs(
            _time(table, "arcsine, d = 100", 1e-3) / _time(table, "Bessel, d = 100", 1e-3) - 1
        )
        found.append(
            Claim(
                "arcsine limit of the Bessel law: time to L = 1e-3, relative difference",
                gap,
                at_most=0.02,
            )
        )
    return tuple(found)


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
