"""All experiments by name: those that each paper's `PAPER` lists, then those of installed packages
(`installed.py`).

Beside these stand `train`, a network of one's own, and the lab's tours, which `reproduce` leaves
out.
"""

import difflib
import functools
import importlib
from collections.abc import Iterable

from .._core.errors import did_you_mean
from ..papers import papers as own_papers
from ..papers.base import Paper
from .base import Experiment
from .installed import declared, installed_experiments

TRAIN = "train"  # a network of one's own


@functools.cache
def experiments() -> dict[str, Experiment]:
    """Every registered experiment, in the papers' order, then those of installed packages."""
    own = {
        name: paper.experiment(name)
        for paper in own_papers().values()
        for name in paper.experiments
    }
    installed = installed_experiments(_own_names())
    return own | {experiment.name: experiment for experiment in installed}


def papers() -> dict[str, str]:
    """What each paper is about: ours, then those that only installed packages speak of."""
    own = {key: paper.title for key, paper in own_papers().items()}
    brought = {experiment.paper for experiment in experiments().values()} - set(own)
    return own | {paper: "experiments of installed packages" for paper in sorted(brought)}


@functools.cache
def others() -> dict[str, Experiment]:
    """What reproduces no figure: `train`, then the tours."""
    tours = (paper.module("tour") for paper in own_papers().values())
    known = [_training(), *(tour.EXPERIMENT for tour in tours if tour is not None)]
    return {experiment.name: experiment for experiment in known}


def _own_names() -> frozenset[str]:
    """Names that no installed package may give; nothing is imported for them."""
    own = own_papers().values()
    return frozenset({TRAIN, *(n for paper in own for n in paper.experiments), *map(_tour, own)})


def _tour(paper: Paper) -> str:
    return f"tour-{paper.key}"


def _training() -> Experiment:
    return importlib.import_module(".training", __package__).EXPERIMENT


def experiment(name: str) -> Experiment:
    """The experiment of that name, or an error that lists what exists. Only that one is
    imported.
    """
    declared(_own_names())
    if name == TRAIN:
        return _training()
    for paper in own_papers().values():
        if name in paper.experiments:
            return paper.experiment(name)
        if name == _tour(paper) and (module := paper.module("tour")) is not None:
            return module.EXPERIMENT
    known = experiments() | others()
    if name not in known:
        raise ValueError(
            f"there is no experiment {name!r}.{_suggested(name, known)} `wideflow list` shows all."
        )
    return known[name]


def _suggested(name: str, known: Iterable[str]) -> str:
    """' Did you mean ...?' by the whole name, else by what is common to its beginning: 'carn' is
    closest to caron2023's.
    """
    heads = {each.rstrip("0123456789"): each for each in own_papers()}
    close = difflib.get_close_matches(name.lower().rstrip("0123456789-"), heads, n=1, cutoff=0.6)
    if did_you_mean(name, known) or not close:
        return did_you_mean(name, known)
    return f" Did you mean one of {heads[close[0]]}: `wideflow list {heads[close[0]]}`?"
