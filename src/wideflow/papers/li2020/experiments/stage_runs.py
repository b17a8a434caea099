"""What the experiments of li2020 share: a run of norm-coupled neurons with its tensor orders, and
its stage events.
"""

import math
from typing import Any

import numpy as np
import xarray as xr

from ...._core.arc_cosine import abs_hermite_squares
from ...._core.randomness import named_key
from ....dynamics.descent import GradientDescent
from ....dynamics.losses import MeanSquares
from ....figures import Line, Panel, VLine
from ....models.homogeneous import Homogeneous
from ....observables.risks import TestLoss
from ....observables.stages import stage_events
from ....training.session import Session
from ....training.train import train
from ..observables.lottery import BasisNeurons, CoveredDirections, LargestNeuron
from ..observables.tensors import MomentError, OrderLosses
from ..population import GaussianAbsTeacher

ORDERS = (0, 2, 4, 6, 8)
EVENT_LABELS = {
    "T1": "T₁: order 2 settled",
    "T2": "T₂: half the floor",
    "T3": "T₃: a tenth",
    "T4": "T₄: a hundredth",
}
EVENT_DASHES = {"T1": "dotted", "T2": "dashed", "T3": "dashdot", "T4": "solid"}


def teacher_of(features: int, condition: float = 1.0) -> GaussianAbsTeacher:
    r"""$a_i = 1/d$, or for $\kappa > 1$ one half of them $0.5/d$ and the other $1.5/d$ (which is
    $\kappa = 2$).
    """
    if condition == 1.0:
        return GaussianAbsTeacher(np.full(features, 1 / features))
    return GaussianAbsTeacher(np.repeat([0.5, 1.5], features // 2) / features)


def shared(settings) -> dict[str, Any]:
    """The arguments of `stage_table` that an experiment's settings have under the same names."""
    names = ("features", "rate", "time", "records", "seeds")
    return {name: getattr(settings, name) for name in names}


def stage_table(
    key,
    *,
    features: int,
    width: int,
    rate: float,
    time: float,
    records: int,
    seeds: int,
    samples: int = 0,
    activation: str = "abs",
    factor: float = 1.0,
    scale: float = 1.0,
    dynamics=None,
    extra: tuple = (),
    stop_below: float | None = None,
    session: Session | None = None,
) -> xr.Dataset:
    """Runs of equal shape from different seeds, on the exact population or (samples > 0) on a
    sample each.

    Variables (seed, step): `population` the exact loss, `training` the descended one,
    `order_losses` raw by order, `basis_neurons`, `covered_directions`, `largest_neuron`,
    `zeroth_moment_error`, `spectral_moment_error`, and `extra`.
    """
    teacher = teacher_of(features)
    nets = [
        Homogeneous.init(
            named_key(key, "net", seed),
            features=features,
            width=width,
            activation=activation,
            factor=factor,
            scale=scale,
        )
        for seed in range(seeds)
    ]
    steps = math.ceil(time / rate)
    record = [
        OrderLosses(ORDERS),
        BasisNeurons(),
        CoveredDirections(),
        LargestNeuron(),
        MomentError("zeroth"),
        MomentError("spectral"),
        *extra,
    ]
    options: dict[str, Any] = dict(
        steps=steps,
        every=max(1, steps // records),
        loss=MeanSquares(),
        stop_below=stop_below,
        session=session,
    )
    how = dynamics or GradientDescent(rate)
    if samples:
        sets = [teacher.sample(named_key(key, "data", seed), samples) for seed in range(seeds)]
        run = train(
            nets,
            sets,
            how,
            record=[*record, TestLoss()],
            test=teacher,
            precision="float32",
            **options,
        )
        table = run.table.rename(loss="training", test_loss="population")
    else:
        run = train(nets, teacher, how, record=record, **options)
        table = run.table.rename(loss="population")
        table["training"] = table.population
    sizes = dict(features=features, width=width, samples=samples, rate=rate, floor=teacher.floor)
    return table.assign_attrs(sizes)


def scaled_orders(table: xr.Dataset) -> xr.DataArray:
    r"""$d^2c_k\ell_k$: the orders as the paper's figures (of the un-normalised target) show
    them.
    """
    weights = xr.DataArray(
        [abs_hermite_squares(int(k))[int(k)] for k in table.order.values], dims="order"
    )
    return table.order_losses * (table.attrs["features"] ** 2 * weights)


def run_events(table: xr.Dataset) -> dict[str, np.ndarray]:
    """Each stage event, one number a seed; on samples order 2 settles at its noise floor."""
    d, noisy = int(table.attrs["features"]), bool(table.attrs["samples"])
    events = [
        stage_events(
            table.time.values,
            table.population.isel(seed=i).values,
            table.order_losses.isel(seed=i).sel(order=2).values,
            table.order_losses.isel(seed=i).sel(order=4).values,
            np.full(d, 1 / d),
            noisy=noisy,
        )
        for i in range(table.sizes["seed"])
    ]
    return {name: np.array([one[name] for one in events]) for name in events[0]}


def median(values) -> float:
    """The median over seeds; infinite where half of them never got there."""
    return float(np.median(np.where(np.isnan(values), np.inf, values)))


def furthest(values, low: float, high: float) -> float:
    """The value of any seed that is furthest from the middle of an interval: what a claim on every
    seed asks.
    """
    values = np.asarray(values, dtype=float)
    if np.isnan(values).any():
        return float("nan")
    return float(values[np.argmax(np.abs(values - (low + high) / 2))])


def value_at(table: xr.Dataset, variable: xr.DataArray, time: float) -> np.ndarray:
    """`variable` at the record nearest to `time`, by seed."""
    return variable.isel(step=int(np.argmin(np.abs(table.time.values - time)))).values


def event_marks(events: dict[str, float]) -> list[VLine]:
    """Vertical lines at the stage events that were reached, each with its own dashes."""
    return [
        VLine(events[name], label, dash=EVENT_DASHES[name])
        for name, label in EVENT_LABELS.items()
        if name in events and np.isfinite(events[name])
    ]


def order_panel(
    table: xr.Dataset, title: str, seed: int = 0, events: tuple[str, ...] = tuple(EVENT_LABELS)
) -> Panel:
    """The paper's picture: order losses against time, stage events as vertical lines."""
    curves = scaled_orders(table).isel(seed=seed)
    time = table.time.values
    keep = time > 0
    lines = [
        Line(time[keep], np.maximum(curves.sel(order=k).values[keep], 1e-12), f"order {k}")
        for k in table.order.values
    ]
    times = {name: values[seed] for name, values in run_events(table).items() if name in events}
    return Panel(
        title,
        "mean-field time τ",
        "d² c_k × loss of order k",
        [*lines, *event_marks(times)],
        xscale="log",
        yscale="log",
    )
