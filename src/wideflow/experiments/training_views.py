"""What a run with `record` = "all" records and knows beforehand, so that there is something to look
at.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from ..data.dataset import Dataset
from ..models.deep import Deep
from ..models.shallow import Shallow
from ..observables.kernels import KernelDistance, KernelSpectrum
from ..observables.laziness import LinearisationGap
from ..observables.movement import WeightMovement
from ..observables.risks import Risk, TestRisk
from ..observables.visual import FeaturePair, NeuronPlaces, OutputsAt
from .deep_theory import deep_theory
from .predictions import awaited, predict

POINTS = {1: 201, 2: 61}  # of the grid along each axis, by the number of inputs


@dataclass(frozen=True)
class Views:
    """The observables of one run, what is known of it at once, and what takes a while to predict.

    Attributes:
        beginning: variables that the table has from its first record on; predictions among them are
            NaN.
        parts: compute the predictions, the quick ones first.
    """

    observables: list
    beginning: xr.Dataset
    parts: tuple[Callable[[], xr.Dataset], ...]

    def without_linearisation(self) -> "Views":
        """For dynamics whose lazy path has no closed form: those numbers stay NaN."""
        unknown = ["linearised_loss", "linearised_function"]
        without = lambda part: lambda: part().drop_vars(unknown, errors="ignore")
        return replace(self, parts=tuple(map(without, self.parts)))


def views(
    network,
    training: Dataset,
    test: Dataset | None,
    times: np.ndarray,
    rate: float | None,
    factor: float,
    key,
    closed: bool = True,
) -> Views:
    """Everything that is drawn of one network; arguments as in `predict`.

    Args:
        closed: the dynamics are descent or flow, whose path with a frozen kernel is known in closed
            form.
    """
    observables = [KernelDistance(), LinearisationGap(), KernelSpectrum(), Risk()]
    observables += [TestRisk()] if test is not None else []
    shallow = isinstance(network, Shallow)
    observables += [WeightMovement(), FeaturePair()] if shallow else []
    grid, places = None, _targets(training, test)
    if training.features[-1:] == ("bias",) and training.dimension - 1 in POINTS:
        grid, places = _plane(training)
        observables += [OutputsAt(grid), *([NeuronPlaces()] if shallow else [])]
    else:
        inputs = np.concatenate([d.inputs for d in (training, test) if d is not None])
        observables += [OutputsAt(inputs, "predicted", "shown")]
    beginning = awaited(network, len(training), times, grid).assign(places)
    parts = [lambda: predict(network, training, times, rate, factor, grid, key)]
    theory = (
        deep_theory(network, training, times, rate, factor, key)
        if closed and isinstance(network, Deep)
        else None
    )
    if theory is not None:
        beginning, parts = beginning.assign(theory.awaited()), [*parts, theory.predict]
    shown = Views(observables, beginning, tuple(parts))
    return shown if closed else shown.without_linearisation()


def _plane(training: Dataset) -> tuple[np.ndarray, dict]:
    """A grid of inputs over the data, and both in units of the constant last column."""
    unit = float(training.inputs[0, -1])
    points = np.asarray(training.inputs[:, :-1], float) / unit
    low, high = points.min(axis=0), points.max(axis=0)
    count = POINTS[points.shape[1]]
    lines = [np.linspace(a - 0.1 * (b - a), b + 0.1 * (b - a), count) for a, b in zip(low, high)]
    mesh = np.stack([axis.ravel() for axis in np.meshgrid(*lines)], axis=1)
    grid = unit * np.concatenate([mesh, np.ones((len(mesh), 1))], axis=1)
    names = {"names": list(training.features[:-1])}
    return grid, {
        "grid_places": (("grid", "plane"), mesh, names),
        "data_places": (("sample", "plane"), points),
        "data_targets": ("sample", np.asarray(training.targets, float)),
    }


def _targets(training: Dataset, test: Dataset | None) -> dict:
    """The targets of all rows whose predictions are shown, training rows first."""
    parts = [d.targets for d in (training, test) if d is not None]
    held_out = np.arange(sum(map(len, parts))) >= len(training)
    return {"true": ("shown", np.concatenate(parts)), "held_out": ("shown", held_out)}
