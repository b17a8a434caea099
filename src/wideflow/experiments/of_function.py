"""A plain Python function as an experiment, so that it can be swept, resumed and collected like one
of ours.

    def final_loss(key, width=64, rate=0.1):
        ...
        return {"loss": ..., "movement": ...}      # or an xarray.Dataset

Its keyword parameters with their defaults are the settings; `key` is the run's typed JAX key, and a
parameter called `session` gets the `Session` to pass on to `train`.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping

import equinox as eqx
import numpy as np
import xarray as xr

from ..figures import FigureSpec
from ..training.identity import digest
from ..training.own_code import classes_read
from .base import SIZES, Experiment

GIVEN = ("key", "session")


def experiment_of(function: Callable) -> Experiment:
    """The experiment that calls `function`; its name carries a hash of the function's code and of
    the globals that it reads, so that changed code is a new one.
    """
    code = digest(function, code=True)
    if not code:
        raise ValueError(
            f"`experiment` {function.__name__!r} reads something without a lasting identity (an "
            "open file, an object of a class that is no dataclass), so its runs could not be "
            "found again. Pass what it needs as settings, or make it inside the function."
        )
    return _experiment(function, code)


def check_sendable(function: Callable) -> None:
    """Refuses a function whose modules are defined in the script or notebook that sweeps it.

    Workers get what stands there by value, and Equinox does not know a class that came so:
    "cannot assign to field" would be said by every run.
    """
    for kind in classes_read(function):
        if kind.__module__ == "__main__" and issubclass(kind, eqx.Module):
            raise ValueError(
                f"`experiment` {function.__name__!r} uses the class {kind.__name__} of the script "
                "or notebook itself, which worker processes cannot build. Put the class into a "
                "file of its own and import it, or write the observable as a function."
            )


@functools.cache
def _experiment(function: Callable, code: str) -> Experiment:
    settings = _settings(function)
    name = function.__name__.strip("<>").replace("_", "-")
    return Experiment(
        name=f"{name}-{code}",
        paper="own",
        title=" ".join((inspect.getdoc(function) or name).split("\n\n")[0].split()).rstrip("."),
        figure="",
        settings=dict.fromkeys(SIZES, settings()),
        run=functools.partial(_run, function),
        draw=_draw,
        claims=lambda table: (),
    )


def _settings(function: Callable) -> type:
    fields = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in GIVEN:
            continue
        if parameter.name == "seed":
            raise ValueError(
                f"`experiment` {function.__name__!r} has a parameter `seed`, which would be a "
                "setting and the same in all runs: a sweep's seeds come as the JAX key `key`."
            )
        if parameter.default is parameter.empty:
            raise ValueError(
                f"`experiment` {function.__name__!r} must give its parameter `{parameter.name}` "
                "a default: its type and value are the setting's."
            )
        kind = type(parameter.default)
        fields.append((parameter.name, kind, dataclasses.field(default=parameter.default)))
    return dataclasses.make_dataclass("Settings", fields, frozen=True)


def _run(function: Callable, settings, key, session) -> xr.Dataset:
    wanted = inspect.signature(function).parameters
    context = {n: v for n, v in (("key", key), ("session", session)) if n in wanted}
    result = function(**context, **vars(settings))
    if isinstance(result, xr.Dataset):
        return result
    if not isinstance(result, Mapping):
        raise ValueError(
            f"`experiment` {function.__name__!r} must return an xarray.Dataset or a dictionary "
            f"of numbers, got {type(result).__name__}."
        )
    return xr.Dataset({name: _variable(name, value) for name, value in result.items()})


def _variable(name: str, value):
    array = np.asarray(value)
    return (tuple(f"{name}_{axis}" for axis in range(array.ndim)), array)


def _draw(table: xr.Dataset) -> FigureSpec:
    raise ValueError("a function has no figure of its own; plot the sweep's table.")
