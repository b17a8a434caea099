"""What an observable is: a named number (or array) read off a snapshot of a run."""

import abc
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from .._core.errors import check_count, check_kind
from .._core.precision import DoubleModule
from ..data.dataset import DatasetObjective
from ..data.objective import AbstractObjective
from ..dynamics.base import Objective, Snapshot
from ..models.base import AbstractModel
from ..models.shallow import Shallow

__all__ = ["AbstractObservable"]


class AbstractObservable(DoubleModule):
    """`name` is the table's variable, `label` the axis of figures, `axes` the dimensions of the
    value.

    An observable may have a mapping `coordinates` from its axes to the values along them; the table
    carries them.
    """

    name: eqx.AbstractVar[str]
    label: eqx.AbstractVar[str]
    axes: eqx.AbstractVar[tuple[str, ...]]

    def __check_init__(self):
        for what, text in (("name", self.name), ("label", self.label)):
            check_kind(what, text, str, "text")
        check_kind("axes", self.axes, tuple, "a tuple of axes' names")
        for axis in self.axes:
            check_kind("axes", axis, str, "a tuple of axes' names")

    @abc.abstractmethod
    def __call__(self, snapshot: Snapshot[AbstractModel, AbstractObjective]) -> Float[Array, "..."]:
        """The value at this moment; pure and compilable."""


SampleSnapshot = Snapshot[AbstractModel, DatasetObjective]
"""Of a run on samples."""
ShallowSnapshot = Snapshot[Shallow, DatasetObjective]
"""Of a run of a `Shallow` network on samples."""


def check_samples(samples: int | None) -> None:
    if samples is not None:
        check_count("samples", samples, remedy="None takes all training inputs.")


def probe_features(snapshot: Snapshot, samples: int | None) -> Float[Array, "sample embedded"]:
    """The embedded training inputs at which kernels are watched: all, or the first `samples`."""
    features = getattr(snapshot.objective, "features", None)
    if features is None:
        raise ValueError(
            "this observable needs training points, but the run is on an exact population; "
            "leave it out or train on a `Dataset`."
        )
    return features if samples is None else features[:samples]


def one_residual(snapshot: Snapshot[Any, DatasetObjective]) -> Float[Array, " sample"]:
    """$r = f - y$ of a network of one output, of which alone the formula speaks."""
    residual = snapshot.objective.outputs(snapshot.model) - snapshot.objective.targets
    if residual.ndim != 1:
        raise ValueError(
            f"this observable is about a network of one output, got {residual.shape[1]}; leave it "
            "out of `record`, or train on one column of the targets."
        )
    return residual


def test_objective(snapshot: Snapshot[Any, Objective]) -> Objective:
    if snapshot.test is None:
        raise ValueError("this observable looks at test data; give `test=` to `train`.")
    return snapshot.test
