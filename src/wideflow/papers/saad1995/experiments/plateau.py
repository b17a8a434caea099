r"""The symmetric plateau of online learning: the equations on simulations, and its length
(saad1995, sections III and IV).

A student of $K$ units erf learns a teacher of as many orthogonal ones. All students first learn
what the teachers have in common (the plateau), and part only as the small difference in their
overlaps has grown: the time this takes rises by equal amounts as that difference shrinks by equal
factors, for it grows exponentially.

Run:  wideflow run saad1995-plateau
"""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.activations import scaled_erf
from ...._core.errors import check_count, check_positive
from ...._core.randomness import named_key
from ....data.multi_index import MultiIndex
from ....dynamics.online_sgd import OnlineSGD
from ....experiments.base import Claim, Experiment
from ....experiments.online import simulated_errors
from ....experiments.spread import standard_error
from ....figures import FigureSpec, Line, Panel, Points
from ....limits.order_parameters import OnlineEquations, Overlaps, order_parameters
from ....limits.plateau import plateau
from ....models.shallow import Shallow
from ....training.session import Session

ERF = scaled_erf(1 / math.sqrt(2))
LENGTH = 0.25  # Q_kk at the start
ROUNDING = 1e-16  # the error is a difference of numbers of order one, and ends at zero


@dataclass(frozen=True)
class Settings:
    widths: tuple[int, ...] = (2, 3, 4)
    features: int = 1000
    rate: float = 1.0
    difference: float = 0.1  # M_kk - M_kr at the start of the simulations
    differences: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4)  # of the equations alone
    simulated: float = 60.0
    horizon: float = 1200.0
    records: int = 30
    seeds: int = 10

    def __post_init__(self):
        for name in ("features", "records", "seeds"):
            check_count(name, getattr(self, name))
        for name in ("rate", "difference", "simulated", "horizon"):
            check_positive(name, getattr(self, name))


def run(settings: Settings, key, session: Session) -> xr.Dataset:
    widths = settings.widths
    records = np.linspace(0.0, settings.simulated, settings.records + 1)
    steps = np.round(records * settings.features).astype(int)
    times = steps / settings.features
    grid = np.concatenate([[0.0], np.geomspace(0.1, settings.horizon, 600)])
    simulated = np.full((len(widths), settings.seeds, len(times)), np.nan)
    predicted = np.full((len(widths), len(times)), np.nan)
    curves = np.full((len(widths), len(settings.differences), len(grid)), np.nan)
    for i, width in enumerate(widths):
        equations = OnlineEquations(ERF, ERF, rate=settings.rate)
        start = _start(width, settings.difference)
        predicted[i] = order_parameters(equations, start, times).error
        for j, difference in enumerate(settings.differences):
            errors = order_parameters(equations, _start(width, difference), grid).error
            curves[i, j] = np.maximum(errors, ROUNDING)
        part = session.within(i, len(widths), f"{width} units")
        simulated[i] = _simulate(settings, key, width, steps, part)
    return xr.Dataset(
        {
            "simulated": (("width", "seed", "time"), simulated),
            "predicted": (("width", "time"), predicted),
            "curve": (("width", "difference", "tau"), curves),
        },
        {
            "width": list(widths),
            "time": times,
            "difference": list(settings.differences),
            "tau": grid,
        },
        {"features": settings.features, "rate": settings.rate},
    )


def _start(width: int, difference: float) -> Overlaps:
    M = difference * np.eye(width)
    return Overlaps(M, LENGTH * np.eye(width), np.eye(width), np.ones(width))


def _simulate(settings: Settings, key, width: int, steps, session) -> np.ndarray:
    """The error of every seed; neuron k starts at `difference` e_k + rest e_(K+k), whose overlaps
    are those of `_start`.
    """
    d = settings.features
    rest = math.sqrt(LENGTH - settings.difference**2)
    hidden = settings.difference * np.eye(width, d) + rest * np.eye(width, d, width)
    # NTK scaling: pre-activations over sqrt(d), outputs over sqrt(K), which the output weights undo
    net = Shallow(math.sqrt(d) * hidden, np.full(width, math.sqrt(width)), activation=ERF)
    population, sgd = MultiIndex(ERF, np.eye(width, d)), OnlineSGD(settings.rate)
    keys = [named_key(key, "samples", width, seed) for seed in range(settings.seeds)]
    return simulated_errors(net, population, sgd, steps, keys, session)


def escapes(table: xr.Dataset, width: int) -> np.ndarray:
    """When each start of the equations falls to half the plateau of the most symmetric one; NaN
    where it does not.
    """
    curves = table["curve"].sel(width=width).values[:, 1:]
    tau = table["tau"].values[1:]
    flat = plateau(tau, curves[-1])
    if flat is None:
        return np.full(len(curves), math.nan)
    return np.array([_crossing(tau, curve, flat.level / 2) for curve in curves])


def _crossing(tau, curve, level: float) -> float:
    """The last time above the level and the next, by a straight line in the error's logarithm."""
    above = np.flatnonzero(curve > level)[-1]
    if above == len(tau) - 1:
        return math.nan
    high, low = np.log(curve[above]), np.log(curve[above + 1])
    share = (high - math.log(level)) / (high - low)
    return float(tau[above] + share * (tau[above + 1] - tau[above]))


def draw(table: xr.Dataset) -> FigureSpec:
    panels = []
    for width in table["width"].values:
        at = table.sel(width=width)
        marks = (
            Line(table["time"].values, at["predicted"].values, "equations"),
            Points(table["time"].values, at["simulated"].mean("seed").values, "simulations"),
        )
        panels.append(Panel(f"{width} units", "τ = steps / d", "error", marks, yscale="log"))
    starts = [
        Line(
            table["tau"].values[1:],
            table["curve"].sel(width=table["width"].values[0], difference=d).values[1:],
            f"{d:g}",
        )
        for d in table["difference"].values
    ]
    panels.append(Panel("Smaller differences stay longer", "τ", "error", starts, "log", "log"))
    return FigureSpec("The symmetric plateau", panels, columns=2)


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    statements = []
    for width in table["width"].values:
        at = table.sel(width=width).isel(time=slice(1, None))
        error = standard_error(at["simulated"])
        # the equations leave out terms of order 1/d: of the error's own size over d, as a rule
        slack = 3 * error + 3 * at["predicted"] / table.attrs["features"]
        inside = np.abs(at["simulated"].mean("seed") - at["predicted"]) <= slack
        text = f"{width} units: share of records with the equations within three standard errors"
        statements.append(Claim(text, float(inside.mean()), at_least=0.95))
        times = escapes(table, int(width))
        gaps = np.diff(times)[1:]
        text = (
            f"{width} units: equal factors of the difference cost equal times (largest over "
            "smallest)"
        )
        statements.append(Claim(text, float(gaps.max() / gaps.min()), at_most=1.1))
    longest = [escapes(table, int(width))[-1] for width in table["width"].values]
    statements.append(Claim("more units stay longer", holds=bool(np.all(np.diff(longest) > 0))))
    return tuple(statements)


EXPERIMENT = Experiment(
    name="saad1995-plateau",
    paper="saad1995",
    title="The symmetric plateau of online learning and its length",
    figure="Sections III and IV",
    settings={
        "smoke": Settings(
            widths=(2,),
            features=40,
            differences=(1e-1, 1e-2, 1e-3),
            simulated=2.0,
            records=4,
            seeds=2,
        ),
        "default": Settings(),
        "paper": Settings(features=4000, seeds=20),
    },
    run=run,
    draw=draw,
    claims=claims,
    claims_from_size="default",
)
