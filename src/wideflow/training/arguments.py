"""The arguments of `train`, each checked before anything is compiled."""

import inspect
from collections.abc import Callable, Sequence

from .._core.errors import check_callable, check_choice, check_count, check_kind, check_number

MOST_STEPS = 2**62  # what a 64-bit counter holds, with room for one more chunk
RESERVED_AXES = ("step", "time", "solver_steps")
PRECISIONS = ("float32", "float64")


def check_arguments(
    *, dynamics, data, steps, record, loss, stop_below, progress, axis, precision
) -> None:
    """All that can be said about the raw arguments of `train` without building anything."""
    check_steps(steps)
    check_record(record)
    check_loss(loss)
    check_stop_below(stop_below)
    check_progress(progress)
    check_axis(axis, record)
    if precision is not None:
        check_choice("precision", precision, PRECISIONS)
    each = dynamics if isinstance(dynamics, list | tuple) else (dynamics,)
    sets = data if isinstance(data, list | tuple) else (data,)
    for one in each:
        for samples in sets:
            check_replay(one, steps, samples)


def check_steps(steps) -> None:
    if steps is not None:
        check_count("steps", steps, least=0, most=MOST_STEPS)


def check_record(record) -> None:
    """Observables, or functions of one snapshot."""
    if isinstance(record, str) or not (callable(record) or isinstance(record, Sequence)):
        raise ValueError(
            f"`record` must be a list of observables or functions of a snapshot, got {record!r}."
        )
    for observable in record if isinstance(record, Sequence) else (record,):
        if isinstance(observable, type):
            raise ValueError(
                f"`record` must hold observables, got the class {observable.__name__} itself. "
                f"Build one: `{observable.__name__}()`."
            )
        if not callable(observable):
            raise ValueError(
                f"`record` must hold observables or functions of a snapshot, got {observable!r}."
            )
        _check_takes("record", observable, ("snapshot",))


def check_loss(loss) -> None:
    if loss is None:
        return
    if isinstance(loss, type) or not hasattr(loss, "check_data"):
        description = f"the class {loss.__name__} itself" if isinstance(loss, type) else repr(loss)
        raise ValueError(
            f"`loss` must be an instance of one of `wideflow.losses`, such as `losses.MeanSquares()`, got {description}. "
            "A loss of your own derives from `losses.AbstractLoss`."
        )


def check_stop_below(stop_below) -> None:
    if stop_below is not None:
        check_number("stop_below", stop_below, "Leave it out to run to the end.")


def check_progress(progress) -> None:
    if progress is not None:
        check_callable("progress", progress, "a function of (done, total, loss)")
        _check_takes("progress", progress, ("done", "total", "loss"))


def check_axis(axis, record=()) -> None:
    """The axis of several members must not be one that the table has for something else."""
    check_kind("axis", axis, str, "the name of the members' axis, for instance 'seed'")
    names = {"loss", *RESERVED_AXES}
    for observable in record if isinstance(record, Sequence) else (record,):
        names.add(getattr(observable, "name", getattr(observable, "__name__", "")))
        names.update(getattr(observable, "axes", ()))
    if not axis or axis in names:
        raise ValueError(
            f"`axis` must be a name that the table does not use otherwise, got {axis!r}. Use 'seed' or 'setting'."
        )


def check_replay(dynamics, steps, data) -> None:
    """Dynamics that replay given indices need a row for every step, and samples that exist."""
    replayed = getattr(dynamics, "replayed", None)
    if replayed is None:
        return
    name, order = replayed
    if steps is not None and len(order) < steps:
        raise ValueError(
            f"`{name}` must have a row for each of the {steps} `steps`, got {len(order)}. "
            "Repeat the rows on purpose with `np.tile`, or take fewer steps."
        )
    samples = len(data) if hasattr(data, "__len__") else None
    if samples is not None and order.size and not 0 <= order.min() <= order.max() < samples:
        raise ValueError(
            f"`{name}` must hold sample indices in 0..{samples - 1}, got {order.min()}..{order.max()}."
        )


def _check_takes(name: str, function: Callable, arguments: tuple[str, ...]) -> None:
    """Whether `function` can be called with so many arguments; what has no signature is let through."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise ValueError(
            f"`{name}` must hold functions of ({', '.join(arguments)}), got one that takes {signature}."
        ) from error
