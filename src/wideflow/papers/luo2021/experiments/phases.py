r"""The phase diagram of two-layer ReLU networks: where the hidden weights freeze, move, or condense
as the width grows (luo2021, Figures 1 to 4).

Networks f = kappa sum a sigma(w.x) with kappa = m^-gamma and layers that start at ratio m^-gamma'
flow until the loss is a stated share of its start. The relative movement of the hidden weights
grows like m^S: S below 0 is the linear regime, S near 0 the critical one (mean field), S above 0
the condensed one, in which neurons gather on few directions. The line S = 0 over the plane is drawn
beside the published boundary, gamma = 1 for gamma' <= 0 and gamma' = gamma - 1 above. At gamma' = 0
the exponents are gamma - 1 below the boundary and (gamma - 1)/2 above (README.md derives them).

The outputs at the start are taken off, so that below gamma = 1/2, where they grow with the width,
movement is still that of learning.

Run:  wideflow run luo2021-phases            Takes:  see docs/guides/phase-diagrams.md
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.errors import check_between, check_count, check_positive
from ...._core.randomness import named_key
from ....data.dataset import Dataset
from ....dynamics.flow import GradientFlow
from ....dynamics.losses import HalfMeanSquares
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, Heatmap, HLine, Line, Panel, Points
from ....training.recorder import Logarithmic
from ....training.session import Session
from ....training.train import train
from ..two_layer import TwoLayer

NAMED = ((0.5, 0.0), (1.0, 0.0), (1.5, 0.0))  # NTK, mean field, condensed
TITLES = ("NTK (1/2, 0)", "mean field (1, 0)", "condensed (3/2, 0)")
BINS = 60  # of directions over the circle
TOLERANCE = 0.1  # of the specification, for S


@dataclass(frozen=True)
class Settings:
    gammas: tuple[float, ...] = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75)
    gamma_primes: tuple[float, ...] = (-0.5, 0.0, 0.5, 1.0)
    plane_widths: tuple[int, ...] = (100, 300, 900)
    widths: tuple[int, ...] = (100, 200, 400, 800, 1600)
    samples: int = 8
    share: float = 0.05
    time: float = 1000.0
    tolerance: float = 1e-4
    seeds: int = 5
    plane_seeds: int = 1

    def __post_init__(self):
        for name in ("samples", "seeds", "plane_seeds"):
            check_count(name, getattr(self, name))
        check_between("share", self.share, 0.0, 1.0, open=True)
        check_positive("time", self.time)
        check_positive("tolerance", self.tolerance)


def run(settings: Settings, key, session: Session) -> xr.Dataset:
    data = _data(settings)
    named = [(point, width) for width in settings.widths for point in NAMED]
    plane = [
        ((g, p), width)
        for width in settings.plane_widths
        for g in settings.gammas
        for p in settings.gamma_primes
    ]
    total = len(named) * settings.seeds + len(plane) * settings.plane_seeds
    done = 0
    ends: dict[tuple, tuple] = {}
    for (point, width), seeds in [
        *((case, settings.seeds) for case in named),
        *((case, settings.plane_seeds) for case in plane),
    ]:
        for seed in range(seeds):
            if (point, width, seed) not in ends:
                part = session.within(
                    done, total, f"gamma {point[0]:g}, {point[1]:g}, width {width}"
                )
                ends[point, width, seed] = _end(settings, key, data, point, width, seed, part)
            done += 1
    pick = lambda what, point, width, seeds: [ends[point, width, s][what] for s in range(seeds)]
    moved = [[pick(0, p, w, settings.seeds) for w in settings.widths] for p in NAMED]
    losses = [[pick(1, p, w, settings.seeds) for w in settings.widths] for p in NAMED]
    over = [
        [
            [pick(0, (g, p), w, settings.plane_seeds) for w in settings.plane_widths]
            for p in settings.gamma_primes
        ]
        for g in settings.gammas
    ]
    masses = [
        [np.mean(pick(k, p, settings.widths[-1], settings.seeds), axis=0) for k in (2, 3)]
        for p in NAMED
    ]
    return xr.Dataset(
        {
            "movement": (("point", "width", "seed"), moved),
            "loss_share": (("point", "width", "seed"), losses),
            "plane_movement": (("gamma", "gamma_prime", "plane_width", "plane_seed"), over),
            "directions": (("point", "moment", "angle"), masses),
        },
        {
            "width": list(settings.widths),
            "plane_width": list(settings.plane_widths),
            "gamma": list(settings.gammas),
            "gamma_prime": list(settings.gamma_primes),
            "angle": (np.arange(BINS) + 0.5) * 360 / BINS - 180,
        },
        {"loss": "half mean of squares", "stopped_at_share": settings.share},
    )


def _data(settings: Settings) -> Dataset:
    """A smooth function of one input, with a constant as second: both in [-1, 1]."""
    x = np.linspace(-1, 1, settings.samples)
    y = np.sin(np.pi * x) + 0.5 * np.cos(2 * np.pi * x)
    return Dataset(np.stack([x, np.ones_like(x)], axis=1), y, "sum of two waves")


def _end(settings: Settings, key, data: Dataset, point, width: int, seed: int, session: Session):
    """Relative movement of the hidden weights, the loss's share, and the mass of directions at both
    ends.
    """
    net = TwoLayer.init(
        named_key(key, seed), features=2, width=width, gamma=point[0], gamma_prime=point[1]
    )
    start = np.asarray(net.outputs(data.inputs))
    moved_targets = Dataset(data.inputs, data.targets + start, data.name)
    first = 0.5 * float(np.mean(data.targets**2))
    done = train(
        net,
        moved_targets,
        GradientFlow(settings.tolerance, method="tsit5"),
        time=settings.time,
        every=Logarithmic(4, 1e-4),
        loss=HalfMeanSquares(),
        stop_below=settings.share * first,
        session=session,
    )
    before, after = np.asarray(net.weights), np.asarray(done.model.weights)
    movement = float(np.linalg.norm(after - before) / np.linalg.norm(before))
    share = float(done.table["loss"].values[-1]) / first
    return movement, share, _masses(net), _masses(done.model)


def _masses(net: TwoLayer) -> np.ndarray:
    """How the neurons' size |a||w| is spread over the directions of w; sums to 1."""
    w, a = np.asarray(net.weights), np.asarray(net.output)
    angles = np.degrees(np.arctan2(w[1], w[0]))
    sizes = np.abs(a) * np.linalg.norm(w, axis=0)
    masses, _ = np.histogram(angles, BINS, (-180, 180), weights=sizes)
    return masses / masses.sum()


def exponents(movement: np.ndarray, widths) -> np.ndarray:
    """S: slope of the logarithm of the mean over seeds (last axis) against that of the width (last
    but one).
    """
    logs = np.log(np.asarray(movement).mean(axis=-1))
    flat = logs.reshape(-1, logs.shape[-1])
    slopes = np.polyfit(np.log(np.asarray(widths, float)), flat.T, 1)[0]
    return slopes.reshape(logs.shape[:-1])


def boundary(gamma_prime: np.ndarray) -> np.ndarray:
    """gamma on the published line, gamma' given."""
    return 1 + np.maximum(gamma_prime, 0.0)


def zero_line(gamma: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """For each gamma' the gamma at which S first crosses zero, by linear interpolation; NaN where
    it does not.
    """
    places = np.full(slopes.shape[1], np.nan)
    for j, column in enumerate(slopes.T):
        crossings = np.flatnonzero((column[:-1] < 0) & (column[1:] >= 0))
        if crossings.size:
            i = int(crossings[0])
            share = -column[i] / (column[i + 1] - column[i])
            places[j] = gamma[i] + share * (gamma[i + 1] - gamma[i])
    return places


def participation(masses: np.ndarray) -> np.ndarray:
    """How many of the bins carry the neurons' size, 1 / sum of squares of the masses (last
    axis).
    """
    return 1 / np.sum(np.asarray(masses) ** 2, axis=-1)


def draw(table: xr.Dataset) -> FigureSpec:
    gamma, prime = table["gamma"].values, table["gamma_prime"].values
    slopes = exponents(table["plane_movement"].values, table["plane_width"].values)
    fine = np.linspace(prime[0], prime[-1], 50)
    marks = [
        Heatmap(gamma, prime, slopes.T, "S"),
        Line(boundary(fine), fine, "published boundary", dash="dashed"),
        Points([p[0] for p in NAMED], [p[1] for p in NAMED], "named points"),
    ]
    zero = zero_line(gamma, slopes)
    if np.isfinite(zero).sum() > 1:
        marks.append(Line(zero[np.isfinite(zero)], prime[np.isfinite(zero)], "measured S = 0"))
    panels = [Panel("Exponent of the weights' movement", "γ", "γ′", marks)]
    widths = table["width"].values
    panels.append(
        Panel(
            "Relative movement of the hidden weights",
            "width",
            "‖w − w(0)‖ / ‖w(0)‖",
            [
                Line(widths, m.mean(-1), t, low=m.min(-1), high=m.max(-1), group=t)
                for m, t in zip(table["movement"].values, TITLES, strict=True)
            ],
            "log",
            "log",
        )
    )
    angle = table["angle"].values
    directions = table["directions"].values
    panels.append(
        Panel(
            "Directions of the neurons at the end",
            "angle of w (degrees)",
            "share of |a||w|",
            [Line(angle, m[1], t, group=t) for m, t in zip(directions, TITLES, strict=True)]
            + [HLine(1 / BINS, "even")],
        )
    )
    return FigureSpec(
        "Linear, critical and condensed networks",
        panels,
        columns=3,
        caption="S is the slope of the movement against the width, mean over seeds. Bands span "
        "the seeds.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    slopes = exponents(table["movement"].values, table["width"].values)
    masses = participation(table["directions"].values)
    expected = [g - 1 if g <= 1 else (g - 1) / 2 for g, _ in NAMED]
    plane = exponents(table["plane_movement"].values, table["plane_width"].values)
    gamma, prime = table["gamma"].values, table["gamma_prime"].values
    away = zero_line(gamma, plane) - boundary(prime)
    inside = boundary(prime) < gamma[-1]
    return (
        *(
            Claim(f"S at {title}", float(s), expected=e, tolerance=TOLERANCE)
            for title, s, e in zip(TITLES, slopes, expected, strict=True)
        ),
        Claim(
            "largest share of the loss that a named run ends with, over the requested share",
            float(table["loss_share"].max() / table.attrs["stopped_at_share"]),
            at_most=1.0,
        ),
        Claim(
            "the line S = 0 off the published boundary in gamma, at most",
            float(np.max(np.abs(away[inside]))),
            at_most=0.25,
        ),
        Claim(
            "occupied directions at (3/2, 0), end over start: condensation",
            float(masses[2, 1] / masses[2, 0]),
            at_most=0.5,
        ),
        Claim(
            "occupied directions at the end, (3/2, 0) over (1/2, 0)",
            float(masses[2, 1] / masses[0, 1]),
            at_most=0.5,
        ),
    )


EXPERIMENT = Experiment(
    name="luo2021-phases",
    paper="luo2021",
    title="Phase diagram of two-layer networks",
    figure="Figures 1 to 4",
    settings={
        "smoke": Settings(
            gammas=(0.5, 1.5),
            gamma_primes=(0.0, 0.5),
            plane_widths=(8, 16),
            widths=(8, 16),
            samples=4,
            share=0.5,
            time=10.0,
            tolerance=1e-2,
            seeds=1,
        ),
        "default": Settings(),
        "paper": Settings(
            gammas=tuple(0.25 * k for k in range(1, 9)),
            gamma_primes=tuple(0.25 * k - 0.5 for k in range(7)),
            plane_widths=(1000, 2000, 4000, 8000),
            widths=(1000, 2000, 4000, 8000),
            seeds=5,
            plane_seeds=3,
        ),
    },
    run=run,
    draw=draw,
    claims=claims,
    claims_from_size="default",
)
