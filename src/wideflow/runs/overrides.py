"""Single fields of an experiment's settings replaced, from text or values, each checked against its
type.
"""

import ast
import dataclasses
import functools
import importlib.util
import typing
from collections.abc import Mapping
from typing import Any

from .._core.errors import did_you_mean


def overridden(settings: Any, overrides: Mapping[str, Any], owner: str) -> Any:
    """`settings` with the fields in `overrides` replaced.

    Types are checked by pydantic; on a machine without it (a bare compute node) the literal is
    taken as it is.
    """
    kind = type(settings)
    names = [field.name for field in dataclasses.fields(kind)]
    hints = typing.get_type_hints(kind)
    fields = {name: getattr(settings, name) for name in names}
    for name, value in overrides.items():
        if name not in fields:
            raise ValueError(
                f"`{owner}` has no setting {name!r}.{did_you_mean(name, names)} It has "
                f"{', '.join(names)}."
            )
        fields[name] = _literal(value, hints[name]) if isinstance(value, str) else value
    return _checked(kind, fields, owner) if importlib.util.find_spec("pydantic") else kind(**fields)


def parse(texts: typing.Iterable[str]) -> dict[str, str]:
    """`field=value` texts as a dictionary."""
    overrides = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise ValueError(
                f"`--set` takes field=value, got {text!r}. For example: --set width=500"
            )
        if name.strip() in overrides:
            raise ValueError(
                f"`--set` names {name.strip()!r} twice, with {overrides[name.strip()]!r} and "
                f"{value.strip()!r}. Give it once."
            )
        overrides[name.strip()] = value.strip()
    return overrides


def _literal(text: str, hint: Any) -> Any:
    """Text as the value it spells, read with the field's type in mind: '1,2' is a tuple where one
    is due.
    """
    if hint is str:
        return text
    if hint is bool and text.lower() in ("true", "false", "yes", "no", "on", "off"):
        return text.lower() in ("true", "yes", "on")
    if text.lower() in ("none", "null"):
        return None
    if _is_tuple(hint):
        parts = text.strip("()[] ").split(",")
        inner = (typing.get_args(hint) or (str,))[0]
        return tuple(_literal(part.strip(), inner) for part in parts if part.strip())
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return float(value) if hint is float and type(value) is int else value


def _is_tuple(hint: Any) -> bool:
    return hint is tuple or typing.get_origin(hint) is tuple


@functools.cache
def _adapter(kind: type):
    import pydantic

    return pydantic.TypeAdapter(kind)


def _checked(kind: type, fields: dict[str, Any], owner: str) -> Any:
    import pydantic

    try:
        return _adapter(kind).validate_python(fields)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "value_error":  # the dataclass's own check, already a sentence
            raise ValueError(f"{owner}: {first['msg'].removeprefix('Value error, ')}") from error
        name, *inner = first["loc"]
        where = f"`{name}`" + "".join(f", entry {part}," for part in inner)
        what = first["msg"][0].lower() + first["msg"][1:]
        raise ValueError(
            f"setting {where} of `{owner}`: {what}, got {first['input']!r}."
        ) from error
