r"""What the experiments of chen2022 share: the loss, compressed descent, and tables whose runs have
grids of their own.

The paper states the half SUM of squares and a step of 1, which contradict its figures (steps beyond
stability); with the half MEAN everything it reports comes out. So the mean is descended, and every
table says so: `time` is always that of the half sum, $t = k \delta / n$. A compressed run takes
steps of `fraction` $/ \lambda_{\max}(K^0)$ in that time up to $T$, the literal one 50 000 steps
of 1.
"""

import math
from typing import Any

import numpy as np
import xarray as xr

from ....dynamics.descent import GradientDescent
from ....dynamics.losses import HalfMeanSquares
from ....training.recorder import recording
from ....training.train import Run, train
from ..observables.activity import safe_rate

LITERAL_STEPS = 50_000
REDUCTION = (
    "half mean of squares is descended (the paper's half sum with step 1 is unstable); time is "
    "that of the half sum, t = k δ / n"
)


def descend(
    nets,
    datas,
    *,
    total_time: float,
    fraction: float,
    literal: bool,
    record,
    tests=None,
    records: int = 40,
    session=None,
) -> Run:
    """Trains the members together with one rate: the safest of the members' own, or 1 where
    `literal`.
    """
    samples = len(datas[0])
    if literal:
        rate, steps = 1.0, max(1, round(total_time * samples))
    else:
        rate = min(
            safe_rate(net, data, fraction, mean=True) for net, data in zip(nets, datas, strict=True)
        )
        steps = math.ceil(total_time * samples / rate)
    return train(
        list(nets),
        list(datas),
        GradientDescent(rate),
        steps=steps,
        record=record,
        test=None if tests is None else list(tests),
        loss=HalfMeanSquares(),
        every=recording(steps, records),
        session=session,
    )


def records_of(run: Run, samples: int) -> xr.Dataset:
    """The run's table on a plain `record` axis, with `time` of the half sum and `step` as
    variables, so that runs of different lengths join.
    """
    table, variables = run.table, {}
    for name, values in table.data_vars.items():
        dims = tuple("record" if d == "step" else d for d in values.dims)
        variables[name] = (dims, values.values, values.attrs)
    variables["step"] = ("record", table["step"].values)
    variables["time"] = ("record", table["time"].values / samples)
    out = xr.Dataset(
        variables,
        {"record": np.arange(table.sizes["step"]), "seed": np.arange(table.sizes["seed"])},
    )
    out["rate"] = float(table["time"].values[-1] / max(int(table["step"].values[-1]), 1))
    out["diverged"] = ("seed", [float(not s.good) for s in run.status])
    return out


def stack(tables: dict[Any, xr.Dataset], name: str) -> xr.Dataset:
    """Tables by key along a new axis `name`; shorter runs are filled up with NaN."""
    return xr.concat(
        list(tables.values()),
        xr.DataArray(list(tables), dims=name, name=name),
        join="outer",
        combine_attrs="drop",
    )


def last(values: xr.DataArray) -> xr.DataArray:
    """The last recorded value of every run."""

    def pick(row):
        finite = row[np.isfinite(row)]
        return finite[-1] if finite.size else np.nan

    return xr.apply_ufunc(pick, values, input_core_dims=[["record"]], vectorize=True)


def tell(table: xr.Dataset, settings, **more) -> xr.Dataset:
    """Puts the settings and the loss convention into the attributes."""
    attributes = {
        name: value
        for name, value in vars(settings).items()
        if isinstance(value, int | float | str | tuple) and not isinstance(value, bool)
    }
    attributes["literal"] = int(settings.literal)
    return table.assign_attrs({**attributes, "loss": REDUCTION, **more})


def caption(table: xr.Dataset, spread: str = "") -> str:
    """What was run, as a picture says it of itself; `spread` is what bars or bands are."""
    attrs, seeds = table.attrs, table.sizes["seed"]
    names = {"samples": "n", "features": "d", "width": "m = D"}
    sizes = ", ".join(
        f"{n} = {attrs[k]}" for k, n in names.items() if isinstance(attrs.get(k), int)
    )
    steps = (
        f"{attrs['steps_of_one']} steps of 1"
        if attrs["literal"]
        else f"steps of {attrs['fraction']:g}/λ_max(K⁰)"
    )
    careful = attrs.get("careful_fraction")
    steps += f" ({careful:g}/λ_max for MF)" if careful and not attrs["literal"] else ""
    mean = f"mean over {seeds} seeds" if seeds > 1 else "one seed"
    return f"{attrs['loss']}. {sizes}; {steps}; {mean}{spread}. Compare {attrs['figure']}."


def slope(x, y) -> tuple[float, float]:
    """Least-squares slope and the share of variance explained."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    good = np.isfinite(x) & np.isfinite(y)
    if good.sum() < 3 or np.ptp(x[good]) == 0:
        return math.nan, math.nan
    fitted = np.polyfit(x[good], y[good], 1)
    rest = y[good] - np.polyval(fitted, x[good])
    return float(fitted[0]), float(1 - rest.var() / max(y[good].var(), 1e-300))
