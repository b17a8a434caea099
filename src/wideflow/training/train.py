"""`train`: the only loop. Between two records a run is one compiled program."""

import dataclasses
import functools
import hashlib
import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from .._core.activations import Activation
from .._core.flowing import current_flow
from .._core.journal import current_journal
from .._core.precision import Precision, double
from .._core.status import Status
from .._core.told import Told
from .._core.trees import describe
from .._core.watching import current_watcher
from ..dynamics.base import AbstractDynamics, AbstractFlow, Snapshot
from ..dynamics.losses import HalfSumSquares
from ..models.base import AbstractModel
from .crossing import crossing
from .devices import as_mesh, gather
from .dual import engine_for
from .ensemble import Members, as_members
from .flow_for_descent import as_flow
from .schedule import record_steps, record_times

Progress = Callable[[float, float, float], None]
"""Called with (done, total, loss) in steps or in time."""

BLOWUP = 1e8  # a loss this many times above its start is divergence, before overflow makes NaN
SLICE_SECONDS = 0.5  # a compiled stretch is cut to about this long, so that progress shows


@dataclass(frozen=True)
class Run:
    """What `train` returns.

    Attributes:
        model: the model at the end (a tuple of them when several were trained together).
        table: everything recorded; dimension `step`, coordinate `time`, attributes with conventions. For flows `step` numbers the
            records, and the coordinate `solver_steps` counts the steps that the solver had taken (the most of any member).
        status: why the run stopped (a tuple likewise).
        start: the model at step 0.
        state: the dynamics' state at the end.
    """

    model: Any
    table: xr.Dataset
    status: Any
    start: Any
    state: Any


@double
def train(
    model: AbstractModel | Sequence[AbstractModel],
    data,
    dynamics: AbstractDynamics | AbstractFlow | Sequence,
    *,
    steps: int | None = None,
    time: float | int | None = None,
    record: Sequence[Callable[[Snapshot], Any]] = (),
    every=None,
    loss=None,
    test=None,
    key: int | jax.Array | Sequence[int | jax.Array] = 0,
    precision: Precision | None = None,
    stop_below: float | int | None = None,
    progress: Progress | None = None,
    axis: str = "seed",
    engine: str = "auto",
    devices: int | str | Sequence | None = None,
) -> Run:
    r"""Moves `model` on `data` by `dynamics` and records on the way.

    Args:
        model: one model, or several of equal shape that run together in one program; then `data`,
            `dynamics`, `test` and `key` may each be one for all or a list, and the table gets `axis`.
        data: a `Dataset`, or a population from `wideflow.populations`.
        steps, time: how far. Dynamics in steps take `steps`, or `time` (rounded up to whole steps of
            constant duration); flows take `time`.
        record: observables, called on a `Snapshot`; the loss is always recorded, as `loss`.
        every: steps (or times, for flows) between records: a number, a `Logarithmic` grid, or a list.
            Default: a hundredth of the run.
        loss: default `HalfSumSquares()`.
        test: a second dataset for observables that look at one.
        key: seed or typed key of the dynamics' own randomness.
        precision: "float32" or "float64"; default is whatever the model's arrays have.
        stop_below: stop at the first record whose loss is below this level. A flow of one model goes back to the moment of the
            crossing: its last record lies there, and the table's attribute `stopped` says when.
        progress: called with (done, total, loss).
        engine: "weights", "function" (the same path, closed on the pre-activations at the training points; far cheaper when
            features outnumber samples; full-batch dynamics of `Shallow` only), or "auto", the cheaper one. The table's attribute
            `engine` says which one ran.
        devices: spread the neurons over several devices: "all", a count, or the devices; default the one JAX prefers. With
            `jax.distributed` initialised, "all" are those of all processes.

    Returns:
        A `Run`. Divergence is a status, not an exception; its table ends at the record that showed it.
    """
    mesh = as_mesh(devices)
    members = as_members(model, data, dynamics, test, key, loss or HalfSumSquares(), precision)
    members = members.placed(mesh)
    flow, wish = isinstance(members.dynamics, AbstractFlow), current_flow()
    grid = _grid(flow, members.dynamics, steps, time, every)
    descended, marks = members.dynamics, None
    if wish is not None and not flow:
        marks, flow = grid, True
        members, grid = as_flow(members, grid)
        wish.granted += 1
    if mesh is not None and engine == "auto":
        engine = "weights"
    runner = engine_for(engine, members, None if flow else int(grid[-1]), len(grid))
    recorder = _Recorder(members, (*_loss_first(record),), grid, axis, runner.name)
    if marks is not None:
        recorder.notes["instead_of"] = describe(descended)
    if flow:
        recorder.marks = np.arange(len(grid)) if marks is None else marks
    return _run(members, runner, recorder, grid, flow, stop_below, progress)


def _grid(flow: bool, dynamics, steps, time, every) -> np.ndarray:
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
        steps = int(np.ceil(time / float(rates.flat[0]) * (1 - 1e-12)))
    return record_steps(every, steps)


def _loss_first(record) -> tuple:
    if callable(record) and not isinstance(record, Sequence):
        record = (record,)
    for observable in record:
        if not callable(observable):
            raise ValueError(
                f"`record` must hold observables or functions of a snapshot, got {observable!r}."
            )
    if any(getattr(o, "name", getattr(o, "__name__", "")) == "loss" for o in record):
        return tuple(record)
    return (loss, *record)


def loss(snapshot: Snapshot):
    """The descended objective."""
    return snapshot.objective.value(snapshot.model)


class _Recorder:
    """Calls the observables, keeps their values, builds the table."""

    def __init__(self, members: Members, record, grid, axis, engine):
        self.members, self.axis, self.engine = members, axis, engine
        self.names = [getattr(o, "name", getattr(o, "__name__", "value")) for o in record]
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"`record` has two observables of one name: {sorted(self.names)}.")
        self.record, self.grid = record, grid
        self.marks: np.ndarray | None = None  # of a flow: the coordinate `step` of its records
        self.notes: dict[str, str] = {}
        self.rows: list[dict[str, np.ndarray]] = []
        self.positions: list[tuple[np.ndarray, np.ndarray]] = []
        self.taken: list[np.ndarray] = []  # of a flow: its solver's steps

    def take(self, model, state, step, time) -> np.ndarray:
        m = self.members
        if self.marks is not None:
            self.taken.append(np.asarray(step))
            step = self.marks[len(self.rows)]
        row = m.call(
            _observe, OBSERVE_ROLES, self.record, model, m.start, state, m.objective, m.test,
            np.asarray(step), time,
        )  # fmt: skip
        row = dict(zip(self.names, gather(row, m.mesh), strict=True))
        self.rows.append({name: np.asarray(value) for name, value in row.items()})
        self.positions.append((np.asarray(step), np.asarray(time)))
        return self.rows[-1]["loss"]

    def untake(self) -> None:
        """Forgets the last record."""
        for kept in (self.rows, self.positions, self.taken):
            kept.pop()

    def arrays(self) -> dict[str, np.ndarray]:
        """All that was recorded, ready to be kept in a journal."""
        kept = {f"row/{n}": np.stack([r[n] for r in self.rows]) for n in self.names}
        kept["step"] = np.stack([p[0] for p in self.positions])
        kept["time"] = np.stack([p[1] for p in self.positions])
        if self.taken:
            kept["taken"] = np.stack(self.taken)
        return kept

    def restore(self, kept: dict[str, np.ndarray]) -> None:
        count = len(kept["step"])
        self.rows = [{n: kept[f"row/{n}"][i] for n in self.names} for i in range(count)]
        self.positions = [(kept["step"][i], kept["time"][i]) for i in range(count)]
        self.taken = list(kept.get("taken", ()))

    def table(self, status: tuple[Status, ...], seconds: float) -> xr.Dataset:
        m, variables = self.members, {}
        lead = (self.axis,) if m.several else ()
        steps = np.stack([p[0] for p in self.positions])
        times = np.stack([p[1] for p in self.positions])
        for name, observable in zip(self.names, self.record, strict=True):
            value = np.stack([row[name] for row in self.rows])
            if m.several:
                value = np.moveaxis(value, 1, 0)
            extra = value.ndim - len(lead) - 1
            axes = tuple(getattr(observable, "axes", ()))
            if len(axes) != extra:
                axes = tuple(f"{name}_{i}" for i in range(extra))
            label = getattr(observable, "label", None) or _first_line(observable) or name
            variables[name] = ((*lead, "step", *axes), value, {"label": label})
        varying = m.several and np.ptp(times, axis=1).max() > 0
        if m.several and not varying:
            times = times[:, 0]
        coordinates = {
            "step": steps if steps.ndim == 1 else steps[:, 0],
            "time": ((*lead, "step"), times.T) if varying else ("step", times),
        }
        if self.taken and "instead_of" not in self.notes:
            coordinates["solver_steps"] = ("step", np.stack(self.taken))
        if m.several:
            coordinates[self.axis] = np.arange(m.count)
        attributes = {
            "loss": m.objective.describe(), "dynamics": describe(m.dynamics), "model": m.title,
            "neuron_factor": str(m.factors), "precision": m.precision, "seconds": seconds,
            "engine": self.engine,
            "status": "; ".join(dict.fromkeys(s.sentence for s in status)), **self.notes,
        }  # fmt: skip
        return xr.Dataset(variables, coordinates, attributes)


def _first_line(observable) -> str:
    return (getattr(observable, "__doc__", None) or "").strip().split("\n")[0].rstrip(".")


def _run(members: Members, runner, recorder: _Recorder, grid, flow, stop_below, progress) -> Run:
    began, total = clock.perf_counter(), float(grid[-1])
    moved = runner.members  # what is moved; `runner.seen` shows it as the members themselves
    advance = _flow_advance(moved) if flow else _step_advance(moved)
    model, state = moved.start, moved.init()
    step, time = np.zeros((), np.int64), members.constant(0.0)
    status = [Status.FINISHED] * members.count
    journal = current_journal()
    mark = functools.cache(lambda: _fingerprint(members, recorder, grid))
    joint = jax.process_count() > 1  # arrays are gathered by all processes together or by none
    kept = journal.load(mark()) if journal is not None and (joint or journal.begun()) else None
    if kept is None:
        values = recorder.take(runner.seen(model), state, step, time)
    else:
        recorder.restore(kept)
        model, state = _unpack(kept, (model, state))
        step, time = recorder.positions[-1]
        values = recorder.rows[-1]["loss"]
    first = np.abs(np.atleast_1d(recorder.rows[0]["loss"]))
    running = _judge(status, values, first, stop_below)
    watcher = current_watcher()

    def so_far() -> xr.Dataset:
        if flow and not members.several:
            _note_crossing(recorder, stop_below)
        return recorder.table(tuple(status), clock.perf_counter() - began)

    if watcher is not None:
        watcher(so_far)
    for target in grid[len(recorder.positions) :]:
        if not running:
            break
        before, high = (model, state, step, time), values
        model, state, step, time, alive = advance(*before, target, progress, values, total)
        values = recorder.take(runner.seen(model), state, step, time)
        if flow and not members.several and _crossed(high, values, stop_below):
            found = _locate(recorder, runner, advance, before, high, target, stop_below, total)
            model, state, step, time, alive, values = found
        _note_flow(status, alive)
        running = _judge(status, values, first, stop_below)
        if progress is not None:
            done = float(np.max(time)) if flow else float(step)
            progress(done, total, float(np.mean(values)))
        last = target == grid[-1] or not running
        if journal is not None and (joint or journal.due(force=last)):
            kept = {**recorder.arrays(), **_pack(gather((model, state), members.mesh))}
            fingerprint = mark()
            if jax.process_index() == 0:
                journal.save(fingerprint, kept, force=last)
        if watcher is not None:
            watcher(so_far)
    table = so_far()
    models, starts = (members.split_models(m) for m in (runner.seen(model), members.start))
    return Run(models, table, members.split_status(status), starts, members.split(state))


def _crossed(before, after, stop_below) -> bool:
    return stop_below is not None and float(after) < stop_below <= float(before)


def _locate(recorder: _Recorder, runner, advance, before, high, target, level, total):
    """Moves the last record of a flow to the moment at which the loss crossed `level`."""

    def look(when):
        recorder.untake()
        moved = advance(*before, when, None, high, total)
        value = recorder.take(runner.seen(moved[0]), *moved[1:4])
        return float(value), moved

    low = (float(np.asarray(before[3])), float(high))
    first, moved = look(float(target))
    moved = crossing(look, low, (float(target), first, moved), level)[2]
    recorder.untake()
    values = recorder.take(runner.seen(moved[0]), *moved[1:4])
    return *moved, values


def _note_crossing(recorder: _Recorder, level) -> None:
    """Says when the loss of one flow fell below the level, if its last record is that moment."""
    losses = [row["loss"] for row in recorder.rows[-2:]]
    if len(losses) == 2 and _crossed(*losses, level):
        when = float(recorder.positions[-1][1])
        recorder.notes["stopped"] = (
            f"the loss fell below {level:g} at time {when:.6g} (loss {float(losses[-1]):.6g})"
        )


def _judge(status: list[Status], values, first, stop_below) -> bool:
    """Marks divergence and early stops; whether anything still runs."""
    values = np.atleast_1d(values)
    for i, value in enumerate(values):
        if not np.isfinite(value) or abs(value) > BLOWUP * (1 + first[i]):
            status[i] = Status.DIVERGED
        elif status[i] is Status.FINISHED and stop_below is not None and value < stop_below:
            status[i] = Status.BELOW
    return any(s is Status.FINISHED for s in status)


def _note_flow(status: list[Status], alive) -> None:
    if alive is None:
        return
    failed, stationary = (np.atleast_1d(np.asarray(flag)) for flag in alive)
    for i in range(len(status)):
        if status[i] is Status.FINISHED and failed[i]:
            status[i] = Status.STALLED
        elif status[i] is Status.FINISHED and stationary[i]:
            status[i] = Status.STATIONARY


STEP_ROLES = ("member", "member", "objective", "dynamics", "member", "plain")
OBSERVE_ROLES = ("plain", "member", "member", "member", "objective", "test", "plain", "member")


def _observe(record, model, start, state, objective, test, step, time):
    shot = Snapshot(model, start, objective, test, step, time, state)
    return tuple(jnp.asarray(observable(shot)) for observable in record)


def _many_steps(model, state, objective, dynamics, time, count):
    """`count` steps in one loop; the fixed parts of the state stay outside it."""
    arrays, static = eqx.partition((model, state, time), eqx.is_array)

    def body(_, arrays):
        model, state, time = eqx.combine(arrays, static)
        duration = dynamics.duration(state, model)
        model, state = dynamics.step(model, state, objective)
        return eqx.filter((model, state, time + duration), eqx.is_array)

    return eqx.combine(jax.lax.fori_loop(0, count, body, arrays), static)


def _move(model, state, objective, dynamics, start, stop):
    return dynamics.advance(model, state, objective, start, stop)


def _step_advance(members: Members):
    """Steps up to a target, in compiled stretches of about `SLICE_SECONDS`."""
    pace = {"stretch": 64}

    def advance(model, state, step, time, target, progress, values, total):
        while step < target:
            count = int(min(target - step, pace["stretch"]))
            began = clock.perf_counter()
            model, state, time = members.move(
                _many_steps, STEP_ROLES, model, state, members.objective, members.dynamics, time,
                np.asarray(count),
            )  # fmt: skip
            jax.block_until_ready(time)
            spent = clock.perf_counter() - began
            step = np.asarray(step + count)
            if spent < SLICE_SECONDS / 2:
                pace["stretch"] = min(4 * pace["stretch"], 1 << 40)
            elif spent > 2 * SLICE_SECONDS:
                pace["stretch"] = max(1, pace["stretch"] // 2)
            if progress is not None and step < target:
                progress(float(step), total, float(np.mean(values)))
        return model, state, step, time, None

    return advance


def _flow_advance(members: Members):
    def advance(model, state, step, time, target, progress, values, total):
        model, state = members.move(
            _move, STEP_ROLES, model, state, members.objective, members.dynamics, time,
            np.asarray(float(target)),
        )  # fmt: skip
        taken = np.asarray(state.steps)
        alive = (state.failed, state.stationary)
        return model, state, np.max(taken), members.constant(float(target)), alive

    return advance


def _pack(tree) -> dict[str, np.ndarray]:
    leaves = jax.tree.leaves(eqx.filter(tree, eqx.is_array))
    return {f"leaf/{i}": np.asarray(_plain(leaf)) for i, leaf in enumerate(leaves)}


def _plain(leaf):
    return jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf


def _unpack(kept, like):
    arrays, static = eqx.partition(like, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    new = []
    for i, leaf in enumerate(leaves):
        value = jnp.asarray(kept[f"leaf/{i}"])
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            value = jax.random.wrap_key_data(value, impl=jax.random.key_impl(leaf))
        new.append(value)
    return eqx.combine(jax.tree.unflatten(structure, new), static)


def _fingerprint(members: Members, recorder: _Recorder, grid) -> str:
    """A hash of everything that decides the run's numbers."""
    digest = hashlib.sha256()
    tree = gather(
        (members.start, members.objective, members.test, members.dynamics, members.keys),
        members.mesh,
    )
    for name, leaf in sorted(_pack(tree).items()):
        digest.update(f"{name}{leaf.dtype}{leaf.shape}".encode())
        digest.update(np.ascontiguousarray(leaf).tobytes())
    fixed = (members.start, members.objective, members.test, members.dynamics, recorder.record)
    kinds = (_settings(fixed), recorder.names, members.title, recorder.engine)
    digest.update(repr(kinds).encode())
    digest.update(np.ascontiguousarray(grid).tobytes())
    return digest.hexdigest()[:32]


def _settings(thing) -> str:
    """All that is fixed in a tree (classes, names, numbers) as text that is the same in every process; arrays are hashed as such."""
    if isinstance(thing, Activation):
        return repr((*thing.key, getattr(thing.value, "__qualname__", "")))
    if isinstance(thing, Told) or eqx.is_array(thing):
        return ""
    if dataclasses.is_dataclass(thing):
        inside = (
            f"{f.name}={_settings(getattr(thing, f.name, None))}" for f in dataclasses.fields(thing)
        )
        return f"{type(thing).__name__}({', '.join(inside)})"
    if isinstance(thing, tuple | list):
        return f"({', '.join(map(_settings, thing))})"
    if callable(thing):
        return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', type(thing).__name__)}"
    return repr(thing)
