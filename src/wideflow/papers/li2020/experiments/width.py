r"""How width shortens the plateau, and that a narrow network still converges (li2020, sections 1
and 4; Claim 2.1).

Exact population. The time to half the floor falls from $m = d$ to $m \gg d$ and levels off at its
infinite-width value; at time zero the loss exceeds the Gaussian cloud's by exactly
$(1 + 2/d - d\mu_d^2)/m$ on average (Claim 2.1).

Run:  wideflow run li2020-width
Takes:  default 1 min on two cores, smoke 5 s, paper (m to 1000) 1 h
"""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....experiments.spread import standard_error
from ....figures import FigureSpec, HLine, Line, Panel, Points
from ....models.homogeneous import Homogeneous
from ..limits.gaussian_cloud import gaussian_cloud_loss, width_excess
from ..limits.hermite import population_gradient, population_loss
from ..theorems.concentration import FiniteWidthGradient, FiniteWidthLoss
from .stage_runs import median, run_events, shared, stage_table


@dataclass(frozen=True)
class Settings:
    features: int = 20
    widths: tuple[int, ...] = (20, 40, 80, 160)
    rate: float = 0.25
    time: float = 1400.0
    records: int = 250
    seeds: int = 4
    draws: int = 64


def run(settings: Settings, key, session) -> xr.Dataset:
    d, halves, ends, covered = settings.features, [], [], []
    for i, width in enumerate(settings.widths):
        table = stage_table(
            named_key(key, "width", width),
            **shared(settings),
            width=width,
            session=session.within(i, len(settings.widths), f"m = {settings.widths[i]}"),
        )
        halves.append(run_events(table)["T2"])
        ends.append(table.population.isel(step=-1).values)
        covered.append(table.covered_directions.isel(step=-1).values)
    axes = ("width", "seed")
    starts, errors = zip(*(_starts(settings, key, width) for width in settings.widths), strict=True)
    return xr.Dataset(
        {
            "half_time": (axes, np.array(halves), {"label": "τ at half the floor"}),
            "start": (("width", "draw"), np.array(starts), {"label": "population loss at time 0"}),
            "gradient_error": (
                "width",
                np.array(errors),
                {"label": "root mean square error of a neuron's gradient at time 0"},
            ),
            "end": (axes, np.array(ends), {"label": "population loss at the end"}),
            "covered_directions": (axes, np.array(covered), {"label": "directions found"}),
            "predicted_start": (
                "width",
                [
                    float(gaussian_cloud_loss(np.full(d, 1 / d))) + width_excess(d, m)
                    for m in settings.widths
                ],
            ),
        },
        {"width": list(settings.widths), "seed": np.arange(settings.seeds)},
        {
            "features": d,
            "loss": "population mean of squares",
            "limit_start": float(gaussian_cloud_loss(np.full(d, 1 / d))),
            "floor": table.attrs["floor"],
        },
    )


def _starts(settings: Settings, key, width: int) -> tuple[list[float], float]:
    """Losses of networks at time zero, and the root mean square error of a neuron's mean-field
    gradient against the limit's.
    """
    d = settings.features
    a = np.full(d, 1 / d)
    losses, errors = [], []
    for i in range(settings.draws):
        net = Homogeneous.init(named_key(key, "draw", width, i), features=d, width=width)
        losses.append(float(population_loss(net.weights, a)))
        gradient = population_gradient(net.weights, a)
        errors.append(FiniteWidthGradient.width_error(net.weights, gradient, a))
    return losses, float(np.sqrt(np.mean(np.square(errors))))


def draw(table: xr.Dataset) -> FigureSpec:
    m, d = table.width.values, table.attrs["features"]
    every, drawn = (np.repeat(m, table.sizes[axis]) for axis in ("seed", "draw"))
    return FigureSpec(
        f"Width and the plateau, d = {d}",
        [
            Panel(
                "Length of the plateau",
                "width m",
                "τ at half the floor",
                [
                    Points(every, table.half_time.values.ravel(), "each seed"),
                    Line(m, [median(row) for row in table.half_time.values], "median"),
                ],
                xscale="log",
            ),
            Panel(
                "Loss at time zero (Claim 2.1)",
                "width m",
                "d × loss",
                [
                    Points(drawn, d * table.start.values.ravel(), "each draw"),
                    Line(m, d * table.predicted_start.values, "L∞ + (1 + 2/d − dμ²)/m"),
                    HLine(d * table.attrs["limit_start"], "infinite width"),
                ],
                xscale="log",
                yscale="log",
            ),
        ],
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    halves = np.array([median(row) for row in table.half_time.values])
    d, m = table.attrs["features"], table.width.values
    loss = FiniteWidthLoss()(m, table.start.values, np.full(d, 1 / d)).numbers
    error = standard_error(table.start, "draw")
    deviation = float((abs(table.start.mean("draw") - table.predicted_start) / error).max())
    gradient = FiniteWidthGradient()(m, table.gradient_error.values).numbers
    return (
        Claim(
            "the widest network leaves the plateau first (ratio of T₂, widest to narrowest)",
            float(halves[-1] / halves[0]),
            at_most=0.9,
        ),
        *_plateau(d, m, halves, table.sizes["seed"]),
        Claim(
            "every width ends below a twentieth of the floor (largest ratio)",
            float(table.end.max()) / table.attrs["floor"],
            at_most=0.05,
        ),
        Claim(
            "every width finds all directions, also m = d",
            float(table.covered_directions.min()),
            at_least=float(d),
        ),
        Claim(
            "Claim 2.1: mean loss at time 0 minus prediction, in standard errors (largest over "
            "widths)",
            deviation,
            at_most=4.0,
            note="with its exact constant (1 + 2/d − dμ²)/m",
        ),
        Claim(
            "Claim 2.1: log-log slope of the root mean square of L − L∞ on m",
            loss["slope"],
            at_least=-1.2,
            at_most=-0.4,
        ),
        Claim(
            "Claim 2.1: log-log slope of the error of a neuron's gradient on m",
            gradient["slope"],
            expected=-0.5,
            tolerance=0.15,
            note="with the factor m that is missing in print",
        ),
    )


def _plateau(d: int, widths, halves, seeds: int) -> list[Claim]:
    """The length itself where it is known: m = 4d, from d = 20 on, a median of three seeds or
    more.
    """
    if d < 20 or seeds < 3 or 4 * d not in widths:
        return []
    length = float(halves[list(widths).index(4 * d)]) * math.log(d) / d**2
    return [Claim("m = 4d: T₂ ln d/d² (median)", length, at_least=1.4, at_most=1.9)]


EXPERIMENT = Experiment(
    name="li2020-width",
    paper="li2020",
    title="Width and the plateau",
    figure="Sections 1 and 4, Claim 2.1",
    settings={
        "smoke": Settings(features=8, widths=(8, 64), time=250.0, records=60, seeds=3),
        "default": Settings(),
        "paper": Settings(
            features=30, widths=(30, 60, 100, 120, 300, 1000), time=1500.0, records=500, seeds=5
        ),
    },
    run=run,
    draw=draw,
    claims=claims,
)
