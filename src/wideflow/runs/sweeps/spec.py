"""What a sweep is: an experiment, its fixed settings, axes, seeds. Checked before anything runs.

experiment: train            # or another of `wideflow list`; in Python also a function
size: smoke                  # whose settings are the start; default "default"
set: {steps: 200}            # settings that are the same in all runs
grid:                        # one dimension each, every combination
  width: [64, 256, 1024]
  scaling: [ntk, mean-field]
zip:                         # go side by side: one dimension together
  rate: [0.1, 0.2]
  steps: [200, 100]
list:                        # explicit points: one dimension, `point`
  - {activation: relu}
  - {activation: erf, deviation: 1.5}
seeds: 5                     # how many, or which: [0, 3, 7]
plot: {y: kernel_drift, x: width, hue: scaling}
"""

import math
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..._core.errors import check_path, did_you_mean
from ...experiments import registry
from ...experiments.base import SIZES, Experiment
from ...experiments.of_function import check_sendable, experiment_of
from .lines import Path, Source, SpecError, load

KEYS = ("name", "experiment", "size", "set", "grid", "zip", "list", "seeds", "plot")
PLOT_KEYS = ("y", "x", "hue", "at")
MOST_RUNS = 1_000_000  # a slip in the ranges (chosen); all runs are planned in memory


@dataclass(frozen=True)
class Axis:
    """A dimension of the sweep: at each of its points some settings have values of their own."""

    name: str
    points: tuple[Mapping[str, Any], ...]
    paths: tuple[Mapping[str, Path], ...]

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for point in self.points for name in point))


@dataclass(frozen=True)
class SweepSpec:
    """A description of which every name is known; values are checked by `plan.expand`, run by
    run.
    """

    name: str
    experiment: Experiment
    function: Callable | None  # that the experiment calls, where it was given as one
    size: str
    fixed: Mapping[str, Any]
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    plot: Mapping[str, str] | None
    source: Source

    @property
    def count(self) -> int:
        return math.prod(len(axis.points) for axis in self.axes) * len(self.seeds)


def read_spec(description: str | pathlib.Path | Mapping[str, Any]) -> SweepSpec:
    """A sweep from a YAML file, or from the same as a dictionary.

    Raises:
        SpecError: with file, line, field and value.
        OSError: the file cannot be read.
    """
    if isinstance(description, Mapping):
        return _spec(dict(description), Source("the sweep"), "sweep")
    check_path("spec", description)
    path = pathlib.Path(description)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SpecError(
            f"{path} is not a text file: {error.reason} at byte {error.start}."
        ) from error
    except FileNotFoundError as error:
        raise SpecError(f"there is no file {path}.") from error
    except IsADirectoryError as error:
        raise SpecError(f"{path} is a folder; name the YAML file in it.") from error
    value, source = load(text, str(path))
    return _spec(value, source, re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem) or "sweep")


def _spec(value: Any, source: Source, default_name: str) -> SweepSpec:
    if not isinstance(value, dict):
        raise source.error((), f"a sweep is a list of `name: value` lines, got {value!r:.60}.")
    for key in value:
        if key not in KEYS:
            raise source.error(
                (key,),
                f"`{key}` is not a part of a sweep.{did_you_mean(key, KEYS)} A sweep has "
                f"{', '.join(KEYS)}.",
            )
    name = value.get("name", default_name)
    if not (isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", name)):
        raise source.error(
            ("name",),
            "`name` must be letters, digits, '.', '_' and '-', as it names a folder, got "
            f"{name!r}.",
        )
    experiment = _experiment(value, source)
    size = value.get("size", "default")
    if size not in SIZES:
        raise source.error(
            ("size",),
            f"`size` must be one of {', '.join(SIZES)}, got {size!r}.{did_you_mean(size, SIZES)}",
        )
    fixed = _mapping(value, "set", source)
    axes = tuple(_axes(value, source))
    _check_names(experiment, fixed, axes, source)
    spec = SweepSpec(
        name,
        experiment,
        value["experiment"] if callable(value["experiment"]) else None,
        size,
        fixed,
        axes,
        _seeds(value, source),
        _plot(value, source),
        source,
    )
    if spec.count > MOST_RUNS:
        raise source.error(
            ("grid",), f"{spec.count} runs are more than the {MOST_RUNS} that one sweep may have."
        )
    return spec


def _experiment(value: dict, source: Source) -> Experiment:
    name = value.get("experiment")
    if callable(name):
        check_sendable(name)
        return experiment_of(name)
    if not isinstance(name, str):
        raise source.error(
            ("experiment",),
            f"`experiment` must be the name of one, or 'train', got {name!r}. `wideflow list` "
            "shows all.",
        )
    try:
        return registry.experiment(name)
    except ValueError as error:
        raise source.error(("experiment",), str(error)) from error


def _mapping(value: dict, key: str, source: Source) -> dict[str, Any]:
    settings = value.get(key) or {}
    if not isinstance(settings, dict):
        raise source.error(
            (key,), f"`{key}` must have `setting: value` lines, got {settings!r:.60}."
        )
    return settings


def _axes(value: dict, source: Source) -> Iterator[Axis]:
    for name, values in _mapping(value, "grid", source).items():
        values = _values(values, ("grid", name), source)
        yield Axis(
            name,
            tuple({name: v} for v in values),
            tuple({name: ("grid", name, i)} for i in range(len(values))),
        )
    together = {
        name: _values(v, ("zip", name), source)
        for name, v in _mapping(value, "zip", source).items()
    }
    if together:
        lengths = {name: len(values) for name, values in together.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"`{name}` has {length}" for name, length in lengths.items())
            raise source.error(
                ("zip",),
                f"the lists under `zip` must be equally long, but {listed}. For combinations use "
                "`grid`.",
            )
        count = next(iter(lengths.values()))
        yield Axis(
            "_".join(together),
            tuple({n: v[i] for n, v in together.items()} for i in range(count)),
            tuple({n: ("zip", n, i) for n in together} for i in range(count)),
        )
    points = value.get("list")
    if points is not None:
        points = _values(points, ("list",), source)
        for i, point in enumerate(points):
            if not isinstance(point, dict):
                raise source.error(
                    ("list", i),
                    f"a point of `list` must be `{{setting: value, ...}}`, got {point!r:.60}.",
                )
        yield Axis(
            "point",
            tuple(points),
            tuple({n: ("list", i, n) for n in point} for i, point in enumerate(points)),
        )


def _values(values: Any, path: Path, source: Source) -> list:
    if not isinstance(values, list | tuple) or not values:
        raise source.error(
            path,
            f"`{'.'.join(map(str, path))}` must be a list of at least one value, got "
            f"{values!r:.60}.",
        )
    return list(values)


def _check_names(
    experiment: Experiment, fixed: Mapping, axes: tuple[Axis, ...], source: Source
) -> None:
    settings = [f.name for f in fields(experiment.settings["default"])]
    first: dict[str, Path] = {}
    places: list[dict[str, Path]] = [{name: ("set", name) for name in fixed}]
    for axis in axes:
        places.append({name: paths[name] for paths in reversed(axis.paths) for name in paths})
    for axis, paths in zip((None, *axes), places, strict=True):
        for name, path in paths.items():
            if name not in settings:
                raise source.error(
                    path,
                    f"`{experiment.name}` has no setting {name!r}.{did_you_mean(name, settings)} "
                    f"It has {', '.join(settings)}.",
                )
            if name in first:
                line = source.line(first[name])
                raise source.error(
                    path,
                    f"`{name}` is set twice{f', first on line {line}' if line else ''}; keep one "
                    "of them.",
                )
            first[name] = path
        if axis is not None and axis.name == "seed":
            raise source.error(("grid", "seed"), "an axis may not be called `seed`; use `seeds`.")


def _seeds(value: dict, source: Source) -> tuple[int, ...]:
    seeds = value.get("seeds", 1)
    if type(seeds) is int and 1 <= seeds <= MOST_RUNS:
        return tuple(range(seeds))
    listed = seeds if isinstance(seeds, list | tuple) else ()
    whole = listed and all(type(seed) is int and seed >= 0 for seed in listed)
    if not whole or len(set(listed)) < len(listed):
        raise source.error(
            ("seeds",),
            f"`seeds` must be a number of seeds or a list of different ones, got {seeds!r:.60}.",
        )
    return tuple(listed)


def _plot(value: dict, source: Source) -> dict[str, str] | None:
    if value.get("plot") is None:
        return None
    plot = _mapping(value, "plot", source)
    for key, part in plot.items():
        if key not in PLOT_KEYS or not isinstance(part, str | int | float):
            raise source.error(
                ("plot", key),
                f"`plot` takes {', '.join(PLOT_KEYS)}, got {key}: "
                f"{part!r}.{did_you_mean(key, PLOT_KEYS)}",
            )
    return {key: str(part) for key, part in plot.items()}
