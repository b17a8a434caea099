"""Records: when they are taken, what is recorded, and the table that it makes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from .._core.arrays import real_values
from .._core.errors import check_count, check_kind, check_positive, check_takes, listing
from .._core.status import Status
from .._core.trees import describe
from ..dynamics.base import Snapshot
from .ensemble import Ensemble, code_of

MOST_STEPS = 2**62  # what a 64-bit counter holds, with room for one more chunk
MOST_RECORDS = 10**8  # 800 MB for each recorded number
RESERVED_AXES = ("step", "time", "solver_steps")
# what NumPy, `float` and `if` raise on a value that is not known before the program runs
TRACED = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
OBSERVE_ROLES = (
    "plain",
    "plain",
    "member",
    "member",
    "member",
    "objective",
    "test",
    "plain",
    "member",
)


@dataclass(frozen=True)
class Logarithmic:
    """Records at 0 and then `per_decade` times per factor of ten, from `first` on.

    Args:
        per_decade: records a factor of ten.
        first: the first step, or time of a flow, after 0.
    """

    per_decade: int = 10
    first: float = 1.0

    def __post_init__(self):
        check_count("per_decade", self.per_decade)
        check_positive("first", self.first)


def record_grid(flow: bool, dynamics, steps, time, every) -> np.ndarray:
    """When a run records: its steps, or the times of a flow."""
    if flow:
        if steps is not None or time is None:
            raise ValueError(
                "a flow runs for `time=...`, not for `steps`; for steps use `GradientDescent`."
            )
        return record_times(every, time)
    if (steps is None) == (time is None):
        raise ValueError("give exactly one of `steps` and `time`.")
    if steps is None:
        rates = np.asarray(getattr(dynamics, "rate", np.nan))
        if not np.all(np.isfinite(rates)) or np.unique(rates).size != 1:
            raise ValueError(
                "`time` needs dynamics with one constant `rate`; give `steps` instead."
            )
        check_positive("time", time)
        check_count("time / rate", int(min(time / float(rates.flat[0]), 1e30)), 0, MOST_STEPS)
        # 2.1 / 0.7 = 3.0000000000000004 is three steps, not four
        steps = int(np.ceil(time / float(rates.flat[0]) * (1 - 1e-12)))
    return record_steps(every, steps)


def record_steps(every, steps) -> np.ndarray:
    """The recorded steps: strictly increasing, from 0 to `steps`."""
    check_count("steps", steps, least=0)
    if every is None:
        every = max(1, steps // 100)
    if isinstance(every, Logarithmic):
        grid = _logarithmic(every, float(steps))
        return np.unique(np.concatenate([[0], np.round(grid).astype(np.int64), [steps]]))
    if isinstance(every, list | tuple):
        every = real_values("every", every)
    if np.ndim(every) == 0:
        check_count("every", every)
        _check_records(steps / every)
        return np.unique(np.append(np.arange(0, steps + 1, int(every)), steps))
    grid = np.unique(_whole_steps(every))
    if grid.size == 0 or grid[0] < 0 or grid[-1] > steps:
        raise ValueError(
            f"`every` must hold steps between 0 and `steps` = {steps}, got {list(grid)[:5]}..."
        )
    return np.unique(np.concatenate([[0], grid, [steps]]))


def record_times(every, time) -> np.ndarray:
    """The recorded times: strictly increasing, from 0 to `time`."""
    check_positive("time", time)
    if every is None:
        every = time / 100
    if isinstance(every, Logarithmic):
        return _ending_at(time, np.concatenate([[0.0], _logarithmic(every, float(time))]))
    if isinstance(every, list | tuple):
        every = real_values("every", every)
    if np.ndim(every) == 0:
        check_positive("every", every)
        _check_records(time / every)
        count = int(np.floor(time / every * (1 + 1e-12)))
        return _ending_at(time, np.arange(count + 1) * every)
    grid = np.unique(np.asarray(real_values("every", every), np.float64))
    if grid[0] < 0 or grid[-1] > time:
        raise ValueError(f"`every` must hold times between 0 and `time` = {time}.")
    return np.unique(np.concatenate([[0.0], grid, [time]]))


def _ending_at(time: float, grid: np.ndarray) -> np.ndarray:
    """The times of a grid, and `time` itself in place of those that are it but for rounding: three
    times 0.1 is more than 0.3.
    """
    return np.append(grid[grid < time * (1 - 1e-12)], float(time))


def _logarithmic(schedule: Logarithmic, last: float) -> np.ndarray:
    if last <= schedule.first:
        return np.array([last], dtype=float)
    decades = np.log10(last / schedule.first)
    return schedule.first * 10 ** np.linspace(
        0, decades, max(2, int(decades * schedule.per_decade) + 1)
    )


def recording(steps: int, records: int) -> np.ndarray:
    """A geometric grid for the beginning joined with an even one for the end."""
    even = np.linspace(0, steps, records + 1)
    early = np.geomspace(1, max(steps, 2), records)
    return np.unique(np.concatenate([even, early]).round().astype(int).clip(0, steps))


def _check_records(count: float) -> None:
    """Refuses grids of records that no memory holds."""
    if not count <= MOST_RECORDS:
        raise ValueError(
            f"`every` would give {count:.3g} records, more than {MOST_RECORDS:.0e}. "
            "Record less often, or on a `Logarithmic()` grid."
        )


def _whole_steps(every) -> np.ndarray:
    """Recorded steps given as a list: whole numbers."""
    try:
        values = np.asarray(every, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`every` must hold whole numbers of steps, got {every!r}.") from error
    if values.ndim != 1 or not np.all(values == np.floor(values)):
        raise ValueError(f"`every` must hold whole numbers of steps, got {every!r}.")
    return values.astype(np.int64)


def loss(snapshot: Snapshot):
    """The descended objective."""
    return snapshot.objective.value(snapshot.model)


def observables(record: Callable | Sequence[Callable]) -> tuple[Callable, ...]:
    """`record`, checked, as a tuple that has the loss in it, first unless it is named."""
    check_record(record)
    if callable(record) and not isinstance(record, Sequence):
        record = (record,)
    return tuple(record) if "loss" in map(name_of, record) else (loss, *record)


def check_record(record) -> None:
    """Observables, or functions of one snapshot."""
    if isinstance(record, str) or not (callable(record) or isinstance(record, Sequence)):
        raise ValueError(
            f"`record` must be a list of observables or functions of a snapshot, got {record!r}."
        )
    for observable in record if isinstance(record, Sequence) else (record,):
        taken = {getattr(observable, "name", ""), *getattr(observable, "axes", ())}
        if taken & set(RESERVED_AXES):
            raise ValueError(
                f"`record` must not use the names {listing(RESERVED_AXES)}, which are the table's "
                f"own coordinates, got {listing(sorted(taken & set(RESERVED_AXES)))}. Give the "
                "observable another name or axis."
            )
        if isinstance(observable, type):
            raise ValueError(
                f"`record` must hold observables, got the class {observable.__name__} itself. "
                f"Build one: `{observable.__name__}()`."
            )
        if not callable(observable):
            raise ValueError(
                f"`record` must hold observables or functions of a snapshot, got {observable!r}."
            )
        check_takes("record", observable, ("snapshot",))


def check_axis(axis, record: Sequence[Callable]) -> None:
    """The axis of several members must not be one that the table has for something else."""
    check_kind("axis", axis, str, "the name of the members' axis, for instance 'seed'")
    names = {"loss", *RESERVED_AXES}
    for observable in record:
        names.add(getattr(observable, "name", getattr(observable, "__name__", "")))
        names.update(getattr(observable, "axes", ()))
    if not axis or axis in names:
        raise ValueError(
            f"`axis` must be a name that the table does not use otherwise, got {axis!r}. Use "
            "'seed' or 'setting'."
        )


def name_of(observable) -> str:
    return getattr(observable, "name", getattr(observable, "__name__", "value"))


class Recorder:
    """All records of a run: calls the observables, keeps their values, and builds the table.

    Attributes:
        marks: of a flow, the coordinate `step` of its records; None for dynamics in steps.
        notes: attributes of the table beyond the usual ones.
    """

    def __init__(self, ensemble: Ensemble, record, grid, axis: str, engine: str):
        self.ensemble, self.axis, self.engine = ensemble, axis, engine
        self.names = [name_of(observable) for observable in record]
        if len(set(self.names)) < len(self.names):
            raise ValueError(
                f"`record` has two observables of one name: {sorted(self.names)}. Functions are "
                "named by their `def`; others take another `name=`."
            )
        self.record, self.grid = record, grid
        self.called, self.code = tuple(map(_compilable, record)), code_of(record)
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
            self.called,
            self.code,
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
            if row["loss"].ndim > len(self._lead):
                raise ValueError(
                    "`record` must give the name 'loss' to one number, got an array of shape "
                    f"{row['loss'].shape[len(self._lead) :]}. Give the observable another name."
                )
            self._check_axes(row)
        self.rows.append(row)
        self.positions.append((np.asarray(step), np.asarray(time)))
        return self.rows[-1]["loss"]

    def _check_axes(self, row: dict[str, np.ndarray]) -> None:
        """Two observables that share an axis must agree on it: checked at the first record, not
        after the training.
        """
        first_uses: dict[str, tuple[str, list]] = {}
        for name, observable in zip(self.names, self.record, strict=True):
            shape = row[name].shape[len(self._lead) :]
            for axis, size in zip(_axes(name, observable, len(shape)), shape, strict=True):
                values = list(_coordinates(observable).get(axis, range(size)))
                other, theirs = first_uses.setdefault(axis, (name, values))
                if values != theirs:
                    raise ValueError(
                        f"`record` has {other!r} and {name!r} on one axis {axis!r} with "
                        f"different values, {theirs} and "
                        f"{values}: give one of them another axis (`axis=` where the observable "
                        "takes it) or the same values."
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
            "status": "; ".join(dict.fromkeys(s.value for s in status)),
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
        label = getattr(observable, "label", None) or _summary(observable) or name
        return ((*self._lead, "step", *axes), value, {"label": label})


def _axes(name: str, observable, dimensions: int) -> tuple[str, ...]:
    """The names of a value's own axes; an observable that names none, or too few, gets its own."""
    axes = tuple(getattr(observable, "axes", ()))
    if len(axes) > dimensions:
        raise ValueError(
            f"`record` has {name!r}, which names {len(axes)} axes {axes} but gives an array with "
            f"{dimensions} of its own. Name one axis for each."
        )
    return axes if len(axes) == dimensions else tuple(f"{name}_{i}" for i in range(dimensions))


def _coordinates(observable) -> Mapping[str, Sequence]:
    return getattr(observable, "coordinates", {})


def _summary(observable) -> str:
    """The first paragraph of the observable's docstring, in one line without its full stop."""
    text = (getattr(observable, "__doc__", None) or "").strip()
    return " ".join(text.split("\n\n")[0].split()).rstrip(".")


def _compilable(observable: Callable) -> Callable:
    """The observable as the argument of a compiled program: its arrays as JAX's; its method where
    it compares by value, as a dataclass does, and so cannot tell programs apart.
    """
    if isinstance(observable, eqx.Module):
        return jax.tree.map(_on_device, observable)
    try:
        hash(observable)
    except TypeError:
        return observable.__call__
    return observable


def _on_device(leaf):
    return jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf


def _observe(record, code, model, start, state, objective, test, step, time):
    shot = Snapshot(model, start, objective, test, step, time, state)
    return tuple(_recorded(observable, shot) for observable in record)


def _recorded(observable: Callable, snapshot):
    """What an observable says, as an array; text, tables and None are refused by name."""
    name = getattr(observable, "name", getattr(observable, "__name__", "an observable"))
    try:
        value = observable(snapshot)
    except ValueError as error:
        error.add_note(f"It is {name!r} in `record`.")
        raise
    except TRACED as error:
        raise ValueError(
            f"`record` must hold functions written with `jax.numpy`, as they are compiled together "
            f"with the run, but {name!r} takes a value out of it: by NumPy, `float(...)` or an "
            "`if`. Use `jnp` throughout, and `jnp.where` for a choice."
        ) from error
    try:
        value = jnp.asarray(value)
        if jnp.iscomplexobj(value):
            raise TypeError("complex numbers")
        return value
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`record` must hold functions that return numbers or arrays, but {name!r} returned "
            f"{value!r}."
        ) from error
