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

import numpy as np
import xarray as xr

from ..figures import FigureSpec
from ..training.identity import digest
from .base import SIZES, Experiment

GIVEN = ("key", "session")


@functools.cache
def experiment_of(function: Callable) -> Experiment:
    """The experiment that calls `function`; its name carries a hash of the function's code, so that
    changed code is a new one.
    """
    settings = _settings(function)
    name = function.__name__.strip("<>").replace("_", "-")
    code = digest(function)
    if not code:
        raise ValueError(
            f"`experiment` {function.__name__!r} closes over something without a lasting "
            "identity, so its runs could not be "
            "found again. Pass what it needs as settings, or define it at the top of a module."
        )
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
