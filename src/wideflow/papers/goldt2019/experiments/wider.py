r"""A student wider than its teacher generalises worse: the error that the labels' noise leaves
(goldt2019, equation 8 and figure 2).

$K$ units erf learn a teacher of $M$ with noisy labels at rate $\eta$. Near the solution $M$
students follow one teacher each. The $L = K - M$ others are short and act as one linear unit of
weights $S = \sum w$, for which $\dot Q_S = -2\eta\frac2\pi LQ_S + \eta^2L^2\frac2\pi\sigma^2$; its
end $Q_S = \eta L\sigma^2/2$ costs $\frac12\cdot\frac2\pi Q_S$. With the share of the matched pairs,
$$\epsilon_g^* = \frac{\eta\sigma^2}{2\pi}\Big(L + \frac M{\sqrt3}\Big) + O(\eta^2),$$
a line through the origin in $\eta$ and in $\sigma^2$ that rises with the width.

The formula is not the end of every width. At $K = 4$ the error starts at the formula and sinks over
times of order $1/(\eta^2\sigma^2)$ (to 0.8 of it at $\eta = 0.05$, $\sigma^2 = 0.04$,
$\eta\tau = 4000$, still falling); perhaps because two spare units can cancel each other, $w$ and
$-w$, and drift along that direction until they saturate. The widths here, with no, one and three
spare units, settle.

Run:  wideflow run goldt2019-wider
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
from ....figures import FigureSpec, Line, Mark, Panel, Points
from ....limits.order_parameters import OnlineEquations, Overlaps, order_parameters
from ....models.shallow import Shallow
from ....training.session import Session

ERF = scaled_erf(1 / math.sqrt(2))
INDICES = 2
SHORT = 0.05  # length squared of the units that have no teacher, at the start


@dataclass(frozen=True)
class Settings:
    widths: tuple[int, ...] = (2, 3, 5)
    rates: tuple[float, ...] = (0.05, 0.1, 0.2)  # each twice the one before
    noises: tuple[float, ...] = (0.01, 0.04)
    horizon: float = 2000.0  # of the equations, in tau times rate
    features: int = 500
    simulated: float = 40.0  # tau of the simulations, at the largest rate and noise
    records: int = 8
    seeds: int = 12

    def __post_init__(self):
        for name in ("features", "records", "seeds"):
            check_count(name, getattr(self, name))
        for name in ("horizon", "simulated"):
            check_positive(name, getattr(self, name))
        if len(self.rates) < 2 or any(b != 2 * a for a, b in zip(self.rates, self.rates[1:])):
            raise ValueError(f"`rates` must double from one to the next, got {self.rates}.")


def run(settings: Settings, key, session: Session) -> xr.Dataset:
    widths, rates, noises = settings.widths, settings.rates, settings.noises
    ends = np.full((len(widths), len(rates), len(noises), 2), np.nan)
    steps = np.linspace(0, settings.simulated * settings.features, settings.records + 1)
    steps = np.round(steps).astype(int)
    times = steps / settings.features
    predicted = np.full((len(widths), len(times)), np.nan)
    simulated = np.full((len(widths), settings.seeds, len(times)), np.nan)
    for i, width in enumerate(widths):
        start = Overlaps.of_weights(
            _weights(width, 2 * width + INDICES), _teacher(2 * width + INDICES), np.ones(width)
        )
        for j, rate in enumerate(rates):
            for k, noise in enumerate(noises):
                equations = OnlineEquations(ERF, ERF, rate=rate, noise=noise)
                whole = settings.horizon / rate
                # as many times as the simulations record, so that both calls share a compiled
                # program
                late = np.linspace(whole / 2, whole, len(times))
                ends[i, j, k] = np.asarray(order_parameters(equations, start, late).error)[[0, -1]]
        equations = OnlineEquations(ERF, ERF, rate=rates[-1], noise=noises[-1])
        predicted[i] = order_parameters(equations, start, times).error
        part = session.within(i, len(widths), f"{width} units")
        simulated[i] = _simulate(settings, key, width, steps, part)
    return xr.Dataset(
        {
            "asymptote": (("width", "rate", "noise", "end"), ends),
            "predicted": (("width", "time"), predicted),
            "simulated": (("width", "seed", "time"), simulated),
        },
        {
            "width": list(widths),
            "rate": list(rates),
            "noise": list(noises),
            "end": ["half", "whole"],
            "time": times,
        },
        {"features": settings.features},
    )


def _teacher(features: int) -> np.ndarray:
    return np.eye(INDICES, features)


def _weights(width: int, features: int) -> np.ndarray:
    """Unit k < M at overlap 1/2 with its teacher and length 1/2; the others short; rests along
    coordinates of their own.
    """
    own = np.arange(width) < INDICES
    rest = np.where(own, math.sqrt(0.5 - 0.25), math.sqrt(SHORT))
    rows = rest[:, None] * np.eye(width, features, INDICES)
    return rows + 0.5 * own[:, None] * np.eye(width, features)


def _simulate(settings: Settings, key, width: int, steps, session) -> np.ndarray:
    d = settings.features
    # NTK scaling: pre-activations over sqrt(d), outputs over sqrt(K), which the output weights undo
    net = Shallow(
        math.sqrt(d) * _weights(width, d), np.full(width, math.sqrt(width)), activation=ERF
    )
    population = MultiIndex(ERF, _teacher(d), noise=settings.noises[-1])
    keys = [named_key(key, "samples", width, seed) for seed in range(settings.seeds)]
    return simulated_errors(net, population, OnlineSGD(settings.rates[-1]), steps, keys, session)


def first_order(width):
    r"""$\epsilon_g^*/(\eta\sigma^2)$ for small $\eta$."""
    return (width - INDICES + INDICES / math.sqrt(3)) / (2 * math.pi)


def _reduced(table: xr.Dataset) -> xr.DataArray:
    r"""$\epsilon_g^*/(\eta\sigma^2)$."""
    return table["asymptote"].sel(end="whole") / (table["rate"] * table["noise"])


def extrapolated(table: xr.Dataset) -> xr.DataArray:
    """The same at rate zero, from the two smallest rates: what is left is of second order."""
    small = _reduced(table)
    return 2 * small.isel(rate=0) - small.isel(rate=1)


def draw(table: xr.Dataset) -> FigureSpec:
    widths, reduced = table["width"].values, _reduced(table).isel(noise=-1)
    marks: list[Mark] = [
        Points(widths, reduced.sel(rate=rate).values, f"rate {float(rate):g}")
        for rate in table["rate"].values
    ]
    marks.append(Line(widths, first_order(widths), "first order in the rate", dash="dashed"))
    curves = []
    for width in widths:
        at, group = table.sel(width=width), f"{int(width)} units"
        curves.append(
            Line(table["time"].values, at["predicted"].values, f"{group}, equations", group=group)
        )
        curves.append(
            Points(
                table["time"].values,
                at["simulated"].mean("seed").values,
                f"{group}, simulations",
                group=group,
            )
        )
    return FigureSpec(
        "A student wider than its teacher",
        [
            Panel(
                "Error that noise leaves",
                "units K of the student (teacher: 2)",
                "error / (rate x noise)",
                marks,
            ),
            Panel("The equations on simulations", "τ = steps / d", "error", curves, yscale="log"),
        ],
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    ends, limit = table["asymptote"], extrapolated(table)
    moved = np.abs(ends.sel(end="half") / ends.sel(end="whole") - 1)
    off = np.abs(limit / first_order(table["width"]) - 1)
    whole = ends.sel(end="whole")
    after = table.isel(time=slice(1, None))
    error = standard_error(after["simulated"])
    # the equations leave out terms of order 1/d: of the error's own size over d, as a rule
    slack = 3 * error + 3 * after["predicted"] / table.attrs["features"]
    inside = np.abs(after["simulated"].mean("seed") - after["predicted"]) <= slack
    rise = float((whole.isel(noise=-1) / whole.isel(noise=0)).mean())
    factor = float(table["noise"][-1] / table["noise"][0])
    return (
        Claim(
            "the errors have settled: largest relative change over the second half",
            float(moved.max()),
            at_most=0.01,
        ),
        Claim(
            "error / (rate x noise) at rate zero against (L + M/sqrt 3)/(2 pi): largest relative "
            "difference",
            float(off.max()),
            at_most=0.03,
        ),
        Claim(
            "a wider student generalises worse at every rate and noise",
            holds=bool((whole.diff("width") > 0).all()),
        ),
        Claim(
            "a larger rate generalises worse at every width and noise",
            holds=bool((whole.diff("rate") > 0).all()),
        ),
        Claim(
            "growth of the error with the noise, over the noise's own",
            rise / factor,
            expected=1.0,
            tolerance=0.1,
        ),
        Claim(
            "share of records with the equations within three standard errors of simulations",
            float(inside.mean()),
            at_least=0.9,
        ),
    )


EXPERIMENT = Experiment(
    name="goldt2019-wider",
    paper="goldt2019",
    title="The error that noise leaves to a student wider than its teacher",
    figure="Equation 8, Figure 2",
    settings={
        "smoke": Settings(
            widths=(3,),
            rates=(0.1, 0.2),
            noises=(0.01, 0.04),
            features=40,
            simulated=2.0,
            records=2,
            seeds=2,
        ),
        "default": Settings(),
        "paper": Settings(features=2000, simulated=100.0, seeds=24),
    },
    run=run,
    draw=draw,
    claims=claims,
    claims_from_size="default",
)
