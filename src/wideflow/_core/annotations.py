"""What annotations say of arguments: read where a record is made, and where a call has failed.

Most arguments are checked where they are used. What slips through ends in an error of Python, NumPy
or JAX that speaks of something the user never wrote; its cause is most often an argument of another
kind than annotated. So the annotations of a call are read where it has failed, and only there: they
cost nothing where it succeeds, and refuse nothing that works.
"""

import collections.abc
import dataclasses
import inspect
import math
import pathlib
import types
import typing
from collections.abc import Callable

import jax
import numpy as np
from jax.core import Tracer

from .errors import check_callable, check_count, check_flag, check_kind, check_number

# what JAX raises where a program needs the numbers that it is being written for
NEED_NUMBERS = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
KINDS = {  # with what they are called
    str: "text",
    tuple: "a tuple",
    list: "a list",
    dict: "a dictionary",
    np.ndarray: "an array",
    pathlib.Path: "a `pathlib.Path`",
    collections.abc.Sequence: "a list",
    collections.abc.Mapping: "a dictionary",
}


def check_fields(record: typing.Any) -> None:
    """Refuses a dataclass with a field that is not what its annotation says; a number may be NaN,
    which is how a measurement fails.
    """
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        measured = isinstance(value, float | np.floating) and math.isnan(value)
        if value is field.default or measured:
            continue
        refusal = _refusal(field.name, value, field.type)
        if refusal is not None:
            raise refusal


def blamed(function: Callable, args: tuple, kwargs: dict, error: Exception) -> Exception | None:
    """The sentence about the argument of `function` to which `error` is due, if there is one."""
    signature = inspect.signature(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:  # arguments that are missing or not known: Python says it well
        return None
    if isinstance(error, NEED_NUMBERS):
        return _traced(function, given)
    if any(f"`{name}" in str(error) for name in given):  # a sentence already
        return None
    for name, value in given.items():
        parameter = signature.parameters[name]
        if name != "self" and value is not parameter.default:
            refusal = _refusal(name, value, parameter.annotation)
            if refusal is not None:
                return refusal
    return None


def _traced(function: Callable, given: dict) -> TypeError | None:
    for name, value in given.items():
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(value)):
            return TypeError(
                f"`{name}` of `{function.__qualname__}` must hold numbers, got values that JAX is "
                "tracing. Call it outside of `jit`, `grad` and `vmap`."
            )
    return None


def _refusal(name: str, value, annotation) -> ValueError | None:
    """Why the value is nothing that the annotation admits; None where it is, or where the
    annotation says more than can be checked.
    """
    union = isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union
    admitted = typing.get_args(annotation) if union else (annotation,)
    refusals = [_refused_by(name, value, kind) for kind in admitted]
    if not refusals or any(refusal is None for refusal in refusals):
        return None
    classes = tuple(kind for kind in admitted if _ours(kind))
    if len(classes) > 1:
        wanted = " or ".join(f"a `{getattr(kind, '__name__', kind)}`" for kind in classes)
        return _caught(check_kind, name, value, classes, wanted)
    return refusals[0]


def _refused_by(name: str, value, kind) -> ValueError | None:
    origin = typing.get_origin(kind) or kind
    if kind is type(None):
        return None if value is None else ValueError(f"`{name}` must be None, got {value!r}.")
    if kind is bool:
        return _caught(check_flag, name, value)
    if kind is int:
        return _caught(check_count, name, value, -(2**63))
    if kind is float:
        infinite = isinstance(value, float | np.floating) and math.isinf(value)
        return None if infinite else _caught(check_number, name, value)
    if origin is collections.abc.Callable:
        return _caught(check_callable, name, value, "a function")
    if origin is collections.abc.Sequence and isinstance(value, str | bytes):
        return ValueError(f"`{name}` must be a list, got {value!r}.")
    if origin in KINDS:
        return _caught(check_kind, name, value, origin, KINDS[origin])
    return _caught(check_kind, name, value, kind, f"a `{kind.__name__}`") if _ours(kind) else None


def _ours(kind) -> bool:
    return isinstance(kind, type) and kind.__module__.split(".")[0] == "wideflow"


def _caught(check: Callable, *arguments) -> ValueError | None:
    try:
        check(*arguments)
    except ValueError as refusal:
        return refusal
    return None
