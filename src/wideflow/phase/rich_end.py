r"""The rich end of the plane: the mean-field limit at the largest richness, by particles.

Under mean-field scaling a network at a fixed $\gamma_0$ has the limit $m \to \infty$ in which every
neuron follows $\dot w = -\gamma_0A\,n^{-1}\sum_i(f(x_i) - y_i)\,\sigma'(h_i)\,x_i/\sqrt D$ in the
field $f$ of all others. A particle is such a neuron, so that so many particles are a network of
that width, $O(m^{-1/2})$ from the limit; it is trained on every fold like the points of the plane,
and saved like them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from .._core.errors import check_count
from .axes import Axis


def check_particles(particles: int, axes: tuple[Axis, Axis], shared: Mapping[str, Any]) -> None:
    """Refuses planes whose rich end is no mean-field limit."""
    check_count("particles", particles, least=0)
    names = {axis.name for axis in axes}
    plane = "width" in names and names & {"richness", "alpha"}
    if particles and not (plane and shared["scaling"] == "mean-field" and not shared["depth"]):
        raise ValueError(
            f"`particles` must be 0 here, got {particles}: the mean-field limit stands at the "
            "rich end of a plane of richness (or alpha) and width, with one "
            "hidden layer under scaling='mean-field'."
        )


def rich_points(axes: tuple[Axis, Axis], folds: Sequence[int], particles: int) -> list[dict]:
    """The settings of the limit's runs, one a fold."""
    axis = next(axis for axis in axes if axis.name in ("richness", "alpha"))
    richest = max(axis.setting(value)["richness"] for value in axis.values)
    return [{"fold": fold, "richness": richest, "width": particles} for fold in folds]


def rich_errors(table: xr.Dataset, points: Sequence[dict], levels, folds: int) -> xr.Dataset:
    """Validation and test error of the limit, (fold, level); infinite where a level was not reached
    or a run is missing.

    Args:
        table: of the runs, with dimensions point and level.
        points: their settings.
        folds: $K$ of the split.
    """
    errors = {name: np.full((folds, len(levels)), np.inf) for name in ("validation", "test")}
    for row, point in enumerate(points):
        if str(table["run_status"].values[row]) == "missing":
            continue
        for name, array in errors.items():
            values = table[name].sel(level=list(levels)).values[row]
            array[point["fold"]] = np.where(np.isfinite(values), values, np.inf)
    return xr.Dataset(
        {name: (("fold", "level"), array) for name, array in errors.items()},
        {"level": list(levels)},
        {"richness": points[0]["richness"], "particles": points[0]["width"]},
    )
