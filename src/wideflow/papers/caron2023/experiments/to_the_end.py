r"""Gradient flow to time 1e8 on real data, under the rate that the theorems certify (caron2023,
Lemma D.1 and Theorem 4.2).

Lemma D.1 bounds the loss by $L_0\exp(-2\int_0^t\lambda_{\min}(\Theta_s)\,\mathrm ds)$; Theorem 4.2
promises $\lambda_{\min}\ge\gamma\kappa_n/4$ for all time, with $\kappa_n$ the smallest eigenvalue
of the limit kernel. Both rates are so small on real data that the loss is near its end before the
bound begins to fall: descent would need 1e9 steps to show it. Training parts as in Figures 6-9;
rows whose inputs occur before are left out, as the theorems ask for inputs no two of which are
parallel.

Run:  wideflow run caron2023-to-the-end
Takes:  smoke 20 s; paper 10 s (energy) to 10 min (airfoil) a run on two cores
"""

import math
import time as clock
from dataclasses import dataclass

import numpy as np
import xarray as xr

from .... import observables
from ...._core.errors import check_count, check_positive
from ...._core.randomness import named_key
from ...._core.scalings import NTK, Zipf
from ....data.dataset import Dataset
from ....dynamics.flow import GradientFlow
from ....experiments.base import Claim, Experiment
from ....figures import FigureSpec, Line, Panel
from ....limits.kernels import mean_ntk, spectrum
from ....models.shallow import Shallow
from ....training.train import train
from .members import numbers
from .regression import load

NOISE = 1e-20  # losses below it, relative to the start, are rounding


@dataclass(frozen=True)
class Settings:
    datasets: tuple[str, ...] = ("concrete", "energy", "airfoil")
    largest: int = 0  # at most so many training rows; 0 for all
    width: int = 2000
    activations: tuple[str, ...] = ("tanh", "softplus")
    gammas: tuple[float, ...] = (1.0, 0.5)
    alpha: float = 0.5
    time: float = 1e8
    per_decade: int = 6
    tolerance: float = 1e-3
    seeds: int = 1

    def __post_init__(self):
        for name in ("width", "per_decade", "seeds"):
            check_count(name, getattr(self, name))
        for name in ("time", "tolerance"):
            check_positive(name, getattr(self, name))


def run(settings: Settings, key, session) -> xr.Dataset:
    grid = np.concatenate(
        [[0.0], np.geomspace(1e-2, settings.time, _decades(settings) * settings.per_decade + 1)]
    )
    kinds = [(kind, gamma) for kind in settings.activations for gamma in settings.gammas]
    shape, rows = (len(settings.datasets), len(kinds), settings.seeds), []
    for name in settings.datasets:
        data = distinct(load(name, settings.largest)["train"])
        for kind, gamma in kinds:
            for seed in range(settings.seeds):
                part = session.within(len(rows), math.prod(shape), f"{name}, {label(kind, gamma)}")
                own = named_key(key, "network", seed)
                rows.append(_one(settings, own, data, kind, gamma, grid, part))
    variables = {}
    for field, first in rows[0].items():
        values = np.reshape([row[field] for row in rows], (*shape, *np.shape(first)))
        variables[field] = (("dataset", "setting", "seed", "time")[: values.ndim], values)
    return xr.Dataset(
        variables,
        {
            "dataset": list(settings.datasets),
            "setting": [label(*kind) for kind in kinds],
            "seed": np.arange(settings.seeds),
            "time": grid,
        },
        {
            "loss": "half sum of squares, (1/2) sum (f - y)^2",
            "width": settings.width,
            "end": settings.time,
            "tolerance": settings.tolerance,
        },
    )


def _decades(settings: Settings) -> int:
    return int(np.ceil(np.log10(settings.time / 1e-2)))


def label(kind: str, gamma: float) -> str:
    return f"{kind}, γ={gamma:g}".replace("0.", ".")


def distinct(data: Dataset) -> Dataset:
    """The first row of every input."""
    _, first = np.unique(np.asarray(data.inputs).round(12), axis=0, return_index=True)
    return data.take(np.sort(first))


def _one(settings: Settings, key, data: Dataset, kind: str, gamma: float, grid, session) -> dict:
    scaling = NTK() if gamma == 1 else Zipf(gamma, settings.alpha)
    net = Shallow.init(
        key, features=data.dimension, width=settings.width, scaling=scaling, activation=kind
    )
    began = clock.perf_counter()
    result = train(
        net,
        data,
        GradientFlow(settings.tolerance, method="gram"),
        time=settings.time,
        every=grid[1:],
        record=[observables.KernelMinEigenvalue()],
        session=session,
        progress=lambda done, total, _: session.progress(
            np.log1p(100 * done), np.log1p(100 * total), ""
        ),
    )
    seconds = clock.perf_counter() - began
    kernel = spectrum(mean_ntk(data.inputs, net.activation))
    gram = observables.tangent_gram(net, data.inputs)
    missing = len(grid) - result.table.sizes["step"]  # a flow at rest stays where it is
    still = lambda values: np.pad(np.asarray(values, float), (0, missing), mode="edge")
    return {
        "loss": still(result.table["loss"]),
        "kernel_gap": still(result.table["kernel_gap"]),
        "kernel_top": float(np.linalg.eigvalsh(gram)[-1]),
        "rows": len(data),
        "kappa": kernel.smallest if kernel.resolved else np.nan,
        "promised_gap": gamma * kernel.smallest / 4 if kernel.resolved else np.nan,
        "steps": int(result.state.steps),
        "evaluations": int(result.state.evaluations),
        "seconds": seconds,
        "good": float(result.status.good),
        "stationary_at": float(result.table["time"][-1]) if missing else np.nan,
    }


def resolution(table: xr.Dataset) -> xr.DataArray:
    """What rounding leaves of a smallest eigenvalue: the machine precision times the largest one
    times the number of rows.
    """
    return np.finfo(np.float64).eps * table["kernel_top"] * table["rows"]


def certificate(table: xr.Dataset) -> xr.DataArray:
    r"""$\exp(-2\int\lambda_{\min})$: in every interval between records the smaller of its ends, 0
    where it is not resolved.
    """
    gaps = table["kernel_gap"].where(table["kernel_gap"] > resolution(table), 0.0)
    low = np.minimum(gaps.values[..., 1:], gaps.values[..., :-1])
    integral = np.cumsum(low * np.diff(table["time"].values), axis=-1)
    bound = np.exp(-2 * np.concatenate([np.zeros((*integral.shape[:-1], 1)), integral], axis=-1))
    return table["kernel_gap"].copy(data=bound)


def _curves(one: xr.Dataset, bound: xr.DataArray, group: str) -> tuple[list, list]:
    """Loss with its two bounds, and the eigenvalue with its promise, of one run."""
    times, promise = one["time"].values[1:], float(one["promised_gap"])
    promised = np.exp(-2 * np.nan_to_num(promise) * times)
    line = lambda values, dash: Line(
        numbers(times),
        numbers(np.maximum(values, NOISE)),
        group if dash == "solid" else "",
        dash=dash,
        group=group,
    )
    losses = [
        line((one["loss"] / one["loss"][0]).values[1:], "solid"),
        line(bound.values[1:], "dashed"),
        line(promised, "dotted"),
    ]
    gaps = [line(one["kernel_gap"].values[1:], "solid")]
    if np.isfinite(promise):
        gaps.append(line(np.full(len(times), promise), "dotted"))
    return losses, gaps


def draw(table: xr.Dataset) -> FigureSpec:
    bounds, shown = certificate(table), []
    for name in table["dataset"].values:
        losses, gaps = [], []
        for setting in table["setting"].values:
            for seed in table["seed"].values:
                here = {"dataset": name, "setting": setting, "seed": seed}
                mine = _curves(table.sel(here), bounds.sel(here), str(setting))
                losses, gaps = losses + mine[0], gaps + mine[1]
        shown.append(
            Panel(
                f"{name}: loss over its start",
                "flow time t",
                "L(t) / L(0)",
                losses,
                xscale="log",
                yscale="log",
            )
        )
        shown.append(
            Panel(
                f"{name}: smallest eigenvalue",
                "flow time t",
                "λ_min(Θ)",
                gaps,
                xscale="log",
                yscale="log",
            )
        )
    return FigureSpec(
        f"Gradient flow to time {table.attrs['end']:g} and the rate the theorems certify",
        shown,
        columns=2,
        caption="Left: solid the loss, dashed the bound of Lemma D.1 with the measured "
        "eigenvalue, dotted the rate γκ/2 of Theorem 4.2. "
        "Right: dotted the γκ/4 that Theorem 4.2 promises.",
    )


def claims(table: xr.Dataset) -> tuple[Claim, ...]:
    bounds, statements = certificate(table), []
    shares = table["loss"] / table["loss"].isel(time=0)
    ratio = (shares / bounds).where((shares > NOISE) & (table["time"] > 0), 0.0)
    for name in table["dataset"].values:
        one = table.sel(dataset=name)
        resolved = one["kernel_gap"].min("time") > resolution(one)
        note = "; ".join(
            f"{s}: λ_min {float(one['kernel_gap'].sel(setting=s).min()):.2g}"
            + ("" if bool(resolved.sel(setting=s).all()) else " (not resolved)")
            + "".join(
                f", {float(one[what].sel(setting=s).mean()):.0f} {unit}"
                for what, unit in (
                    ("steps", "steps"),
                    ("evaluations", "evaluations"),
                    ("seconds", "s"),
                )
            )
            for s in one["setting"].values
        )
        mine = shares.sel(dataset=name)
        rise = mine.diff("time") / mine.isel(time=slice(0, -1)).values
        statements += [
            Claim(
                f"{name}: every run reaches the end",
                holds=bool((one["good"] == 1).all()),
                note=note,
            ),
            Claim(
                f"{name}: loss over the bound of Lemma D.1, largest",
                float(ratio.sel(dataset=name).max()),
                at_most=1.0 + 1e-6,
            ),
            Claim(
                f"{name}: the loss never rises, largest relative rise",
                float(rise.where(mine > NOISE).max()),
                at_most=float(table.attrs["tolerance"]),
            ),
        ]
    return tuple(statements)


EXPERIMENT = Experiment(
    name="caron2023-to-the-end",
    paper="caron2023",
    title="Gradient flow to its end under the certified rate",
    figure="Lemma D.1 and Theorem 4.2, extension",
    settings={
        "smoke": Settings(
            datasets=("energy",),
            largest=40,
            width=100,
            activations=("tanh",),
            time=1e4,
            per_decade=2,
        ),
        "default": Settings(largest=200, width=500, activations=("tanh",)),
        "paper": Settings(),
    },
    run=run,
    draw=draw,
    claims=claims,
    needs_data=("concrete", "energy", "airfoil"),
)
