r"""Deep linear networks: closed equations, the sampled theory and finite networks (bordelon2022:
deep linear networks).

Run:  wideflow run bordelon2022-linear
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ....experiments.base import Claim, Experiment
from ....experiments.slopes import slope
from ....figures import FigureSpec, Line, Panel, Points
from ....limits.feature_learning import field_theory, linear_field_theory
from ..networks import trained_networks
from .common import distance, task


@dataclass(frozen=True)
class Settings:
    points: int = 4
    depth: int = 3
    richness: float = 1.0
    rate: float = 0.1
    steps: int = 10
    widths: tuple[int, ...] = (64, 256, 1024)
    # a root mean square of 16 has a relative error of 1/sqrt(32): 0.1 of a slope over these widths
    seeds: int = 16


def run(settings: Settings, key, session) -> xr.Dataset:
    inputs, targets = task(key, settings.points)
    shared = {"rate": settings.rate, "steps": settings.steps, "richness": settings.richness}
    jobs = len(settings.widths) + 1
    session.progress(0, jobs, "theory")
    exact = linear_field_theory(inputs, targets, depth=settings.depth, **shared)
    samples = 4 * settings.points * (settings.steps + 1)  # the fewest that have all the moments
    sampled = field_theory(
        named_key(key, "theory"),
        inputs,
        targets,
        settings.depth,
        activation="linear",
        samples=samples,
        repeats=2,
        **shared,
    )
    outputs, features = [], []
    for number, width in enumerate(settings.widths):
        _, path, kernels = trained_networks(
            named_key(key, "networks", width),
            inputs,
            targets,
            activation="linear",
            depth=settings.depth,
            width=width,
            seeds=settings.seeds,
            session=session.within(number + 1, jobs, f"width {width}"),
            **shared,
        )
        outputs.append(path)
        features.append(kernels[:, 0])
    last = lambda kernel: np.asarray(kernel)[:, -1, :, -1, :]
    kernel = ("layer", "point", "other")
    return xr.Dataset(
        {
            "outputs": (("width", "seed", "time", "point"), np.stack(outputs)),
            "exact_outputs": (("time", "point"), np.asarray(exact.outputs)),
            "sampled_outputs": (("time", "point"), np.asarray(sampled.outputs)),
            "features": (("width", "seed", *kernel), np.stack(features)),
            "exact_features": (kernel, last(exact.features)),
            "sampled_features": (kernel, last(sampled.features)),
            "residual": ((), exact.residual),
        },
        {"width": list(settings.widths), "time": np.asarray(exact.times)},
        {"loss": "half the sum of squares"},
    )


def _gaps(table: xr.Dataset) -> np.ndarray:
    gaps = distance(table.features.values, table.exact_features.values)
    return np.sqrt((gaps**2).mean(axis=(1, 2)))


def _output_gaps(table: xr.Dataset) -> np.ndarray:
    gap = table.outputs - table.exact_outputs
    return np.sqrt((gap**2).mean(["seed", "time", "point"])).values


def draw(table: xr.Dataset) -> FigureSpec:
    widest, lines = table.isel(width=-1), []
    for i in range(table.sizes["point"]):
        group = f"point {i + 1}"
        exact = table.exact_outputs.isel(point=i).values
        mean = widest.outputs.isel(point=i).mean("seed").values
        lines.append(Line(table.time.values, exact, f"theory, {group}", dash="dashed", group=group))
        lines.append(Line(table.time.values, mean, f"width {int(widest.width)}", group=group))
    marks = [
        Points(table.width.values, _gaps(table), "features' kernels, relative"),
        Points(table.width.values, _output_gaps(table), "outputs"),
    ]
    return FigureSpec(
        "Deep linear networks",
        [
            Panel("Outputs", "flow time t", "f", lines),
            Panel(
                "One network against the exact theory",
                "width",
                "root mean square distance",
                marks,
                xscale="log",
                yscale="log",
            ),
        ],
        caption="loss: " + table.attrs["loss"],
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    outputs = float(np.abs(table.sampled_outputs - table.exact_outputs).max())
    kernels = float(distance(table.sampled_features.values, table.exact_features.values).max())
    trend = lambda gaps: slope(table.width, gaps)
    return (
        Claim("closed equations: residual", float(table.residual), at_most=1e-10),
        Claim("sampled theory against closed equations: outputs", outputs, at_most=1e-8),
        Claim(
            "sampled theory against closed equations: last kernels, relative", kernels, at_most=1e-8
        ),
        Claim(
            "one network: kernels' distance against width, log-log slope",
            trend(_gaps(table)),
            expected=-0.5,
            tolerance=0.2,
        ),
        Claim(
            "one network: outputs' distance against width, log-log slope",
            trend(_output_gaps(table)),
            expected=-0.5,
            tolerance=0.2,
        ),
    )


EXPERIMENT = Experiment(
    name="bordelon2022-linear",
    paper="bordelon2022",
    title="Deep linear networks without sampling",
    figure="deep linear networks",
    settings={
        "smoke": Settings(points=3, depth=2, steps=5, widths=(32, 256), seeds=64),
        "default": Settings(),
        "paper": Settings(
            points=10, depth=4, rate=0.05, steps=40, widths=(64, 256, 1024, 4096), seeds=32
        ),
    },
    run=run,
    draw=draw,
    claims=claims,
)
