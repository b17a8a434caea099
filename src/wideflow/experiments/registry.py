"""All experiments by name. A paper's folder lists its modules in `EXPERIMENTS`; other packages declare entry points (`installed.py`).

Beside these stand `train`, a network of one's own, and the lab's tours, which `reproduce` leaves out.
"""

import functools
import importlib
from collections.abc import Iterable, Iterator

from .._core.errors import did_you_mean
from .base import Experiment
from .installed import installed_experiments

PAPERS = {
    "caron2023": "Asymmetric node scaling: global convergence and feature learning",
    "chen2022": "Partially trained networks: feature learning with a linear rate",
    "li2020": "Tensor stages: learning beyond the tangent kernel",
    "ren2023": "Depth separation with multilayer mean-field networks",
    "allenzhu2018": "Improper learning with two and three layers",
}


@functools.cache
def experiments() -> dict[str, Experiment]:
    """Every registered experiment, in the papers' order, then those of installed packages."""
    ours = [experiment for paper in PAPERS for experiment in _of_folder(paper)]
    taken = (*(experiment.name for experiment in ours), *others())
    return _named((*ours, *installed_experiments(taken)))


def papers() -> dict[str, str]:
    """What each paper is about: ours, then those that only installed packages speak of."""
    brought = {experiment.paper for experiment in experiments().values()} - set(PAPERS)
    return PAPERS | {paper: "experiments of installed packages" for paper in sorted(brought)}


@functools.cache
def others() -> dict[str, Experiment]:
    """What reproduces no figure: `train`, then the tours."""
    generic = importlib.import_module(".training", __package__).EXPERIMENT
    return _named((generic, *_of_folder("tours")))


def experiment(name: str) -> Experiment:
    """The experiment of that name, or an error that lists what exists."""
    known = experiments() | others()
    if name not in known:
        raise ValueError(
            f"there is no experiment {name!r}.{did_you_mean(name, known)} `wideflow list` shows all."
        )
    return known[name]


def _of_folder(folder: str) -> Iterator[Experiment]:
    for module in importlib.import_module(f".{folder}", __package__).EXPERIMENTS:
        yield importlib.import_module(f".{folder}.{module}", __package__).EXPERIMENT


def _named(found: Iterable[Experiment]) -> dict[str, Experiment]:
    named: dict[str, Experiment] = {}
    for experiment in found:
        if experiment.name in named:
            raise ValueError(f"two experiments are called {experiment.name!r}.")
        named[experiment.name] = experiment
    return named
