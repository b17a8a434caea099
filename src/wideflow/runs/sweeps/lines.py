"""YAML as plain values, with the line on which each of them stands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

Path = tuple[str | int, ...]


class SpecError(ValueError):
    """A sweep that was described wrongly; the message names file, line, field and value."""


@dataclass(frozen=True)
class Source:
    """Where a description comes from; `lines` says where each of its parts stands."""

    name: str
    lines: Mapping[Path, int] = field(default_factory=dict)

    def line(self, path: Path) -> int | None:
        """The line of the part at `path`, or of the nearest part around it."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None

    def error(self, path: Path, sentence: str) -> SpecError:
        line = self.line(path)
        return SpecError(f"{self.name}{f', line {line}' if line else ''}: {sentence}")


def load(text: str, name: str) -> tuple[Any, Source]:
    """The values in `text`, and where they stand."""
    lines: dict[Path, int] = {}
    source = Source(name, lines)
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        value = None if node is None else _value(loader, node, (), source, lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f", line {mark.line + 1}" if mark else ""
        raise SpecError(
            f"{name}{at}: this is not YAML: {error.problem or error.context}."
        ) from error
    except yaml.YAMLError as error:
        raise SpecError(f"{name}: this is not YAML: {' '.join(str(error).split())}.") from error
    except RecursionError as error:
        raise SpecError(f"{name}: a part of it contains itself.") from error
    if value is None:
        raise SpecError(f"{name} is empty; a sweep needs at least `experiment: NAME`.")
    return value, source


def _value(loader, node, path: Path, source: Source, lines: dict[Path, int]) -> Any:
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        return [
            _value(loader, part, (*path, i), source, lines) for i, part in enumerate(node.value)
        ]
    if not isinstance(node, yaml.MappingNode):
        return loader.construct_object(node, deep=True)
    loader.flatten_mapping(node)
    mapping: dict[str, Any] = {}
    for key, part in node.value:
        name = loader.construct_object(key, deep=True)
        line = key.start_mark.line + 1
        if not isinstance(name, str):
            raise SpecError(f"{source.name}, line {line}: names must be text, got {name!r}.")
        if name in mapping:
            raise SpecError(
                f"{source.name}, line {line}: `{name}` appears twice, first on line "
                f"{lines[(*path, name)]}."
            )
        mapping[name] = _value(loader, part, (*path, name), source, lines)
        lines[(*path, name)] = line
    return mapping
