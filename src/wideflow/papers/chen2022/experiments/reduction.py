r"""Why the mean loss: with the stated half sum and step 1 descent is unstable (chen2022, Appendix I
against equation 6).

The plain and the quadratic network of Experiment 2 and the three-layer network of Experiment 3,
each trained with step 1 on the half sum and on the half mean of squares. What decides is
$\delta \lambda_{\max}(K)$ against 2. The paper's figures are those of the mean.

Run:  wideflow run chen2022-reduction      Takes:  smoke 4 s, default 20 s on two cores
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from .... import data
from ...._core.randomness import named_key
from ...._core.scalings import MeanField
from ....dynamics.descent import GradientDescent
from ....dynamics.losses import HalfMeanSquares, HalfSumSquares
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, HLine, Line, Panel
from ....models.embeddings import Identity, Quadratic
from ....models.shallow import Shallow
from ....observables.kernels import KernelMaxEigenvalue
from ....training.train import train
from ..observables.activity import SumLoss
from .common import recording
from .scalings import networks

LOSSES = {"half sum": HalfSumSquares(), "half mean": HalfMeanSquares()}


@dataclass(frozen=True)
class Settings:
    samples: int = 200
    width: int = 512
    steps: int = 300
    seeds: int = 1


def run(settings: Settings, key, session) -> xr.Dataset:
    teacher = data.quadratic_teacher(named_key(key, "teacher"), settings.samples, 30)
    axes = data.axis_types(named_key(key, "data"), settings.samples, 50)
    options = {"features": 30, "width": settings.width, "scaling": MeanField()}
    cases = {
        "plain": (Shallow.init(named_key(key, "plain"), embedding=Identity(), **options), teacher),
        "quadratic": (
            Shallow.init(named_key(key, "quadratic"), embedding=Quadratic(), **options),
            teacher,
        ),
        "three layers": (networks(key, "ours", 50, settings.width, 1)[0], axes),
    }
    values, tops = (
        np.full((len(cases), len(LOSSES), settings.steps + 1), np.nan),
        np.zeros((len(cases), len(LOSSES))),
    )
    for i, (name, (net, sample)) in enumerate(cases.items()):
        for j, (reduction, loss) in enumerate(LOSSES.items()):
            session.progress(i * len(LOSSES) + j, len(cases) * len(LOSSES), f"{name}, {reduction}")
            table = train(
                net,
                sample,
                GradientDescent(1.0),
                steps=settings.steps,
                loss=loss,
                record=[SumLoss(), KernelMaxEigenvalue()],
                every=recording(settings.steps, 60),
                session=session.within(i * len(LOSSES) + j, len(cases) * len(LOSSES), name),
            ).table
            values[i, j, table.step.values] = table.sum_loss.values
            tops[i, j] = float(table.kernel_top[0]) / (
                settings.samples if reduction == "half mean" else 1
            )
    coordinates = {
        "network": list(cases),
        "reduction": list(LOSSES),
        "step": np.arange(settings.steps + 1),
    }
    variables = {
        "sum_loss": (("network", "reduction", "step"), values),
        "stability": (("network", "reduction"), tops),
    }
    return xr.Dataset(
        variables,
        coordinates,
        {
            "loss": "both reductions, each named",
            "figure": "chen2022, Appendix I",
            "steps": settings.steps,
        },
    )


def draw(table: xr.Dataset) -> FigureSpec:
    panels = []
    for name in table.network.values:
        lines = []
        for reduction in table.reduction.values:
            one = table.sel(network=name, reduction=reduction)
            good = np.isfinite(one.sum_loss.values)
            label = f"{reduction}: δ λ_max(K⁰) = {float(one.stability):.3g}"
            lines.append(
                Line(
                    table.step.values[good],
                    one.sum_loss.values[good] / float(one.sum_loss[0]),
                    label,
                )
            )
        panels.append(
            Panel(
                f"{name} network, step 1",
                "step",
                "L / L(0)",
                [*lines, HLine(1.0, "")],
                yscale="log",
            )
        )
    return FigureSpec(
        "The stated loss cannot be the one that was trained",
        panels,
        columns=3,
        caption="Descent is locally stable where δ λ_max(K) < 2.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    start = table.sum_loss.isel(step=0)
    worst, ends = table.sum_loss.max("step") / start, table.sum_loss.isel(step=-1) / start
    plain = dict(network="plain")
    return (
        Claim(
            "half sum: smallest δ λ_max(K⁰) over the networks",
            float(table.stability.sel(reduction="half sum").min()),
            at_least=2.0,
        ),
        Claim(
            "half mean: largest δ λ_max(K⁰)",
            float(table.stability.sel(reduction="half mean").max()),
            at_most=0.5,
        ),
        Claim(
            "half sum: the plain network's loss grows by",
            float(worst.sel(reduction="half sum", **plain)),
            at_least=1e2,
        ),
        Claim(
            "half mean: the loss never grows, largest over networks",
            float(worst.sel(reduction="half mean").max()),
            at_most=1.0 + 1e-9,
        ),
        Claim(
            "half mean: the loss at the end is below its start in all",
            float(ends.sel(reduction="half mean").max()),
            at_most=0.99,
        ),
    )


EXPERIMENT = Experiment(
    name="chen2022-reduction",
    paper="chen2022",
    title="Sum or mean: the stability of step 1",
    figure="Appendix I",
    settings={
        "smoke": Settings(width=128, steps=60),
        "default": Settings(),
        "paper": Settings(samples=600, width=2048, steps=1000),
    },
    run=run,
    draw=draw,
    claims=claims,
)
