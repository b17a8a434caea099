"""`train`: the only loop. Between two records a run is one compiled program."""

import functools
import time as clock
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
import xarray as xr

from .._core.errors import (
    check_choice,
    check_count,
    check_number,
    check_progress,
)
from .._core.precision import Precision, double
from .._core.status import Status
from .._core.trees import describe, parameters, unlabelled
from ..data.dataset import DatasetObjective
from ..dynamics.base import AbstractDynamics, AbstractFlow, Snapshot
from ..dynamics.losses import HalfSumSquares
from .checkpoint import fingerprint, pack, unpack
from .crossing import crossing
from .devices import as_mesh
from .dual import FunctionSpace, function_space
from .ensemble import Ensemble, stack
from .flow_for_descent import as_flow
from .identity import digest
from .recorder import MOST_STEPS, Recorder, check_axis, observables, record_grid
from .run import Run
from .session import ALONE, Session, silent
from .stability import warn_of_rise

Progress = Callable[[float, float, float], None]
"""Called with (done, total, loss) in steps or in time."""

# a loss this many times above its start is divergence, before overflow makes NaN (chosen)
BLOWUP = 1e8
SLICE_SECONDS = 0.5  # a compiled stretch is cut to about this long, so that progress shows
ENGINES = ("auto", "weights", "function")
# multiplications; below it a run takes about a second and a second program is not worth its
# compilation
WORTHWHILE = 2e9
EVALUATIONS = 50  # of a flow between two records, as a guess for the choice of an engine alone


@double
def train(
    model,
    data,
    dynamics: AbstractDynamics | AbstractFlow | Sequence,
    *,
    steps: int | None = None,
    time: float | int | None = None,
    record: Sequence[Callable[[Snapshot[Any, Any]], Any]] = (),
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
    session: Session | None = None,
) -> Run:
    r"""Moves `model` on `data` by `dynamics` and records on the way.

    Args:
        model: one model, or several of equal shape that run together in one program; then `data`,
            `dynamics`, `test` and `key` may each be one for all or a list, and the table gets
            `axis`.
        data: a `Dataset`, or a population from `wideflow.populations`.
        steps, time: how far. Dynamics in steps take `steps`, or `time` (rounded up to whole steps
            of constant duration); flows take `time`.
        record: observables, called on a `Snapshot`; the loss is always recorded, as `loss`.
        every: steps (or times, for flows) between records: a number, a `Logarithmic` grid, or a
            list. Default: a hundredth of the run.
        loss: default `HalfSumSquares()`.
        test: a second dataset for observables that look at one.
        key: seed or typed key of the dynamics' own randomness.
        precision: "float64" (the default, whatever the arrays of the model are) or "float32".
        stop_below: stop at the first record whose loss is below this level. A flow of one model
            goes back to the moment of the crossing: its last record lies there, and the table's
            attribute `stopped` says when.
        progress: called with (done, total, loss).
        engine: "weights", "function" (the same path, closed on the pre-activations at the training
            points; far cheaper when features outnumber samples; full-batch dynamics of `Shallow`
            only), or "auto", the cheaper one. The table's attribute `engine` says which one ran.
        devices: spread the neurons over several devices: "all", a count, or the devices; default
            the one JAX prefers. With `jax.distributed` initialised, "all" are those of all
            processes.
        session: checkpoints, a callback for records, and the request for a flow; experiments pass
            on the one they received.

    Returns:
        A `Run`. Divergence is a status, not an exception; its table ends at the record that showed
            it. Full-batch descent that ended finite, and above its start, is warned about with the
            rate that would be stable.
    """
    record = observables(record)
    check_axis(axis, record)
    _check_options(steps, loss, stop_below, progress)
    mesh = None if devices is None else as_mesh(devices)
    loss = HalfSumSquares() if loss is None else loss
    if session is None:
        session = ALONE
    else:
        session.counts.trainings += 1
    precision = "float64" if precision is None else precision
    ensemble = stack(model, data, dynamics, test, key, loss, precision).placed(mesh)
    flow = isinstance(ensemble.dynamics, AbstractFlow)
    grid = record_grid(flow, ensemble.dynamics, steps, time, every)
    if not flow:
        _check_replay(dynamics, data, int(grid[-1]))
    descended, marks = ensemble.dynamics, None
    if session.flow and not flow:
        marks, flow = grid, True
        ensemble, grid = as_flow(ensemble, grid)
        session.counts.flows += 1
    if mesh is not None and engine == "auto":
        engine = "weights"
    dual = _engine(engine, ensemble, None if flow else int(grid[-1]), len(grid))
    recorder = Recorder(ensemble, record, grid, axis, "weights" if dual is None else "function")
    recorder.notes |= _digests(model, data)
    if marks is not None:
        recorder.notes["instead_of"] = describe(descended)
    if flow:
        recorder.marks = np.arange(len(grid)) if marks is None else marks
    loop = _Loop(ensemble, dual, recorder, grid, flow, stop_below, progress, session)
    model_end, table, status, start, state = loop.run()
    moved_by = dynamics if marks is None else ensemble.dynamics
    own = {"model": model_end, "state": state, "test": test, "loss": loss}
    run = Run(
        **own,
        table=table,
        status=status,
        start=start,
        data=data,
        dynamics=moved_by,
        record=recorder.record,
        original=own,
    )
    if not flow:
        for index in _risen(loop.status, recorder.rows)[:1]:  # one warning for all of them
            warn_of_rise(run.member(index) if run.several else run)
    return run


def _digests(model, data) -> dict[str, str]:
    """Which networks and which data a table belongs to, so that no verdict is given on
    another's.
    """
    join = lambda things: ",".join(dict.fromkeys(digest(thing) for thing in things))
    return {"starts": join(map(unlabelled, _each(model))), "data": join(_each(data))}


def _each(value) -> Sequence:
    return value if isinstance(value, list | tuple) else (value,)


def _check_options(steps, loss, stop_below, progress) -> None:
    """The options that have to be right before anything is built."""
    if steps is not None:
        check_count("steps", steps, least=0, most=MOST_STEPS)
    if loss is not None and (isinstance(loss, type) or not hasattr(loss, "check_data")):
        description = f"the class {loss.__name__} itself" if isinstance(loss, type) else repr(loss)
        raise ValueError(
            "`loss` must be an instance of one of `wideflow.losses`, such as "
            f"`losses.MeanSquares()`, got {description}. "
            "A loss of your own derives from `losses.AbstractLoss`."
        )
    if stop_below is not None:
        check_number("stop_below", stop_below, "Leave it out to run to the end.")
    check_progress(progress, ("done", "total", "loss"))


def _check_replay(dynamics, data, steps: int) -> None:
    """Dynamics that replay given indices need a row for every step, and samples that exist."""
    for replayed in (getattr(one, "replayed", None) for one in _each(dynamics)):
        if replayed is None:
            continue
        name, order = replayed
        if len(order) < steps:
            raise ValueError(
                f"`{name}` must have a row for each of the {steps} `steps`, got {len(order)}. "
                "Repeat the rows on purpose with `np.tile`, or take fewer steps."
            )
        for samples in (len(one) for one in _each(data) if hasattr(one, "__len__")):
            if order.size and not 0 <= order.min() <= order.max() < samples:
                raise ValueError(
                    f"`{name}` must hold sample indices in 0..{samples - 1}, got "
                    f"{order.min()}..{order.max()}."
                )


def _engine(name: str, ensemble: Ensemble, steps: int | None, records: int) -> FunctionSpace | None:
    """The second engine, where it was requested or is cheaper; None for the weights themselves.
    `steps` is None for flows.
    """
    check_choice("engine", name, ENGINES)
    evaluations = EVALUATIONS * records if steps is None else steps
    if name == "weights" or (name == "auto" and not _may_be_cheaper(ensemble, evaluations)):
        return None
    return function_space(name, ensemble, evaluations, records)


def _may_be_cheaper(ensemble: Ensemble, evaluations: int) -> bool:
    r"""Whether the second engine is worth a look: in a long run on fewer samples than twice the
    features, as $n^2m < 2nDm$.
    """
    if not isinstance(ensemble.objective, DatasetObjective):
        return False
    samples, features = ensemble.objective.features.shape[-2:]
    size = sum(leaf.size for leaf in jax.tree.leaves(parameters(ensemble.start)))
    # size = D m: the weights' side of the comparison takes 2 n D m a step
    return samples < 2 * features and 2 * evaluations * samples * size > WORTHWHILE


class _Loop:
    """One run: from the start, or the last checkpoint, to the last record."""

    def __init__(self, ensemble, dual, recorder, grid, flow, stop_below, progress, session):
        self.ensemble, self.dual, self.recorder = ensemble, dual, recorder
        self.grid, self.total, self.flow = grid, float(grid[-1]), flow
        self.stop_below, self.session = stop_below, session
        if progress is None and session.progress is not silent:
            progress = _shown_loss(session)
        self.progress = progress
        self.place = session.counts.trainings  # in the session: the first training is 1
        self.began = clock.perf_counter()
        moved = ensemble if dual is None else dual.members
        self.advance = _flow_advance(moved) if flow else _step_advance(moved)
        self.model, self.state = moved.start, moved.init()
        self.step, self.time = np.zeros((), np.int64), ensemble.constant(0.0)
        self.status = [Status.FINISHED] * ensemble.count
        # arrays are gathered by all processes together or by none
        self.joint = jax.process_count() > 1

    def run(self):
        values = self._begin()
        first = np.abs(np.atleast_1d(self.recorder.rows[0]["loss"]))
        running = _judge(self.status, values, first, self.stop_below)
        self._show()
        for target in self.grid[len(self.recorder.positions) :]:
            if not running:
                break
            values, alive = self._to(target, values)
            _note_flow(self.status, alive)
            running = _judge(self.status, values, first, self.stop_below)
            done = float(np.max(self.time)) if self.flow else float(self.step)
            if self.progress is not None:
                self.progress(done, self.total, float(np.mean(values)))
            self._keep(last=bool(target == self.grid[-1]) or not running)
            self._show()
        e, table = self.ensemble, self.table()
        models, starts = (e.split_models(m) for m in (self._as_model(self.model), e.start))
        return models, table, e.split_status(self.status), starts, e.split(self.state)

    def table(self) -> xr.Dataset:
        if self.flow and not self.ensemble.several:
            _note_crossing(self.recorder, self.stop_below)
        return self.recorder.table(tuple(self.status), clock.perf_counter() - self.began)

    def _begin(self) -> np.ndarray:
        """The first record, or all up to the last checkpoint; gives the loss there."""
        keeper = self.session.checkpointer
        arrays = None
        if keeper is not None and (self.joint or keeper.begun()) and self.mark is not None:
            arrays = keeper.load(self.mark)
        if arrays is None:
            return self._take()
        self.recorder.restore(arrays)
        self.model, self.state = unpack(arrays, (self.model, self.state))
        self.step, self.time = self.recorder.positions[-1]
        return np.asarray(self.recorder.rows[-1]["loss"])

    def _take(self) -> np.ndarray:
        return self.recorder.take(self._as_model(self.model), self.state, self.step, self.time)

    def _as_model(self, moved):
        """What is moved, as the models themselves: observables see these."""
        return moved if self.dual is None else self.dual.as_model(moved)

    def _to(self, target, high):
        """Moves on to `target` and records there; gives the loss and the flow's flags."""
        before = (self.model, self.state, self.step, self.time)
        moved = self.advance(*before, target, self.progress, high, self.total)
        self.model, self.state, self.step, self.time, alive = moved
        values = self._take()
        one_flow = self.flow and not self.ensemble.several
        if one_flow and _crossed(high, values, self.stop_below):
            values, alive = self._locate(before, high, target)
        return values, alive

    def _locate(self, before, high, target):
        """Moves the last record of a flow to the moment at which the loss crossed `stop_below`."""

        model, state, step, time = before

        def look(when):
            self.recorder.drop_last()
            moved = self.advance(model, state, step, time, when, None, high, self.total)
            value = self.recorder.take(self._as_model(moved[0]), *moved[1:4])
            return float(value), moved

        low = (float(np.asarray(time)), float(high))
        first, moved = look(float(target))
        moved = crossing(look, low, (float(target), first, moved), self.stop_below)[2]
        self.model, self.state, self.step, self.time, alive = moved
        self.recorder.drop_last()
        return self._take(), alive

    @functools.cached_property
    def mark(self) -> str | None:
        """The key of this training's checkpoints: its place in the session, and all that decides
        its numbers.
        """
        e, r = self.ensemble, self.recorder
        inputs = e.whole((e.start, e.objective, e.test, e.dynamics, e.keys))
        return fingerprint(
            self.place, inputs, r.record, r.axis, r.engine, e.title, self.grid, self.stop_below
        )

    def _keep(self, *, last: bool) -> None:
        keeper = self.session.checkpointer
        if keeper is None or not (self.joint or keeper.due(force=last)) or self.mark is None:
            return
        end = self.ensemble.whole((self.model, self.state))
        if jax.process_index() == 0:
            keeper.save(self.mark, {**self.recorder.arrays(), **pack(end)}, force=last)

    def _show(self) -> None:
        if self.session.on_record is not None:
            self.session.on_record(self.table)


def _shown_loss(session: Session) -> Progress:
    return lambda done, total, loss: session.progress(done, total, f"loss {loss:.3g}")


def _crossed(before, after, stop_below) -> bool:
    return stop_below is not None and bool(float(after) < stop_below <= float(before))


def _note_crossing(recorder: Recorder, level) -> None:
    """Says when the loss of one flow fell below the level, if its last record is that moment."""
    losses = [row["loss"] for row in recorder.rows[-2:]]
    if len(losses) == 2 and _crossed(losses[0], losses[1], level):
        when = float(recorder.positions[-1][1])
        recorder.notes["stopped"] = (
            f"the loss fell below {level:g} at time {when:.6g} (loss {float(losses[-1]):.6g})"
        )


def _judge(status: list[Status], values, first, stop_below) -> bool:
    """Marks divergence and early stops; whether anything still runs."""
    values = np.atleast_1d(values)
    for i, value in enumerate(values):
        # 1 + first: a loss may start at 0
        if not np.isfinite(value) or abs(value) / BLOWUP > 1 + first[i]:
            status[i] = Status.DIVERGED
        elif status[i] is Status.FINISHED and stop_below is not None and value < stop_below:
            status[i] = Status.BELOW
    return any(s is Status.FINISHED for s in status)


def _risen(status: list[Status], rows: list[dict[str, Any]]) -> list[int]:
    """Which members finished above where they began."""
    first, last = (np.atleast_1d(rows[place]["loss"]) for place in (0, -1))
    return [i for i, one in enumerate(status) if one is Status.FINISHED and last[i] > first[i]]


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
FLOW_ROLES = (*STEP_ROLES, "plain")


def _many_steps(model, state, objective, dynamics, time, count):
    """`count` steps in one loop; the fixed parts of the state stay outside it."""
    # loops carry arrays alone; `count` is one of them, so that a single program serves stretches of
    # any length
    arrays, static = eqx.partition((model, state, time), eqx.is_array)

    def body(_, arrays):
        model, state, time = eqx.combine(arrays, static)
        duration = dynamics.duration(state, model)
        model, state = dynamics.step(model, state, objective)
        return eqx.filter((model, state, time + duration), eqx.is_array)

    return eqx.combine(jax.lax.fori_loop(0, count, body, arrays), static)


def _move(model, state, objective, dynamics, start, stop, horizon):
    return dynamics.advance(model, state, objective, start, stop, horizon)


def _step_advance(members: Ensemble):
    """Steps up to a target, in compiled stretches of about `SLICE_SECONDS`."""
    # cutting a run into stretches changes no number, so the clock may decide how long they are
    pace = {"stretch": 64}

    def advance(model, state, step, time, target, progress, values, total):
        while step < target:
            count = int(min(target - step, pace["stretch"]))
            began = clock.perf_counter()
            model, state, time = members.move(
                _many_steps,
                STEP_ROLES,
                model,
                state,
                members.objective,
                members.dynamics,
                time,
                np.asarray(count),
            )
            jax.block_until_ready(time)
            spent = clock.perf_counter() - began
            step = np.asarray(step + count)
            # between growing and shrinking lies a factor of four, so that the length does not swing
            if spent < SLICE_SECONDS / 2:
                pace["stretch"] = min(4 * pace["stretch"], 1 << 40)
            elif spent > 2 * SLICE_SECONDS:
                pace["stretch"] = max(1, pace["stretch"] // 2)
            if progress is not None and step < target:
                progress(float(step), total, float(np.mean(values)))
        return model, state, step, time, None

    return advance


def _flow_advance(members: Ensemble):
    def advance(model, state, step, time, target, progress, values, total):
        model, state = members.move(
            _move,
            FLOW_ROLES,
            model,
            state,
            members.objective,
            members.dynamics,
            time,
            np.asarray(float(target)),
            np.asarray(float(total)),
        )
        solver_steps = np.asarray(state.steps)
        alive = (state.failed, state.stationary)
        return model, state, np.max(solver_steps), members.constant(float(target)), alive

    return advance
