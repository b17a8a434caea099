r"""Kernels and losses of finite networks approach the field theory (bordelon2022: kernels of
networks against the theory).

One network of width $N$ differs from the theory by $O(N^{-1/2})$ in $\Phi^l$, $G^l$ and the loss,
with features that have moved by more than a third. The mean of many networks differs by $O(1/N)$,
which is so little that it takes thousands of narrow networks to be seen. It is seen along one
direction, so that noise makes it no larger: half of the narrowest networks say in which direction
their mean is shifted, and the shifts of all others are measured along it.

Run:  wideflow run bordelon2022-kernels            Takes:  default about 4 min on two cores
"""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.architecture import Activate, mlp
from ...._core.errors import check_count
from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....experiments.slopes import log_log_slope
from ....figures import FigureSpec, Line, Panel, Points
from ....limits.feature_learning import field_theory
from ....limits.kernels import kernels
from ..networks import trained_networks
from .common import MEMORY, distance, task

KINDS = ("features", "gradients")
MEANS = (
    "kernels",
    "loss",
    # what the mean over many networks is asked for; all kernels together, as either kind may hardly
    # be shifted
)


@dataclass(frozen=True)
class Settings:
    points: int = 4
    depth: int = 2
    activation: str = "tanh"
    richness: float = 2.0
    rate: float = 0.15
    steps: int = 12
    widths: tuple[int, ...] = (64, 256, 1024)  # of single networks
    seeds: int = 64  # a jackknife over fewer has too large an error of its own
    narrow_widths: tuple[int, ...] = (16, 32, 64, 128)  # of the means over many
    many: int = 4096
    samples: int = 16_384
    repeats: int = 8

    def __post_init__(self):
        check_count("seeds", self.seeds, least=4)
        check_count("many", self.many, least=4)


def run(settings: Settings, key, session) -> xr.Dataset:
    inputs, targets = task(key, settings.points)
    shared = {
        "activation": settings.activation,
        "rate": settings.rate,
        "steps": settings.steps,
        "richness": settings.richness,
    }
    jobs = len(settings.widths) + len(settings.narrow_widths) + 1
    session.progress(0, jobs, "theory")
    theory = field_theory(
        named_key(key, "theory"),
        inputs,
        targets,
        settings.depth,
        samples=settings.samples,
        repeats=settings.repeats,
        memory=MEMORY,
        **shared,
    )

    def networks(number: int, width: int, seeds: int, name: str):
        losses, _, last = trained_networks(
            named_key(key, name, width),
            inputs,
            targets,
            depth=settings.depth,
            width=width,
            seeds=seeds,
            together=max(1, min(128, 2**25 // width**2)),
            session=session.within(number, jobs, f"{seeds} of width {width}"),
            **shared,
        )
        return losses, last

    single = [networks(i, w, settings.seeds, "networks") for i, w in enumerate(settings.widths, 1)]
    many = [
        networks(i, w, settings.many, "many")
        for i, w in enumerate(settings.narrow_widths, 1 + len(settings.widths))
    ]
    at = lambda kernel, k: np.asarray(kernel)[:, k, :, k, :]
    both = lambda names, k: np.stack([at(getattr(theory, name), k) for name in names])
    layers = kernels(mlp(settings.depth, activation=settings.activation)).layers(inputs)
    exact = [one.nngp for one in layers if isinstance(one.layer, Activate)]
    kernel = ("kind", "layer", "point", "other")
    return xr.Dataset(
        {
            "loss": (("width", "seed", "time"), np.stack([losses for losses, _ in single])),
            "kernels": (("width", "seed", *kernel), np.stack([last for _, last in single])),
            "many_loss": (
                ("narrow_width", "network", "time"),
                np.stack([losses for losses, _ in many]),
            ),
            "many_kernels": (
                ("narrow_width", "network", *kernel),
                np.stack([last for _, last in many]),
            ),
            "theory_loss": ("time", np.asarray(theory.losses)),
            "theory_loss_error": ("time", np.asarray(theory.losses_error)),
            "theory_kernels": (kernel, both(KINDS, -1)),
            "theory_kernels_error": (kernel, both([f"{kind}_error" for kind in KINDS], -1)),
            "theory_start": (kernel[1:], at(theory.features, 0)),
            "exact_start": (kernel[1:], np.stack(exact)),
        },
        {
            "width": list(settings.widths),
            "narrow_width": list(settings.narrow_widths),
            "kind": list(KINDS),
            "time": np.asarray(theory.times),
        },
        {"loss": "half the sum of squares"},
    )


def single_gaps(table: xr.Dataset) -> dict[str, np.ndarray]:
    """Squared distance of each network from the theory, (width, seed): kernels relative and over
    layers, the loss over times.
    """
    gaps = distance(table.kernels.values, table.theory_kernels.values) ** 2
    losses = ((table.loss - table.theory_loss) ** 2).mean("time").values
    return {kind: gaps[:, :, i].mean(-1) for i, kind in enumerate(KINDS)} | {"loss": losses}


def single_slope(width, squares) -> tuple[float, float]:
    """Slope of the root mean square over networks against the width on log-log axes, and its
    standard error by the jackknife.
    """
    slope, error = log_log_slope(width, squares)
    return slope / 2, error / 2


def mean_shifts(table: xr.Dataset, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """The shift of the mean over many networks and its standard error, by width, along the
    direction in which half of the narrowest are shifted.

    That half is not measured itself. The theory's own error counts too.
    """
    if kind == "loss":
        away, error = table.many_loss - table.theory_loss, table.theory_loss_error
    else:
        theory = table.theory_kernels
        size = np.sqrt((theory**2).sum(["point", "other"]))
        away = (table.many_kernels - theory) / size
        error = table.theory_kernels_error / size
    away = away.transpose("narrow_width", "network", ...).values
    away = away.reshape(*away.shape[:2], -1)
    half = away.shape[1] // 2
    direction = away[0, :half].mean(0)
    direction /= np.sqrt((direction**2).sum())
    shifts = (away * direction).sum(-1)  # not by BLAS, whose last digit hangs on where arrays lie
    along = [shifts[0, half:], *shifts[1:]]
    own = np.sqrt(((error.values.ravel() * direction) ** 2).sum())
    noise = [np.hypot(x.std(ddof=1) / math.sqrt(len(x)), own) for x in along]
    return np.array([x.mean() for x in along]), np.array(noise)


def mean_slope(width, shifts, errors) -> tuple[float, float]:
    """Slope of the shifts against the width on log-log axes, weighted by their errors, and its
    standard error.
    """
    x, weights = np.log(np.asarray(width, float)), (shifts / errors) ** 2
    away = x - np.average(x, weights=weights)
    information = float((weights * away**2).sum())
    return float((weights * away * np.log(np.abs(shifts))).sum()) / information, information**-0.5


def draw(table: xr.Dataset) -> FigureSpec:
    time, widths, narrow = table.time.values, table.width.values, table.narrow_width.values
    lines = [Line(time, table.theory_loss.values, "theory", dash="dashed")]
    for width in widths:
        mean = table.loss.sel(width=width).mean("seed").values
        lines.append(Line(time, mean, f"width {int(width)}"))
    singles = [
        Points(widths, np.sqrt(squares.mean(1)), kind)
        for kind, squares in single_gaps(table).items()
    ]
    means = []
    for kind in MEANS:
        shifts, errors = mean_shifts(table, kind)
        means.append(Points(narrow, np.abs(shifts), kind, errors=errors))
    guide = lambda x, y, power: Line(x, y * (x / x[0]) ** power, f"slope {power:g}", dash="dotted")
    first = lambda marks: max(float(mark.y[0]) for mark in marks)
    return FigureSpec(
        "Networks and the field theory",
        [
            Panel("Loss", "flow time t", "half the sum of squares", lines, yscale="log"),
            Panel(
                "One network",
                "width",
                "distance from the theory",
                [*singles, guide(widths, first(singles), -0.5)],
                xscale="log",
                yscale="log",
            ),
            Panel(
                "Mean of many networks",
                "width",
                "shift from the theory",
                [*means, guide(narrow, first(means), -1)],
                xscale="log",
                yscale="log",
            ),
        ],
        caption="kernels at the end, relative; loss: "
        + table.attrs["loss"]
        + "; bars of one standard error",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    statements = []
    for kind, squares in single_gaps(table).items():
        slope, error = single_slope(table.width, squares)
        # a slope whose error is as large as a quarter would not tell -1/2 from -1
        statements += [
            Claim(
                f"one network, {kind}: distance from the theory against width, log-log slope",
                slope,
                expected=-0.5,
                tolerance=3 * error,
            ),
            Claim(f"its standard error, {kind}", error, at_most=0.15),
        ]
    for kind in MEANS:
        slope, error = mean_slope(table.narrow_width, *mean_shifts(table, kind))
        statements += [
            Claim(
                f"mean of many networks, {kind}: shift from the theory against width, log-log "
                "slope",
                slope,
                expected=-1.0,
                tolerance=3 * error,
            ),
            Claim(f"its standard error, {kind}", error, at_most=0.25),
        ]
    moved = distance(table.theory_kernels.values[0], table.exact_start.values)
    start = float(distance(table.theory_start.values, table.exact_start.values).max())
    statements += [
        Claim(
            "theory at the start: features' kernels against the infinite-width recursion, relative",
            start,
            at_most=0.01,
        ),
        Claim(
            "theory: the last layer's features move, relative to the start",
            float(moved[-1]),
            at_least=0.33,
        ),
    ]
    return tuple(statements)


EXPERIMENT = Experiment(
    name="bordelon2022-kernels",
    paper="bordelon2022",
    title="Kernels of finite networks approach the field theory",
    figure="kernels of networks and theory",
    settings={
        "smoke": Settings(
            points=3,
            steps=4,
            widths=(16, 64),
            seeds=32,
            narrow_widths=(16, 64),
            many=32,
            samples=1024,
            repeats=2,
        ),
        "default": Settings(),
        "paper": Settings(
            points=10,
            depth=3,
            steps=40,
            rate=0.05,
            widths=(64, 256, 1024, 4096),
            many=8192,
            samples=65_536,
        ),
    },
    run=run,
    draw=draw,
    claims=claims,
    claims_from_size="default",
)
