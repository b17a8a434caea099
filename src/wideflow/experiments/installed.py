"""Experiments of other packages: an entry point in the group `wideflow.experiments` adds one to the registry.

    [project.entry-points."wideflow.experiments"]
    my-experiment = "my_package.my_module:EXPERIMENT"

The part before the equals sign is the experiment's name. `wideflow list`, `run`, `reproduce`, `report` and sweeps then know it
like one of ours; a broken one is named, with the package that brought it, and never passed over.
"""

import importlib.metadata

from .base import Experiment

GROUP = "wideflow.experiments"


def installed_experiments() -> list[Experiment]:
    """Every experiment that an installed package declares, by name."""
    declared = importlib.metadata.entry_points(group=GROUP)
    return [_load(point) for point in sorted(declared, key=lambda point: point.name)]


def _load(point: importlib.metadata.EntryPoint) -> Experiment:
    package = point.dist.name if point.dist is not None else "an unnamed package"
    where = f"the entry point {point.name!r} of {package} ({point.value})"
    try:
        found = point.load()
    except Exception as error:
        raise ValueError(
            f"{where} cannot be loaded: {type(error).__name__}: {error} Mend it, or uninstall {package}."
        ) from error
    if not isinstance(found, Experiment):
        raise ValueError(f"{where} must be an `Experiment`, got {type(found).__name__}.")
    if found.name != point.name:
        raise ValueError(
            f"{where} is an experiment called {found.name!r}; give both the same name."
        )
    return found
