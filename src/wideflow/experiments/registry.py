"""All experiments by name. A paper's folder lists its modules in `EXPERIMENTS`; nothing else is needed."""

import functools
import importlib

from .._core.errors import did_you_mean
from .base import Experiment

PAPERS = {
    "caron2023": "Asymmetric node scaling: global convergence and feature learning",
    "chen2022": "Partially trained networks: feature learning with a linear rate",
    "li2020": "Tensor stages: learning beyond the tangent kernel",
    "ren2023": "Depth separation with multilayer mean-field networks",
    "allenzhu2018": "Improper learning with two and three layers",
}

GENERIC = "train"  # belongs to no paper: a network of one's own, for `run` and for sweeps


@functools.cache
def experiments() -> dict[str, Experiment]:
    """Every registered experiment, in the papers' order."""
    found: dict[str, Experiment] = {}
    for paper in PAPERS:
        folder = importlib.import_module(f".{paper}", __package__)
        for module in folder.EXPERIMENTS:
            experiment = importlib.import_module(f".{paper}.{module}", __package__).EXPERIMENT
            if experiment.name in found:
                raise ValueError(f"two experiments are called {experiment.name!r}.")
            found[experiment.name] = experiment
    return found


def experiment(name: str) -> Experiment:
    """The experiment of that name, or an error that lists what exists."""
    if name == GENERIC:
        return importlib.import_module(".training", __package__).EXPERIMENT
    known = experiments()
    if name not in known:
        raise ValueError(
            f"there is no experiment {name!r}.{did_you_mean(name, known)} `wideflow list` shows all."
        )
    return known[name]
