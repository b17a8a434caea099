"""From kernel to rich: the start of a diagonal linear network decides between least squares and
sparsity (woodworth2020, Figure 1).

Run:  wideflow run woodworth2020-sparsity            Takes:  seconds at every size
"""

from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr
from scipy.optimize import linprog

import wideflow as wf
from wideflow.experiments.base import Claim, Experiment
from wideflow.figures import FigureSpec, HLine, Line, Panel

from .model import Diagonal
from .theorem import ImplicitBias


@dataclass(frozen=True)
class Settings:
    samples: int = 40
    features: int = 100
    nonzero: int = 5
    scales: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
    time: float = 3000.0  # the last directions settle at rates of order scale²


def run(settings: Settings, key, session) -> xr.Dataset:
    inputs = np.asarray(jax.random.normal(key, (settings.samples, settings.features)))
    truth = np.zeros(settings.features)
    truth[: settings.nonzero] = 1.0
    data = wf.Dataset(
        inputs / settings.samples**0.5, inputs @ truth / settings.samples**0.5, "sparse"
    )
    nets = [Diagonal.init(settings.features, scale) for scale in settings.scales]
    flow = wf.train(
        nets,
        data,
        wf.GradientFlow(),
        time=settings.time,
        axis="scale",
        every=settings.time / 10,
        record=[
            wf.observables.KernelDistance("spectral", relative=False),
            wf.observables.KernelTrace(),
        ],
        session=session.within(0, 1, "flow"),
    )
    found = np.stack([np.asarray(model.linear) for model in flow.model])
    least = np.linalg.pinv(data.inputs) @ data.targets
    verdicts = [ImplicitBias()(net, data, end) for net, end in zip(nets, flow.model, strict=True)]
    table = flow.table.assign_coords(scale=list(settings.scales))
    table["l1"] = ("scale", np.abs(found).sum(1))
    table["from_least_squares"] = (
        "scale",
        np.linalg.norm(found - least, axis=1) / np.linalg.norm(least),
    )
    table["from_truth"] = ("scale", np.linalg.norm(found - truth, axis=1) / np.linalg.norm(truth))
    table["theorem"] = ("scale", [verdict.outcome.name for verdict in verdicts])
    return table.assign_attrs(smallest_l1=smallest_l1(data), least_l1=float(np.abs(least).sum()))


def smallest_l1(data) -> float:
    """The least l1 norm of an interpolator, by linear programming: beta = p - q, p and q not
    negative.
    """
    x, y = np.asarray(data.inputs), np.asarray(data.targets)
    return float(linprog(np.ones(2 * x.shape[1]), A_eq=np.hstack([x, -x]), b_eq=y).fun)


def draw(table: xr.Dataset) -> FigureSpec:
    scale = table.scale.values
    change = table.kernel_drift.isel(step=-1) / table.kernel_trace.isel(step=0)
    return FigureSpec(
        "A diagonal network from rich to lazy",
        [
            Panel(
                "Norm of what is learnt",
                "scale α of the start",
                "‖β‖₁",
                [
                    Line(scale, table.l1.values, "network"),
                    HLine(table.attrs["smallest_l1"], "smallest possible"),
                    HLine(table.attrs["least_l1"], "least squares", dash="dotted"),
                ],
                xscale="log",
            ),
            Panel(
                "Distances",
                "scale α of the start",
                "relative distance",
                [
                    Line(scale, table.from_truth.values, "to the sparse truth"),
                    Line(scale, table.from_least_squares.values, "to least squares"),
                ],
                xscale="log",
                yscale="log",
            ),
            Panel(
                "Movement of the kernel",
                "scale α of the start",
                "‖Θ(T) − Θ(0)‖₂ / tr Θ(0)",
                [Line(scale, change.values, "kernel change")],
                xscale="log",
                yscale="log",
            ),
        ],
        columns=3,
        caption="Small starts learn the sparse vector and move the kernel by many times its "
        "size; large starts give kernel regression.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    rich, lazy = table.isel(scale=0), table.isel(scale=-1)
    return (
        Claim(
            "smallest start: l1 norm over the smallest possible",
            float(rich.l1) / table.attrs["smallest_l1"],
            at_most=1.1,
        ),
        Claim("smallest start: distance to the sparse truth", float(rich.from_truth), at_most=0.2),
        Claim(
            "largest start: distance to least squares", float(lazy.from_least_squares), at_most=0.05
        ),
        Claim("the l1 norm rises with the start", holds=bool(np.all(np.diff(table.l1.values) > 0))),
        Claim(
            "Theorem 1 holds at every start", holds=bool(np.all(table.theorem.values == "HOLDS"))
        ),
    )


EXPERIMENT = Experiment(
    name="woodworth2020-sparsity",
    paper="woodworth2020",
    title="The start decides between sparsity and least squares",
    figure="Figure 1",
    settings={
        "smoke": Settings(samples=20, features=40, nonzero=2, scales=(0.03, 0.3, 3.0)),
        "default": Settings(),
        "paper": Settings(samples=100, features=1000, time=10_000.0),
    },
    run=run,
    draw=draw,
    claims=claims,
)
