"""A state as an address, and an address as a state; the same state as a shell command and as lines
of Python.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from .._core.errors import check_between
from ..runs.records import Record, repeat_command
from . import plane
from .fields import FIELDS, kinds
from .scenes import FREE, Scene, find_scene
from .uploads import PREFIX, Uploads

SEEDS = (0, 2**31 - 1)
KNOWN = ("token", "scene", "point", *FIELDS, "seed")  # what an address may say
BUILT = (
    "data",
    "samples",
    "features",
    "noise",
    "frequency",
    "amplitude",
    "test_samples",
    "target",
    "positive",
    "rows",
    "prepared",
    "depth",
    "width",
    "scaling",
    "activation",
    "deviation",
)
"""The settings that decide the data and the network at its start."""
DYNAMICS = {
    "descent": "wf.GradientDescent({rate!r})",
    "flow": "wf.GradientFlow()",
    "momentum": "wf.Optax(optax.sgd(1.0, momentum=0.9), rate={rate!r})",
    "adam": "wf.Optax(optax.adam(1.0), rate={rate!r})",
}
"""As one writes them in Python."""
START = {
    "data": "wave-1d",
    "samples": "20",
    "features": "10",
    "noise": "0.05",
    "frequency": "1",
    "amplitude": "0.5",
    "rows": "200",
    "depth": "1",
    "width": "400",
    "scaling": "mean-field",
    "activation": "tanh",
    "deviation": "2",
    "dynamics": "descent",
    "rate": "0.2",
    "steps": "5000",
    "time": "1000",
}


@dataclass(frozen=True)
class Place:
    """A scene with its choices, all checked.

    Attributes:
        choices: fields of the settings that the address or the page names; all others are the
            scene's own.
    """

    scene: Scene
    choices: Mapping[str, Any]
    seed: int
    uploads: Uploads

    @property
    def changes(self) -> dict[str, Any]:
        """What the run is asked for: an upload is known to it by the file that the server chose."""
        changes = dict(self.choices)
        if str(changes.get("data", "")).startswith(PREFIX):
            changes["data"] = str(self.uploads.path(changes["data"]))
        if self.scene.still:
            changes["folder"] = str(self.uploads.plane)
        return changes

    @property
    def at_home(self) -> dict[str, Any]:
        """All settings that differ from the experiment's defaults, as a user's own machine would
        name them.
        """
        changed = self.scene.changed(self.changes)
        if str(self.choices.get("data", "")).startswith(PREFIX):
            changed["data"] = self.uploads.name(self.choices["data"])
        return changed

    def link(self) -> str:
        """The address behind the question mark, without the token."""
        return urlencode({"scene": self.scene.name, **self.choices, "seed": self.seed})

    def command(self) -> str:
        if self.scene.still:
            return f"wideflow lab {shlex.quote(str(self.uploads.plane))}"
        return repeat_command(self.scene.experiment.name, "default", self.seed, self.at_home)

    def lines(self) -> str:
        """Python that repeats the run: of free play by `wf.train`, of a tour by its experiment; of
        a plane's point its estimator.
        """
        if self.scene.still:
            assert self.uploads.plane is not None
            return plane.python(plane.plane_at(self.uploads.plane), self.choices["point"])
        return self._train_lines() if self.scene.name == FREE else self._experiment_lines()

    def _train_lines(self) -> str:
        settings = self.scene.settings(self.changes)
        own = {name: value for name, value in self.at_home.items() if name in BUILT}
        arguments = ", ".join(f"{name}={value!r}" for name, value in own.items())
        if settings.dynamics == "flow":
            length = f"time={settings.time!r}, every={settings.time / settings.records!r}"
        else:
            length = f"steps={settings.steps}, every={max(1, settings.steps // settings.records)}"
        return "\n".join(
            [
                "import jax",
                *(["import optax"] if "optax" in DYNAMICS[settings.dynamics] else []),
                "import wideflow as wf",
                "from wideflow.experiments.training import Settings, build",
                "",
                f"settings = Settings({arguments})",
                f"networks, data, test = build(settings, jax.random.key({self.seed}))",
                f"dynamics = {DYNAMICS[settings.dynamics].format(rate=settings.rate)}",
                "watched = [wf.observables.KernelDistance(), wf.observables.LinearisationGap(), "
                "wf.observables.TestRisk()]",
                f"run = wf.train(networks[0], data, dynamics, {length}, record=watched, test=test)",
                "run.table",
            ]
        )

    def _experiment_lines(self) -> str:
        return "\n".join(
            [
                "from wideflow.experiments.registry import experiment",
                "from wideflow.runs import Store, perform",
                "",
                f"settings = {self.at_home!r}",
                f'run = perform(experiment("{self.scene.experiment.name}"), Store("runs"), '
                f"overrides=settings, seed={self.seed})",
                "run.record.table",
            ]
        )


def place(query: Mapping[str, str], uploads: Uploads) -> Place:
    """The place that `query` names, texts as they come from an address; wrong ones are
    explained.
    """
    scene = find_scene(query.get("scene") or FREE)
    try:
        seed = int(query.get("seed") or 0)
    except ValueError as error:
        raise ValueError(f"`seed` must be a whole number, got {query['seed'][:40]!r}.") from error
    check_between("seed", seed, *SEEDS)
    choices = {}
    if scene.name == FREE:
        texts = START | {name: text for name, text in query.items() if text != ""}
        words = kinds(texts["data"], texts["dynamics"]) | {""}
        fields = [f for f in FIELDS.values() if f.name in texts and f.only in words]
        choices = {f.name: f.value(texts[f.name]) for f in fields}
        _check_data(choices.get("data", ""), uploads)
    if scene.still:
        choices = {"point": _point(query.get("point", ""), uploads)}
    result = Place(scene, choices, seed, uploads)
    scene.settings(result.changes)
    return result


def _point(text: str, uploads: Uploads) -> int:
    """The number of a point of the server's plane; the recommended one where none is named."""
    if uploads.plane is None:
        raise ValueError(
            "`scene` is 'plane', but this lab was started without one. `wideflow lab FOLDER` opens "
            "a folder of `wideflow phase`."
        )
    phase_plane = plane.plane_at(uploads.plane)
    try:
        number = int(text) if text else phase_plane.answer.best
    except ValueError as error:
        raise ValueError(f"`point` must be a whole number, got {text[:40]!r}.") from error
    check_between("point", number, 0, len(phase_plane.places) - 1)
    return number


def saved_link(record: Record) -> str:
    """The address, behind the question mark, of a saved run: a tour, or a plain training that the
    page can show.

    Raises:
        ValueError: the run is of another experiment, or on a file that the page cannot find by
            itself.
    """
    from .scenes import scenes

    if record.experiment in scenes():
        return urlencode({"scene": record.experiment, "seed": record.seed})
    if record.experiment != scenes()[FREE].experiment.name:
        raise ValueError(
            f"`state` is a run of {record.experiment!r}, which is not a scene of the lab. It shows "
            "runs of 'train' and of the tours."
        )
    settings = dict(record.settings)
    if str(settings["data"]).endswith(".csv"):
        raise ValueError(
            f"`state` is a run on {settings['data']}. Open the lab and upload that file; its "
            f"other settings are {record.command}"
        )
    words = kinds(settings["data"], settings["dynamics"]) | {""}
    choices = {
        f.name: settings[f.name] for f in FIELDS.values() if f.only in words and f.name in settings
    }
    return urlencode({"scene": FREE, **choices, "seed": record.seed})


def _check_data(name: str, uploads: Uploads) -> None:
    """Generators, known tables and this server's uploads; never a path."""
    from ..data.files import UCI, available
    from ..experiments.training import GENERATED

    if name.startswith(PREFIX):
        uploads.path(name)
    elif name and name not in GENERATED and name.removeprefix("uci:") not in UCI:
        raise ValueError(
            f"`data` must be {', '.join(map(repr, GENERATED))}, 'uci:NAME' or an upload of this "
            f"page, got {name[:40]!r}."
        )
    elif name.startswith("uci:") and not available(name.removeprefix("uci:")):
        file = UCI[name.removeprefix("uci:")].source.file
        raise ValueError(
            f"`data` = {name!r} is not on this machine. Put {file} into a folder and name that "
            "folder in WIDEFLOW_DATA before `wideflow lab` starts."
        )
