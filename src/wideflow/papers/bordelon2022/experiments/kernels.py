r"""Kernels and losses of finite networks approach the field theory (bordelon2022: kernels of networks against the theory).

One network differs from the theory by $O(N^{-1/2})$, with features that have moved by more than a third.

Run:  wideflow run bordelon2022-kernels
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, Line, Panel, Points
from ....limits.feature_learning import field_theory
from ..networks import trained_networks
from .common import distance, slope, task


@dataclass(frozen=True)
class Settings:
    points: int = 4
    depth: int = 2
    activation: str = "tanh"
    richness: float = 2.0
    rate: float = 0.15
    steps: int = 12
    widths: tuple[int, ...] = (64, 256, 1024)
    seeds: int = 16
    samples: int = 8192
    repeats: int = 4


def run(settings: Settings, key, session) -> xr.Dataset:
    inputs, targets = task(key, settings.points)
    shared = {
        "activation": settings.activation,
        "rate": settings.rate,
        "steps": settings.steps,
        "richness": settings.richness,
    }
    jobs = len(settings.widths) + 1
    session.progress(0, jobs, "theory")
    theory = field_theory(
        named_key(key, "theory"),
        inputs,
        targets,
        settings.depth,
        samples=settings.samples,
        repeats=settings.repeats,
        **shared,
    )
    losses, features = [], []
    for number, width in enumerate(settings.widths):
        loss, _, grams = trained_networks(
            named_key(key, "networks", width),
            inputs,
            targets,
            depth=settings.depth,
            width=width,
            seeds=settings.seeds,
            session=session.within(number + 1, jobs, f"width {width}"),
            **shared,
        )
        losses.append(np.asarray(loss))
        features.append(np.asarray(grams))
    at = lambda kernel, k: np.asarray(kernel)[:, k, :, k, :]
    kernel = ("layer", "point", "other")
    return xr.Dataset(
        {
            "loss": (("width", "seed", "time"), np.stack(losses)),
            "theory_loss": ("time", np.asarray(theory.losses)),
            "features": (("width", "seed", *kernel), np.stack(features)),
            "theory_features": (kernel, at(theory.features, -1)),
            "theory_start": (kernel, at(theory.features, 0)),
        },
        {"width": list(settings.widths), "time": np.asarray(theory.times)},
        {
            "loss": "half the sum of squares",
            "theory_error": float(np.max(distance(at(theory.features, -1) + at(theory.features_error, -1), at(theory.features, -1)))),
        },
    )  # fmt: skip


def _gaps(table: xr.Dataset) -> np.ndarray:
    """Root mean square over seeds and layers of the kernels' distance to the theory, by width."""
    gaps = distance(table.features.values, table.theory_features.values)
    return np.sqrt((gaps**2).mean(axis=(1, 2)))


def _mean_gaps(table: xr.Dataset) -> np.ndarray:
    """The same for the mean over networks: what is left is bias and the theory's own error."""
    gaps = distance(table.features.values.mean(axis=1), table.theory_features.values)
    return np.sqrt((gaps**2).mean(axis=1))


def draw(table: xr.Dataset) -> FigureSpec:
    time, widths = table.time.values, table.width.values
    lines = [Line(time, table.theory_loss.values, "theory", dash="dashed")]
    for width in widths:
        mean = table.loss.sel(width=width).mean("seed").values
        lines.append(Line(time, mean, f"width {int(width)}"))
    marks = [
        Points(widths, _gaps(table), "one network"),
        Points(widths, _mean_gaps(table), "mean of networks"),
    ]
    return FigureSpec(
        "Networks and the field theory",
        [
            Panel("Loss", "flow time t", "half the sum of squares", lines, yscale="log"),
            Panel("Features' kernels at the end", "width", "relative distance to the theory", marks, xscale="log", yscale="log"),
        ],
        caption="loss: " + table.attrs["loss"],
    )  # fmt: skip


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    gaps, mean_gaps = _gaps(table), _mean_gaps(table)
    seeds, widest = table.sizes["seed"], float(table.width[-1])
    moved = distance(table.theory_features.values, table.theory_start.values)
    start = table.theory_loss.values[0]
    loss_gap = np.abs(table.loss.isel(width=-1).mean("seed") - table.theory_loss).max() / start
    # A mean of `seeds` networks deviates by the single gap over sqrt(seeds), and by a bias of order 1/width.
    allowed = 3 * (gaps[-1] / np.sqrt(seeds) + table.attrs["theory_error"]) + 10 / widest
    return (
        Claim("one network: kernels' distance to the theory against width, log-log slope", slope(table.width, gaps), expected=-0.5, tolerance=0.2),
        Claim("mean of networks at the largest width: kernels' distance over what errors allow", float(mean_gaps[-1] / allowed), at_most=1.0),
        Claim("largest width: mean loss against the theory's, relative to the first loss", float(loss_gap), at_most=float(3 / np.sqrt(seeds * widest) + 0.02)),
        Claim("theory: the last layer's features move, relative to the start", float(moved[-1]), at_least=0.33),
    )  # fmt: skip


EXPERIMENT = Experiment(
    name="bordelon2022-kernels",
    paper="bordelon2022",
    title="Kernels of finite networks approach the field theory",
    figure="kernels of networks and theory",
    settings={
        "smoke": Settings(points=3, steps=6, widths=(32, 256), seeds=32, samples=4096, repeats=2),
        "default": Settings(),
        "paper": Settings(
            points=10, depth=3, steps=40, rate=0.05, widths=(64, 256, 1024, 4096), seeds=32, samples=32_768
        ),
    },
    run=run,
    draw=draw,
    claims=claims,
)  # fmt: skip
