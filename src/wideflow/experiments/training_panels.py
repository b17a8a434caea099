"""The panels of a run that records everything: loss, kernel, nodes, features, spectrum, and the function where it can be drawn."""

import numpy as np
import xarray as xr

from ..figures import Heatmap, Line, Panel, Points
from ..observables.regime import LAZY, RICH

MOST_NODES = 400  # shown as points
NOW, BEFORE, LAZILY, LIMIT = "this network", "at the start", "linearised", "infinite width"
NEURONS = "neurons (where they switch)"
COLOURS = (BEFORE, NOW, LAZILY, LIMIT, NEURONS)
FAR = 1e3  # times the loss at the start: predictions beyond are not drawn


def panels(table: xr.Dataset) -> list[Panel]:
    """Count, order and marks depend on what is recorded alone, not on how far the run is."""
    drawn = [_function(table)] if "learned_function" in table else []
    return [*drawn, _loss(table), _kernel(table), _regime(table), _nodes(table), _features(table), _spectrum(table)]  # fmt: skip


def _loss(table: xr.Dataset) -> Panel:
    ahead = table.linearised_loss.values  # grows without bound where the rate is too large
    ahead = np.where(ahead < FAR * ahead[0], ahead, np.nan)
    marks = [
        Line(table.time.values, table.loss.values, NOW),
        Line(table.time_ahead.values, ahead, LAZILY, dash="dashed"),
    ]
    return Panel("Loss", "time", "loss", marks, yscale="log")


def _kernel(table: xr.Dataset) -> Panel:
    gap, drift = (np.where(v > resolution(table), v, np.nan) for v in (table.kernel_gap.values, table.kernel_drift.values))  # fmt: skip
    limit, ends = table.limit_gap.values, table.time_ahead.values[[0, -1]]
    marks = [
        Line(table.time.values, gap, "gap", group=NOW),
        Line(table.time.values, drift, "drift ‖Θ(t) − Θ(0)‖", group="drift"),
        Line(
            ends, [np.median(limit)] * 2, "gap at infinite width", [limit.min()] * 2, [limit.max()] * 2,
            dash="dashed", group=LIMIT,
        ),
    ]  # fmt: skip
    note = "gap: smallest eigenvalue; not drawn below rounding"
    return Panel("Kernel gap and drift", "time", "eigenvalue, norm", marks, yscale="log", note=note)


def resolution(table: xr.Dataset) -> np.ndarray:
    r"""$n\,\epsilon\,\lambda_{\max}(\Theta_t)$ at every record: what is below it is rounding, and is not drawn."""
    largest = table.kernel_spectrum.values[:, -1]
    return table.sizes["eigenvalue"] * np.finfo(float).eps * largest


def _regime(table: xr.Dataset) -> Panel:
    change, gap = (np.where(table[n] > 1e-9, table[n].values, np.nan) for n in ("kernel_change", "linearisation_gap"))  # fmt: skip
    ends = table.time_ahead.values[[0, -1]]
    marks = [
        Line(table.time.values, change, "kernel change", group=NOW),
        Line(table.time.values, gap, "linearisation gap", group=LAZILY),
        Line(ends, [LAZY] * 2, "lazy below", dash="dashed", group="border"),
        Line(ends, [RICH] * 2, "rich above", dash="dotted", group="border"),
    ]
    return Panel("From lazy to rich", "time", "relative change", marks, yscale="log")


def _nodes(table: xr.Dataset) -> Panel:
    moved = table.weight_movement.isel(step=-1).values
    some = _some(len(moved))
    marks = [Points(some + 1, moved[some], NOW, size=3)]
    return Panel("Weight movement per node", "node", "‖w(t) − w(0)‖", marks, "log", "log")


def _features(table: xr.Dataset) -> Panel:
    some = _some(table.sizes["width"])
    start, now = (table.feature_pair.isel(step=i).values[:, some] for i in (0, -1))
    marks = [Points(*start, BEFORE, size=3), Points(*now, NOW, size=3)]
    return Panel("Features of two inputs", "h(x₁)", "h(x₂)", marks, one_unit=True)


def _spectrum(table: xr.Dataset) -> Panel:
    floor = resolution(table)
    start, now = (
        np.where(values > floor[i], values, np.nan)[::-1]
        for i, values in ((i, table.kernel_spectrum.values[i]) for i in (0, -1))
    )
    index = np.arange(1, len(now) + 1)
    marks = [
        Line(index, start, BEFORE, dash="dotted"),
        Line(index, now, NOW),
        Line(index, table.limit_spectrum.values[::-1], LIMIT, dash="dashed"),
    ]
    return Panel("Spectrum of the tangent Gram matrix", "index", "eigenvalue", marks, "log", "log")


def _some(count: int) -> np.ndarray:
    """At most `MOST_NODES` positions, denser at the beginning, where node scalings put their weight."""
    if count <= MOST_NODES:
        return np.arange(count)
    return np.unique(np.geomspace(1, count, MOST_NODES).astype(int) - 1)


def _function(table: xr.Dataset) -> Panel:
    places = table.neuron_places.isel(step=-1).values[:, _some(table.sizes["width"])]
    low, high = (end(table.grid_places.values, axis=0)[:, None] for end in (np.min, np.max))
    places = places[:, np.all((places >= low) & (places <= high), axis=0)]
    return (_curve if len(places) == 1 else _surface)(table, places)


def _curve(table: xr.Dataset, places: np.ndarray) -> Panel:
    x, f = table.grid_places.values[:, 0], table.learned_function.values
    now, ahead = f[-1], table.linearised_function.values
    bounded = np.all(np.abs(ahead) < FAR * np.abs(table.data_targets.values).max())
    ahead = ahead if bounded else np.full_like(ahead, np.nan)
    marks = [
        Line(x, f[0], BEFORE, dash="dotted"),
        Line(x, now, NOW),
        Line(x, ahead, LAZILY, dash="dashed"),
    ]
    marks += [
        Points(places[0], np.interp(places[0], x, now), NEURONS, size=3),
        Points(table.data_places.values[:, 0], table.data_targets.values, "data", size=6),
    ]
    note = f"linearised: {'as it would be at the end of the run' if bounded else 'diverges at this rate, and is not drawn'}"
    return Panel("Learned function", "x", "f(x)", marks, note=note)


def _surface(table: xr.Dataset, places: np.ndarray) -> Panel:
    grid = table.grid_places.values
    x, y = (np.unique(grid[:, i]) for i in (0, 1))
    values = table.learned_function.isel(step=-1).values.reshape(len(y), len(x))
    marks = [
        Heatmap(x, y, values, "f(x)"),
        Points(
            *table.data_places.values.T,
            "data, filled with their target",
            size=7,
            values=table.data_targets.values,
        ),
        Points(*places, NEURONS, size=4),
    ]
    return Panel("Learned function", "x₁", "x₂", marks, one_unit=True)
