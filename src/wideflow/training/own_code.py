"""What code of the user's own reads beside its arguments: the globals of functions, the methods of
classes.

Followed are functions and classes of the user's scripts, notebooks and modules. The code of
installed packages, and wideflow's own, changes with their versions, which records and checkpoints
carry.
"""

import dis
import functools
import inspect
import pathlib
import sys
import sysconfig
import types
from collections.abc import Iterator
from typing import Any

KINDS = ("stdlib", "platstdlib", "purelib", "platlib")
INSTALLED = (*{sysconfig.get_path(kind) for kind in KINDS}, str(pathlib.Path(__file__).parents[1]))
GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")
PLAIN = (bool, int, float, complex, str, bytes, tuple, list, dict, types.NoneType)


def is_own(thing: types.FunctionType | type) -> bool:
    """Whether a function or class is neither wideflow's nor of an installed package."""
    if isinstance(thing, type):
        module = sys.modules.get(thing.__module__)
        return module is None or _is_own_module(module)
    return _is_own_file(thing.__code__.co_filename)


def _is_own_module(module: types.ModuleType) -> bool:
    if module.__name__ == "__main__":  # in a worker process it lies in another file
        return True
    file = getattr(module, "__file__", None)
    return file is not None and _is_own_file(file)  # builtins have none


@functools.cache
def _is_own_file(name: str) -> bool:
    return not name.startswith(("<frozen", *INSTALLED))


def globals_read(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The globals that a function's code reads, by name; of a module or class of the user's own the
    attributes that the code may read.
    """
    names, attributes = _names(function.__code__)
    for name in names:
        if name not in function.__globals__:  # a builtin
            continue
        value = function.__globals__[name]
        if isinstance(value, types.ModuleType):
            yield name, value.__name__
            if _is_own_module(value):
                for attribute in attributes:
                    if attribute in vars(value):
                        yield f"{name}.{attribute}", vars(value)[attribute]
        else:
            yield name, value


def classes_read(function: types.FunctionType, followed: set | None = None) -> Iterator[type]:
    """The user's own classes that a function reads as globals or closes over, itself or by
    functions it calls.
    """
    followed = set() if followed is None else followed
    followed.add(function)
    closed = inspect.getclosurevars(function).nonlocals.values()
    for value in (*(value for _, value in globals_read(function)), *closed):
        if isinstance(value, type) and is_own(value):
            yield value
        elif isinstance(value, types.FunctionType) and value not in followed and is_own(value):
            yield from classes_read(value, followed)


def _names(code: types.CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The globals and the attributes that are named in `code` and in what it defines."""
    outside: dict[str, None] = {}
    attributes: dict[str, None] = {}
    for instruction in dis.get_instructions(code):
        if instruction.opname in GLOBAL:
            outside[instruction.argval] = None
        elif instruction.opname.startswith(("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM")):
            attributes[instruction.argval] = None
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = _names(constant)
            outside |= dict.fromkeys(inner[0])
            attributes |= dict.fromkeys(inner[1])
    return tuple(outside), tuple(attributes)


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The methods of a class and of its bases, as far as they are the user's own, and what their
    bodies set to plain values.
    """
    for base in kind.__mro__:
        if not is_own(base):
            continue
        for name, member in vars(base).items():
            # an object is what its fields are, however its constructor filled them
            if name.startswith("__") and name != "__call__":
                continue
            function = _function_of(member)
            if function is not None:
                yield f"{base.__qualname__}.{name}", function
            elif isinstance(member, PLAIN) or hasattr(member, "__array__"):
                yield f"{base.__qualname__}.{name}", member


def _function_of(member) -> types.FunctionType | None:
    """The function in a member of a class, also under the decorators of classes and Equinox."""
    for name in ("__func__", "fget", "func", "method", "__wrapped__"):
        if isinstance(member, types.FunctionType):
            return member
        member = getattr(member, name, member)
    return member if isinstance(member, types.FunctionType) else None
