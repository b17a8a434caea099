"""Experiments of other packages: an entry point in the group `wideflow.experiments` adds one to the
registry.

    [project.entry-points."wideflow.experiments"]
    my-experiment = "my_package.my_module:EXPERIMENT"

The part before the equals sign is the experiment's name. `wideflow list`, `run`, `reproduce`,
`report` and sweeps then know it like one of ours; a broken one, or one whose name is taken, is
named with the package that brought it, and never passed over.
"""

import functools
import importlib.metadata

from .base import Experiment

GROUP = "wideflow.experiments"


def installed_experiments(ours: frozenset[str]) -> list[Experiment]:
    """The experiments that installed packages declare, by name; none may have a name of `ours`."""
    return [_load(point) for point in declared(ours)]


@functools.cache
def declared(ours: frozenset[str]) -> tuple[importlib.metadata.EntryPoint, ...]:
    """The entry points of installed packages by name, not loaded yet; a name that is taken is an
    error.
    """
    owners = dict.fromkeys(ours, "wideflow itself")
    points = sorted(importlib.metadata.entry_points(group=GROUP), key=lambda point: point.name)
    for point in points:
        if point.name in owners:
            raise ValueError(
                f"{_where(point)} has the same name as an experiment of {owners[point.name]}, so "
                "that one of the two could not be run. "
                f"Rename it in {_package(point)}, or uninstall that package."
            )
        owners[point.name] = _package(point)
    return tuple(points)


def _package(point: importlib.metadata.EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "an unnamed package"


def _where(point: importlib.metadata.EntryPoint) -> str:
    return f"the entry point {point.name!r} of {_package(point)} ({point.value})"


def _load(point: importlib.metadata.EntryPoint) -> Experiment:
    package, where = _package(point), _where(point)
    try:
        experiment = point.load()
    except Exception as error:
        raise ValueError(
            f"{where} cannot be loaded: {type(error).__name__}: {error} Fix it, or uninstall "
            f"{package}."
        ) from error
    if not isinstance(experiment, Experiment):
        raise ValueError(f"{where} must be an `Experiment`, got {type(experiment).__name__}.")
    if experiment.name != point.name:
        raise ValueError(
            f"{where} is an experiment called {experiment.name!r}; give both the same name."
        )
    return experiment
