"""The panels of a run that records everything: function or predictions, loss, errors, kernel,
nodes, features, spectrum.
"""

import numpy as np
import xarray as xr

from ..figures import Heatmap, Line, Mark, Panel, Points
from ..observables.regime import LAZY, RICH

MOST_NODES = 400  # shown as points
NOW, BEFORE, LAZILY, LIMIT = "this network", "at the start", "linearised", "infinite width"
NEURONS, TEST = "neurons (where they switch)", "on test data"
COLOURS = (BEFORE, NOW, LAZILY, LIMIT, NEURONS, TEST)
FAR = 1e3  # times the loss at the start: predictions beyond are not drawn
QUANTILES = (0.25, 0.5, 0.75)
AVERAGED = 8  # last records over which the spectrum that is drawn is a mean


def panels(table: xr.Dataset) -> list[Panel]:
    """Count, order and marks depend on what is recorded and on the first record alone, not on how
    far the run is.
    """
    first = _function(table) if "learned_function" in table else _predictions(table)
    nodes = [_nodes(table), _features(table)] if "weight_movement" in table else []
    return [
        first,
        _loss(table),
        _regime(table),
        _errors(table),
        *nodes,
        _kernel(table),
        _spectrum(table),
    ]


def _loss(table: xr.Dataset) -> Panel:
    ahead = table.linearised_loss.values  # grows without bound where the rate is too large
    ahead = np.where(ahead < FAR * table.loss.values[0], ahead, np.nan)
    marks = [
        Line(table.time.values, table.loss.values, NOW),
        Line(table.time_ahead.values, ahead, LAZILY, dash="dashed"),
    ]
    note = ""
    if "limit_loss" in table:
        curve, low, high = (table[n].values for n in ("limit_loss", "limit_low", "limit_high"))
        marks.append(Line(table.limit_time.values, curve, LIMIT, low, high, dash="dashed"))
        note = str(table.limit_time.attrs["note"])
    return Panel("Loss", "time", _loss_name(table), marks, yscale="log", note=note)


def _loss_name(table: xr.Dataset) -> str:
    """Such as "half sum of squares": the words of the table's attribute before its formula."""
    return str(table.attrs.get("loss", "loss")).partition(",")[0]


def _errors(table: xr.Dataset) -> Panel:
    marks = [Line(table.time.values, table.risk.values, "on training data", group=NOW)]
    if "test_risk" in table:
        marks.append(Line(table.time.values, table.test_risk.values, TEST))
    return Panel("Training and test error", "time", "mean of squares", marks, yscale="log")


def _kernel(table: xr.Dataset) -> Panel:
    """The largest eigenvalue and the quartiles: single small eigenvalues jump with every kink that
    crosses a sample.
    """
    shown = [name for name in ("largest", "median") if _resolved(table)[name]]
    now, ends = _summary(table.kernel_spectrum.values), table.time_ahead.values[[0, -1]]
    marks = [Line(table.time.values, now["largest"], "largest", dash="dashdot", group=NOW)]
    if "median" in shown:
        low, middle, high = (np.maximum(values, resolution(table)) for values in now["quartiles"])
        marks.append(Line(table.time.values, middle, "median and quartiles", low, high, group=NOW))
    if "median" in shown and "limit_spectra" in table:
        middle = _summary(table.limit_spectra.values)["quartiles"][1]
        marks.append(
            Line(
                ends,
                [np.median(middle)] * 2,
                "median at infinite width",
                [middle.min()] * 2,
                [middle.max()] * 2,
                dash="dashed",
                group=LIMIT,
            )
        )
    return Panel(
        "Eigenvalues of the kernel",
        "time",
        "eigenvalue",
        marks,
        yscale="log",
        note=_unresolved(table),
    )


def _summary(spectra: np.ndarray) -> dict:
    """Of ascending eigenvalues along the last axis: the largest, and the three quartiles."""
    return {"largest": spectra[..., -1], "quartiles": np.quantile(spectra, QUANTILES, axis=-1)}


def _resolved(table: xr.Dataset) -> dict[str, bool]:
    first, floor = table.kernel_spectrum.values[0], resolution(table)[0]
    return {"largest": True, "median": bool(np.median(first) > floor)}


def _unresolved(table: xr.Dataset) -> str:
    """How many eigenvalues drown in rounding at the start, where any do."""
    count = int(np.sum(table.kernel_spectrum.values[0] <= resolution(table)[0]))
    total = table.sizes["eigenvalue"]
    return f"{count} of {total} are below rounding, not drawn" if count else ""


def resolution(table: xr.Dataset) -> np.ndarray:
    r"""$n\,\epsilon\,\lambda_{\max}(\Theta_t)$ at every record: what is below it is rounding, and
    is not drawn.
    """
    largest = table.kernel_spectrum.values[:, -1]
    return table.sizes["eigenvalue"] * np.finfo(float).eps * largest


def _regime(table: xr.Dataset) -> Panel:
    change, gap = (
        np.where(table[n] > 1e-9, table[n].values, np.nan)
        for n in ("kernel_change", "linearisation_gap")
    )
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
    marks = [Points(start[0], start[1], BEFORE, size=3), Points(now[0], now[1], NOW, size=3)]
    return Panel("Features of two inputs", "h(x₁)", "h(x₂)", marks, one_unit=True)


def _spectrum(table: xr.Dataset) -> Panel:
    floor, spectra = resolution(table), table.kernel_spectrum.values
    start = _recent_mean(spectra[:1], floor[:1])[::-1]
    now = _recent_mean(spectra[-AVERAGED:], floor[-AVERAGED:])[::-1]
    index = np.arange(1, len(now) + 1)
    marks = [Line(index, start, BEFORE, dash="dotted"), Line(index, now, NOW)]
    if "limit_spectrum" in table:
        limit = table.limit_spectrum.values[::-1]
        limit = np.where(limit > floor[0], limit, np.nan)
        marks.append(Line(index, limit, LIMIT, dash="dashed"))
    return Panel("Spectrum of the tangent Gram matrix", "index", "eigenvalue", marks, "log", "log")


def _recent_mean(spectra: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """The geometric mean over records of every eigenvalue, of those records in which it is above
    rounding; NaN where there is none.

    A kink that lies on a sample switches a row of the Gram matrix on and off from record to record,
    and the small eigenvalues with it; their mean stands still.
    """
    resolved = spectra > floor[:, None]
    logs = np.log(np.where(resolved, spectra, 1.0)).sum(axis=0)
    count = resolved.sum(axis=0)
    return np.where(count > 0, np.exp(logs / np.maximum(count, 1)), np.nan)


def _some(count: int) -> np.ndarray:
    """At most `MOST_NODES` positions, denser at the beginning, where node scalings put their
    weight.
    """
    if count <= MOST_NODES:
        return np.arange(count)
    return np.unique(np.geomspace(1, count, MOST_NODES).astype(int) - 1)


def _predictions(table: xr.Dataset) -> Panel:
    """For data of many inputs: what the network says against what is true, on the rows it learns
    from and on others.
    """
    true, now = table.true.values, table.predicted.isel(step=-1).values
    test = table.held_out.values.astype(bool)
    ends = [true.min(), true.max()]
    marks = [
        Line(ends, ends, "equal", dash="dotted", group="border"),
        Points(true[~test], now[~test], "on training data", size=4, group=NOW),
    ]
    if test.any():
        marks.append(Points(true[test], now[test], TEST, size=4))
    return Panel("Predicted against true", "target", "f(x)", marks)


def _function(table: xr.Dataset) -> Panel:
    names = [str(name) for name in np.atleast_1d(table.grid_places.attrs.get("names", []))]
    draw = _curve if table.sizes["plane"] == 1 else _surface
    return draw(table, _places(table), names)


def _places(table: xr.Dataset) -> np.ndarray | None:
    """Where the neurons inside the picture switch; None for networks whose neurons have no such
    place.
    """
    if "neuron_places" not in table:
        return None
    places = table.neuron_places.isel(step=-1).values[:, _some(table.sizes["width"])]
    low, high = (end(table.grid_places.values, axis=0)[:, None] for end in (np.min, np.max))
    return places[:, np.all((places >= low) & (places <= high), axis=0)]


def _curve(table: xr.Dataset, places: np.ndarray | None, names: list[str]) -> Panel:
    x, f = table.grid_places.values[:, 0], table.learned_function.values
    now, ahead = f[-1], table.linearised_function.values
    bounded = not np.any(np.abs(ahead) >= FAR * np.abs(table.data_targets.values).max())
    ahead = ahead if bounded else np.full_like(ahead, np.nan)
    marks: list[Mark] = [
        Line(x, f[0], BEFORE, dash="dotted"),
        Line(x, now, NOW),
        Line(x, ahead, LAZILY, dash="dashed"),
    ]
    if places is not None:
        marks.append(Points(places[0], np.interp(places[0], x, now), NEURONS, size=3))
    marks.append(Points(table.data_places.values[:, 0], table.data_targets.values, "data", size=6))
    at_end, absent = (
        "as it would be at the end of the run",
        "diverges at this rate, and is not drawn",
    )
    note = f"linearised: {at_end if bounded else absent}"
    return Panel("Learned function", _axis(names, 0, "x"), "f(x)", marks, note=note)


def _surface(table: xr.Dataset, places: np.ndarray | None, names: list[str]) -> Panel:
    grid = table.grid_places.values
    x, y = (np.unique(grid[:, i]) for i in (0, 1))
    values = table.learned_function.isel(step=-1).values.reshape(len(y), len(x))
    data = table.data_places.values
    marks: list[Mark] = [
        Heatmap(x, y, values, "f(x)"),
        Points(
            data[:, 0],
            data[:, 1],
            "data, filled with their target",
            size=7,
            values=table.data_targets.values,
        ),
    ]
    if places is not None:
        marks.append(Points(places[0], places[1], NEURONS, size=4))
    return Panel(
        "Learned function", _axis(names, 0, "x₁"), _axis(names, 1, "x₂"), marks, one_unit=True
    )


def _axis(names: list[str], number: int, default: str) -> str:
    """The column's own name; generated data call theirs x1 and x2."""
    name = names[number] if number < len(names) else default
    return default if name == f"x{number + 1}" else name
