"""What can be watched: free play on the generic experiment, and the guided tours."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import xarray as xr

from .._core.errors import did_you_mean
from ..experiments import registry
from ..experiments.base import Experiment
from ..experiments.tours.base import Step
from ..figures import FigureSpec
from ..papers import papers
from ..runs.overrides import overridden
from . import dialling, judging, plane
from .messages import Verdicts
from .tours import TOURS

FREE = "free"
FIXED = {
    "record": ("all",),
    "records": 200,
    "prepared": True,
    "test_samples": 100,
    "batch": 0,
}  # of the settings, not offered


@dataclass(frozen=True)
class Scene:
    """An experiment, the settings it starts from, and the figure that is drawn while it runs.

    Attributes:
        fixed: changes to the experiment's default settings that the page does not offer.
        steps: the cards of a guided tour, none for free play.
        judge: theorems on the network and data of (settings, seed), where that makes sense.
        dial: where a table lies from lazy to rich, None where it does not say.
        still: nothing is trained: whatever is chosen is drawn at once.
    """

    name: str
    title: str
    paper: str
    experiment: Experiment
    fixed: Mapping[str, Any]
    live: Callable[[xr.Dataset], FigureSpec]
    steps: tuple[Step, ...] = ()
    judge: Callable[[Any, int], Verdicts] | None = None
    dial: Callable[[xr.Dataset], dict | None] = dialling.dial
    still: bool = False

    @property
    def about(self) -> str:
        """What its paper is about."""
        return papers()[self.paper].title if self.paper in papers() else ""

    def settings(self, changes: Mapping[str, Any]) -> Any:
        """The settings of a run; wrong values are explained."""
        start = self.experiment.settings["default"]
        return overridden(start, {**self.fixed, **changes}, self.experiment.name)

    def changed(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """All fields in which the settings differ from the experiment's defaults."""
        start = dataclasses.asdict(self.experiment.settings["default"])
        now = dataclasses.asdict(self.settings(changes))
        return {name: value for name, value in now.items() if value != start[name]}


@functools.cache
def scenes() -> dict[str, Scene]:
    """Every scene by the name that stands in the address."""
    training = registry.experiment("train")
    by_name = {
        FREE: Scene(FREE, "Free play", "", training, FIXED, training.draw, judge=judging.judge)
    }
    for tour in TOURS.values():
        experiment = registry.experiment(tour.experiment)
        by_name[experiment.name] = Scene(
            experiment.name,
            tour.title,
            tour.paper,
            experiment,
            tour.settings,
            tour.live,
            tour.steps,
        )
    return by_name


@functools.cache
def plane_scene() -> Scene:
    """A phase plane that was saved; only a lab that was opened on a folder shows it."""
    return Scene(
        plane.NAME, "Phase plane", "", plane.EXPERIMENT, {}, plane.live, dial=plane.dial, still=True
    )


def find_scene(name: str) -> Scene:
    by_name = scenes()
    if name == plane.NAME:
        return plane_scene()
    if name not in by_name:
        raise ValueError(
            f"there is no scene {name!r}.{did_you_mean(name, by_name)} There are "
            f"{', '.join(by_name)}."
        )
    return by_name[name]
