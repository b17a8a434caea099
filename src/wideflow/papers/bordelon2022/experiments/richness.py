r"""From lazy to rich: loss, movement and alignment of the features over $\gamma_0$ and depth
(bordelon2022: loss and kernels against $\gamma_0$).

Run:  wideflow run bordelon2022-richness
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, Line, Panel, Points
from ....limits.feature_learning import field_theory
from .common import MEMORY, distance, task


@dataclass(frozen=True)
class Settings:
    points: int = 4
    depths: tuple[int, ...] = (1, 2, 3)
    activation: str = "tanh"
    richness: tuple[float, ...] = (0.05, 0.5, 1.0, 2.0)
    rate: float = 0.1
    steps: int = 20
    samples: int = 4096
    seeds: int = 2  # independent solutions of the theory

    def __post_init__(self):
        if len(self.richness) < 2:
            raise ValueError(
                f"`richness` must have at least two values, got {self.richness}. Growth is "
                "measured from one to the next."
            )


def run(settings: Settings, key, session) -> xr.Dataset:
    inputs, targets = task(key, settings.points)
    shape = len(settings.depths), len(settings.richness)
    losses, lazy = np.empty((*shape, settings.steps + 1)), np.empty((*shape, settings.steps + 1))
    moved, aligned = np.empty(shape), np.empty((*shape, 2))
    for i, depth in enumerate(settings.depths):
        for j, richness in enumerate(settings.richness):
            session.progress(i * shape[1] + j, shape[0] * shape[1], f"depth {depth}, {richness:g}")
            theory = field_theory(
                named_key(key, "theory", depth),
                inputs,
                targets,
                depth,
                activation=settings.activation,
                rate=settings.rate,
                steps=settings.steps,
                richness=richness,
                samples=settings.samples,
                repeats=settings.seeds,
                memory=MEMORY,
            )
            features = np.asarray(theory.features)[-1]
            start, stop = features[0, :, 0], features[-1, :, -1]
            losses[i, j] = theory.losses
            lazy[i, j] = _frozen(np.asarray(theory.kernels)[0], targets, settings)
            moved[i, j] = distance(stop, start)
            aligned[i, j] = _alignment(start, targets), _alignment(stop, targets)
    axes = ("depth", "richness")
    return xr.Dataset(
        {
            "loss": ((*axes, "time"), losses),
            "frozen_loss": ((*axes, "time"), lazy),
            "movement": (axes, moved),
            "alignment": ((*axes, "end"), aligned),
        },
        {
            "depth": list(settings.depths),
            "richness": list(settings.richness),
            "time": settings.rate * np.arange(settings.steps + 1),
            "end": ["start", "stop"],
        },
        {"loss": "half the sum of squares"},
    )


def _frozen(kernel, targets, settings) -> np.ndarray:
    """Losses of descent on the tangent kernel of the start."""
    residual, losses = -targets, []
    for _ in range(settings.steps + 1):
        losses.append(0.5 * residual @ residual)
        residual = residual - settings.rate * kernel @ residual
    return np.asarray(losses)


def _alignment(gram, targets) -> float:
    r"""$y^\top \Phi y / (|y|^2 \lVert\Phi\rVert_F)$."""
    return float(targets @ gram @ targets / (targets @ targets * np.linalg.norm(gram)))


def draw(table: xr.Dataset) -> FigureSpec:
    deepest = table.isel(depth=-1)
    lines = [
        Line(table.time.values, deepest.loss.sel(richness=g).values, f"richness {float(g):g}")
        for g in table.richness.values
    ]
    lines.append(
        Line(
            table.time.values,
            deepest.frozen_loss.isel(richness=0).values,
            "tangent kernel",
            dash="dashed",
        )
    )
    by_depth = lambda name: [
        Points(table.richness.values, table[name].sel(depth=d).values, f"depth {int(d)}")
        for d in table.depth.values
    ]
    gains = table.assign(gain=table.alignment.sel(end="stop") - table.alignment.sel(end="start"))
    gain = [
        Points(table.richness.values, gains.gain.sel(depth=d).values, f"depth {int(d)}")
        for d in table.depth.values
    ]
    return FigureSpec(
        "From lazy to rich",
        [
            Panel(
                f"Loss at depth {int(table.depth[-1])}",
                "flow time t",
                "half the sum of squares",
                lines,
                yscale="log",
            ),
            Panel(
                "Movement of the last features",
                "richness",
                "relative change of the kernel",
                by_depth("movement"),
                xscale="log",
                yscale="log",
            ),
            Panel(
                "Gain of alignment with the targets",
                "richness",
                "end minus start",
                gain,
                xscale="log",
            ),
        ],
        caption="loss: " + table.attrs["loss"],
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    smallest = table.isel(richness=0)
    lazy_gap = np.abs(smallest.loss - smallest.frozen_loss).max() / smallest.loss.max()
    steps = table.movement.diff("richness").min()
    gain = (table.alignment.sel(end="stop") - table.alignment.sel(end="start")).isel(richness=-1)
    ratio = table.movement.isel(richness=1) / table.movement.isel(richness=0)
    squares = float(table.richness[1] / table.richness[0]) ** 2
    return (
        # Features move by order richness^2 (the first order is odd in r and has mean zero).
        Claim(
            "smallest richness: loss against descent on the frozen tangent kernel",
            float(lazy_gap),
            at_most=0.01 + float(table.richness[0]) ** 2,
        ),
        Claim("least growth of movement from one richness to the next", float(steps), at_least=0.0),
        Claim(
            "growth of movement from the first to the second richness, over the squares' ratio",
            float((ratio / squares).max()),
            at_least=0.3,
            at_most=1.5,
        ),
        Claim(
            "largest richness: least gain of alignment with the targets over depths",
            float(gain.min()),
            at_least=0.05,
        ),
        Claim(
            "largest alignment at the end (Cauchy's inequality)",
            float(table.alignment.max()),
            at_most=1.0,
        ),
        Claim(
            "largest richness: largest last loss over frozen kernel's",
            float((table.loss / table.frozen_loss).isel(richness=-1, time=-1).max()),
            at_most=1.0,
        ),
    )


EXPERIMENT = Experiment(
    name="bordelon2022-richness",
    paper="bordelon2022",
    title="Loss, movement and alignment from lazy to rich",
    figure="loss and kernels against richness",
    settings={
        "smoke": Settings(
            points=3, depths=(1, 2), richness=(0.1, 0.5, 2.0), steps=10, samples=1024
        ),
        "default": Settings(),
        "paper": Settings(
            points=10,
            depths=(1, 2, 3, 4),
            richness=(0.05, 0.2, 0.5, 1.0, 2.0, 3.0),
            rate=0.03,
            steps=60,
            samples=32_768,
        ),
    },
    run=run,
    draw=draw,
    claims=claims,
)
