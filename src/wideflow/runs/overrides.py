"""Single fields of an experiment's settings replaced, from text or values, each checked against its
type.
"""

import ast
import dataclasses
import numbers
import types
import typing
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._core.errors import did_you_mean

LARGEST = 10**308  # of integers that are read as floating-point numbers


def overridden(settings: Any, overrides: Mapping[str, Any], owner: str) -> Any:
    """`settings` with the fields in `overrides` replaced, each by a value of its field's type."""
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
        try:
            fitted = _fitted(value, hints[name])
            if fitted == () and any(isinstance(entry, int | float) for entry in fields[name] or ()):
                raise _MisfitError(value, "at least one number")
            fields[name] = fitted
        except _MisfitError as misfit:
            where = f"`{name}`" + (f", entry {misfit.entry}," if misfit.entry is not None else "")
            raise ValueError(
                f"setting {where} of `{owner}`: must be {misfit.wanted}, got {misfit.value!r}."
            ) from misfit
    try:
        return kind(**fields)
    except ValueError as error:  # the dataclass's own check
        raise ValueError(f"{owner}: {error}") from error


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


@dataclasses.dataclass(eq=False)
class _MisfitError(Exception):
    """A value that is not what its annotation says; `entry` is its place in a tuple."""

    value: Any
    wanted: str
    entry: int | None = None


def _fitted(value: Any, hint: Any) -> Any:
    """The value as the annotation has it: text is read, a whole float is an integer, a list a
    tuple. Annotations other than those below accept what they get.
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if tuple in (hint, origin):
        return _tuple(value, inner)
    if origin is typing.Literal:
        return _if(value in inner, value, " or ".join(map(repr, inner)))
    if origin in (typing.Union, types.UnionType):
        return _any(value, inner)
    value = _read(value, hint)
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    if hint is int:
        whole = is_number and (isinstance(value, numbers.Integral) or float(value).is_integer())
        return int(_if(whole, value, "an integer"))
    if hint is float:
        small = is_number and (not isinstance(value, numbers.Integral) or abs(int(value)) < LARGEST)
        return float(_if(small, value, "a number"))
    if hint is bool:
        return bool(_if(isinstance(value, bool | np.bool_), value, "True or False"))
    if hint is str:
        return _if(isinstance(value, str), value, "text")
    return _if(hint is not type(None) or value is None, value, "None")


def _if(condition: bool, value: Any, wanted: str) -> Any:
    if not condition:
        raise _MisfitError(value, wanted)
    return value


def _tuple(value: Any, inner: tuple) -> tuple:
    if isinstance(value, str):
        value = [part.strip() for part in value.strip("()[] ").split(",") if part.strip()]
    parts = tuple(_if(isinstance(value, list | tuple | np.ndarray), value, "a tuple"))
    if not inner:
        return parts
    kinds = inner[:1] * len(parts) if inner[1:] == (...,) else inner
    _if(len(parts) == len(kinds), value, f"a tuple of length {len(kinds)}")
    fitted = []
    for entry, (part, kind) in enumerate(zip(parts, kinds, strict=True)):
        try:
            fitted.append(_fitted(part, kind))
        except _MisfitError as misfit:
            raise dataclasses.replace(misfit, entry=entry) from misfit
    return tuple(fitted)


def _any(value: Any, hints: tuple) -> Any:
    """The value by the first annotation of a union that accepts it."""
    wanted = []
    for hint in hints:
        try:
            return _fitted(value, hint)
        except _MisfitError as misfit:
            wanted.append(misfit.wanted)
    raise _MisfitError(value, " or ".join(wanted))


def _read(value: Any, hint: Any) -> Any:
    """Text as the value that it spells, read with the field's type in mind."""
    if not isinstance(value, str) or hint is str:
        return value
    if hint is bool and value.lower() in ("true", "false", "yes", "no", "on", "off"):
        return value.lower() in ("true", "yes", "on")
    if value.lower() in ("none", "null"):
        return None
    try:
        return float(value) if hint is float else ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
