r"""Networks against their infinite-width limits: mean field, collapsed mean field, constant kernel
(chen2022, Section 2 and Table 1).

Two inputs and tanh, drawn exactly in function space from a Gram matrix. Ours follows the mean-field
characteristics and MF the collapsed ones, NTK the constant kernel, with an error like $m^{-1/2}$;
that of MF falls faster, since its start shrinks too.

Run:  wideflow run chen2022-limits      Takes:  smoke 5 s, default 1 min on two cores
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...._core.randomness import named_key
from ...._core.scalings import NTK, MeanField
from ....data.dataset import Dataset
from ....dynamics.descent import GradientDescent
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, Line, Panel, Points
from ....limits.deep import slope_gram
from ....limits.linearised import linearised
from ....limits.mean_field import collapsed_mean_field, mean_field
from ....models.embeddings import virtual_inputs
from ....models.shallow import Shallow
from ....observables.risks import Outputs
from ....training.train import train
from .common import slope

GRAM = ((1.0, 0.5), (0.5, 0.8))
TARGETS = (0.4, -0.3)


@dataclass(frozen=True)
class Settings:
    widths: tuple[int, ...] = (64, 256, 1024, 4096)
    time: float = 4.0
    records: int = 8
    # small enough to stand for the flow: its error is below the distance at every width here
    rate: float = 0.002
    seeds: int = 8


def run(settings: Settings, key, session) -> xr.Dataset:
    gram, targets = np.asarray(GRAM), np.asarray(TARGETS)
    per_record = round(settings.time / settings.records / settings.rate)
    times = np.arange(settings.records + 1) * per_record * settings.rate
    kernel = gram * np.asarray(slope_gram(gram, "tanh"))
    predicted = {
        "ours": np.asarray(mean_field(gram, targets, "tanh", times, spacing=0.1).outputs),
        "MF": np.asarray(collapsed_mean_field(gram, targets, "tanh", times).outputs),
        "NTK": np.asarray(linearised(kernel, targets, times).outputs),
    }
    outputs = np.empty((len(predicted), len(settings.widths), settings.seeds, len(times), 2))
    jobs = len(predicted) * len(settings.widths)
    for i, name in enumerate(predicted):
        for j, width in enumerate(settings.widths):
            session.progress(i * len(settings.widths) + j, jobs, f"{name}, m = {width}")
            inputs = virtual_inputs(gram)
            deviation = (
                width**-0.5 if name == "MF" else 1.0
            )  # MF at D = m is ours from h(0) of deviation D^(-1/2)
            nets = [
                Shallow.init(
                    named_key(key, "net", seed),
                    features=2,
                    width=width,
                    scaling=NTK() if name == "NTK" else MeanField(),
                    activation="tanh",
                    weight_std=deviation,
                    symmetric=name == "NTK",
                )
                for seed in range(settings.seeds)
            ]
            trained = train(
                nets,
                Dataset(inputs, targets),
                GradientDescent(settings.rate),
                steps=settings.records * per_record,
                every=per_record,
                record=[Outputs()],
                session=session.within(i * len(settings.widths) + j, jobs, f"{name}, m = {width}"),
            )
            outputs[i, j] = trained.table.outputs.values
    return xr.Dataset(
        {
            "outputs": (("scaling", "m", "seed", "time", "sample"), outputs),
            "limit": (("scaling", "time", "sample"), np.stack(list(predicted.values()))),
        },
        {"scaling": list(predicted), "m": list(settings.widths), "time": times},
        {"loss": trained.table.attrs["loss"], "figure": "chen2022, Table 1"},
    )


def _error(table: xr.Dataset) -> xr.DataArray:
    """Root mean square over seeds and samples of the distance to the limit at the end."""
    gap = (table.outputs - table.limit).isel(time=-1)
    return np.sqrt((gap**2).mean(["seed", "sample"]))


def draw(table: xr.Dataset) -> FigureSpec:
    marks = [
        Points(table.m.values, _error(table).sel(scaling=s).values, str(s))
        for s in table.scaling.values
    ]
    panels = [
        Panel(
            "Distance to the limit at the end",
            "m",
            "root mean square over seeds",
            marks,
            xscale="log",
            yscale="log",
        )
    ]
    for name in table.scaling.values:
        limit = table.limit.sel(scaling=name)
        widest = table.outputs.sel(scaling=name).isel(m=-1)
        lines = [
            Line(
                table.time.values,
                limit.isel(sample=i).values,
                f"limit, point {i + 1}",
                group=f"point {i + 1}",
            )
            for i in range(2)
        ]
        lines += [
            Line(
                table.time.values,
                widest.isel(sample=i).mean("seed").values,
                f"m = {int(table.m[-1])}",
                dash="dashed",
                group=f"point {i + 1}",
            )
            for i in range(2)
        ]
        panels.append(Panel(f"{name}: outputs", "flow time t", "f", lines))
    return FigureSpec("Networks and their limits", panels, caption="loss: " + table.attrs["loss"])


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    error, statements = _error(table), []
    for name in table.scaling.values:
        values = error.sel(scaling=name).values
        trend = (
            slope(np.log(table.m.values), np.log(values))[0]
            if len(table.m) > 2
            else float(np.log(values[-1] / values[0]) / np.log(table.m[-1] / table.m[0]))
        )
        statements.append(
            Claim(
                f"{name}: distance to its limit against m, log-log slope",
                trend,
                at_least=-1.6 if name == "MF" else -0.8,
                at_most=-0.3,
            )
        )
        statements.append(
            Claim(f"{name}: distance at the largest m", float(values[-1]), at_most=0.1)
        )
    return tuple(statements)


EXPERIMENT = Experiment(
    name="chen2022-limits",
    paper="chen2022",
    title="Three scalings and their infinite-width limits",
    figure="Table 1",
    settings={
        "smoke": Settings(widths=(64, 512), time=2.0, records=2, seeds=6),
        "default": Settings(),
        "paper": Settings(widths=(64, 256, 1024, 4096, 16_384), seeds=32),
    },
    run=run,
    draw=draw,
    claims=claims,
)
