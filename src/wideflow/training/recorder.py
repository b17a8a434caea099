"""Calls the observables at every record, keeps their values, and builds the table."""

from collections.abc import Callable, Mapping, Sequence

import jax.numpy as jnp
import numpy as np
import xarray as xr

from .._core.status import Status
from .._core.trees import describe
from ..dynamics.base import Snapshot
from .ensemble import Ensemble

OBSERVE_ROLES = ("plain", "member", "member", "member", "objective", "test", "plain", "member")


def loss(snapshot: Snapshot):
    """The descended objective."""
    return snapshot.objective.value(snapshot.model)


def observables(record: Callable | Sequence[Callable]) -> tuple[Callable, ...]:
    """`record` as a tuple that has the loss in it, first unless it is named."""
    if callable(record) and not isinstance(record, Sequence):
        record = (record,)
    return tuple(record) if "loss" in map(name_of, record) else (loss, *record)


def name_of(observable) -> str:
    return getattr(observable, "name", getattr(observable, "__name__", "value"))


class Recorder:
    """All records of a run.

    Attributes:
        marks: of a flow, the coordinate `step` of its records; None for dynamics in steps.
        notes: attributes of the table beyond the usual ones.
    """

    def __init__(self, ensemble: Ensemble, record, grid, axis: str, engine: str):
        self.ensemble, self.axis, self.engine = ensemble, axis, engine
        self.names = [name_of(observable) for observable in record]
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"`record` has two observables of one name: {sorted(self.names)}.")
        self.record, self.grid = record, grid
        self.marks: np.ndarray | None = None
        self.notes: dict[str, str] = {}
        self.rows: list[dict[str, np.ndarray]] = []
        self.positions: list[tuple[np.ndarray, np.ndarray]] = []
        self.solver_steps: list[np.ndarray] = []

    def take(self, model, state, step, time) -> np.ndarray:
        """Records the model there; gives its loss."""
        e = self.ensemble
        if self.marks is not None:
            self.solver_steps.append(np.asarray(step))
            step = self.marks[len(self.rows)]
        row = e.call(
            _observe,
            OBSERVE_ROLES,
            self.record,
            model,
            e.start,
            state,
            e.objective,
            e.test,
            np.asarray(step),
            time,
        )
        values = (np.asarray(value) for value in e.whole(row))
        row = dict(zip(self.names, values, strict=True))
        if not self.rows:
            self._check_axes(row)
        self.rows.append(row)
        self.positions.append((np.asarray(step), np.asarray(time)))
        return self.rows[-1]["loss"]

    def _check_axes(self, row: dict[str, np.ndarray]) -> None:
        """Two observables that share an axis must agree on it: checked at the first record, not after the training."""
        first_uses: dict[str, tuple[str, list]] = {}
        for name, observable in zip(self.names, self.record, strict=True):
            shape = row[name].shape[len(self._lead) :]
            for axis, size in zip(_axes(name, observable, len(shape)), shape, strict=True):
                values = list(_coordinates(observable).get(axis, range(size)))
                other, theirs = first_uses.setdefault(axis, (name, values))
                if values != theirs:
                    raise ValueError(
                        f"`record` has {other!r} and {name!r} on one axis {axis!r} with different values, {theirs} and "
                        f"{values}: give one of them another axis (`axis=` where the observable takes it) or the same values."
                    )

    def drop_last(self) -> None:
        for series in (self.rows, self.positions, self.solver_steps):
            series.pop()

    def arrays(self) -> dict[str, np.ndarray]:
        """All records, ready for a checkpoint."""
        arrays = {f"row/{n}": np.stack([row[n] for row in self.rows]) for n in self.names}
        arrays["step"] = np.stack([position[0] for position in self.positions])
        arrays["time"] = np.stack([position[1] for position in self.positions])
        if self.solver_steps:
            arrays["solver_steps"] = np.stack(self.solver_steps)
        return arrays

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        count = len(arrays["step"])
        self.rows = [{n: arrays[f"row/{n}"][i] for n in self.names} for i in range(count)]
        self.positions = [(arrays["step"][i], arrays["time"][i]) for i in range(count)]
        self.solver_steps = list(arrays.get("solver_steps", ()))

    def table(self, status: tuple[Status, ...], seconds: float) -> xr.Dataset:
        e = self.ensemble
        steps = np.stack([position[0] for position in self.positions])
        coordinates = self._marked() | {
            "step": steps if steps.ndim == 1 else steps[:, 0],
            "time": self._times(),
        }
        if self.solver_steps and "instead_of" not in self.notes:
            coordinates["solver_steps"] = ("step", np.stack(self.solver_steps))
        if e.several:
            coordinates[self.axis] = np.arange(e.count)
        attributes = {
            "loss": e.objective.describe(),
            "dynamics": describe(e.dynamics),
            "model": e.title,
            "neuron_factor": str(e.factors),
            "precision": e.precision,
            "seconds": seconds,
            "engine": self.engine,
            "status": "; ".join(dict.fromkeys(s.sentence for s in status)),
            **self.notes,
        }
        variables = {
            name: self._variable(name, observable)
            for name, observable in zip(self.names, self.record, strict=True)
        }
        return xr.Dataset(variables, coordinates, attributes)

    def _marked(self) -> dict[str, list]:
        """The values along the observables' own axes, where they have any."""
        marked = {}
        for name, observable in zip(self.names, self.record, strict=True):
            axes = _axes(name, observable, self.rows[0][name].ndim - len(self._lead))
            coordinates = _coordinates(observable)
            marked |= {axis: list(coordinates[axis]) for axis in axes if axis in coordinates}
        return marked

    @property
    def _lead(self) -> tuple[str, ...]:
        return (self.axis,) if self.ensemble.several else ()

    def _times(self):
        times = np.stack([position[1] for position in self.positions])
        if not self.ensemble.several:
            return ("step", times)
        if np.ptp(times, axis=1).max() > 0:  # members with durations of their own
            return ((*self._lead, "step"), times.T)
        return ("step", times[:, 0])

    def _variable(self, name: str, observable):
        value = np.stack([row[name] for row in self.rows])
        if self.ensemble.several:
            value = np.moveaxis(value, 1, 0)
        extra = value.ndim - len(self._lead) - 1
        axes = _axes(name, observable, extra)
        label = getattr(observable, "label", None) or _first_line(observable) or name
        return ((*self._lead, "step", *axes), value, {"label": label})


def _axes(name: str, observable, dimensions: int) -> tuple[str, ...]:
    """The names of a value's own axes; an observable that names none, or too few, gets its own."""
    axes = tuple(getattr(observable, "axes", ()))
    return axes if len(axes) == dimensions else tuple(f"{name}_{i}" for i in range(dimensions))


def _coordinates(observable) -> Mapping[str, Sequence]:
    return getattr(observable, "coordinates", {})


def _first_line(observable) -> str:
    return (getattr(observable, "__doc__", None) or "").strip().split("\n")[0].rstrip(".")


def _observe(record, model, start, state, objective, test, step, time):
    shot = Snapshot(model, start, objective, test, step, time, state)
    return tuple(_recorded(observable, shot) for observable in record)


def _recorded(observable: Callable, snapshot):
    """What an observable says, as an array; text, tables and None are refused by name."""
    value = observable(snapshot)
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError) as error:
        name = getattr(observable, "name", getattr(observable, "__name__", "an observable"))
        raise ValueError(
            f"`record` must hold functions that return numbers or arrays, but {name!r} returned {value!r}."
        ) from error
