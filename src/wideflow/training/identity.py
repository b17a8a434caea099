"""What makes two inputs of a computation the same, in this process and in every other.

Arrays are their bytes, settings their values, functions their code with all that they close over
and, where `code` is to be followed, with the globals they read and the methods of their classes.
What has no such identity (an open file, an object compared by its place in memory) raises
`UnstableIdentityError` and is never taken for something else.
"""

import dataclasses
import functools
import hashlib
import types
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._core.activations import Activation
from .own_code import globals_read, is_own, members

Update = Callable[[bytes], None]
COMPILED: type = type(eqx.filter_jit(len))  # its fields hold its cache
# whose code changes with their versions alone, as far as it is met in every training
PACKAGES = ("builtins", "wideflow", "jax", "jaxlib", "numpy", "equinox", "optax", "diffrax")
TYPE_CHECKERS = ("jaxtyping", "beartype")


class UnstableIdentityError(Exception):
    """An input that cannot be recognised in another process."""


def identify(thing, update: Update, *, code: bool = False) -> None:
    """Feeds `update` (of a hash) with all that `thing` is.

    Args:
        code: whether two things are the same only if they also compute the same: the code of the
            user's own functions and classes is followed into the globals that it reads.
    """
    _Identity(update, code).feed(thing)


def digest(*things, code: bool = False) -> str:
    """Twelve hexadecimal digits that tell equal things from others; empty for what has no identity
    of its own.
    """
    sha = hashlib.sha256()
    try:
        identify(things, sha.update, code=code)
    except UnstableIdentityError:
        return ""
    return sha.hexdigest()[:12]


class _Identity:
    def __init__(self, update: Update, code: bool):
        self.update, self.code = update, code
        self.followed: set[int] = set()  # functions and classes whose code has been fed
        self.open: set[int] = set()  # what is being fed now: a function may close over itself

    def text(self, *parts: object) -> None:
        self.update(("\x1f".join(map(str, parts)) + "\x1e").encode())

    def feed(self, thing) -> None:
        if id(thing) in self.open:
            self.text("again")
            return
        self.open.add(id(thing))
        try:
            self._feed(thing)
        finally:
            self.open.discard(id(thing))

    def _feed(self, thing) -> None:
        if thing is None or isinstance(thing, bool | int | float | complex | str | bytes):
            self.text(type(thing).__name__, repr(thing))
        elif isinstance(thing, np.ndarray | np.generic | jax.Array):
            self._array(thing)
        elif isinstance(thing, Activation):
            self.text("Activation")
            self.feed(thing.key)
            if thing.name == "custom":
                self.feed(thing.value)
        elif isinstance(thing, type):
            self._class(thing)
        elif dataclasses.is_dataclass(thing) and not isinstance(thing, COMPILED):
            self._fields(thing)
        elif isinstance(thing, tuple | list | dict | frozenset | set):
            self._container(thing)
        elif isinstance(thing, functools.partial):
            self.text("partial")
            self.feed((thing.func, thing.args, thing.keywords))
        else:
            self._callable(thing)

    def _array(self, array) -> None:
        if isinstance(array, jax.Array) and jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
            self.text("key", jax.random.key_impl(array))
            array = jax.random.key_data(array)
        plain = np.asarray(array)
        if plain.dtype.hasobject:
            raise UnstableIdentityError(f"an array of objects, {plain.dtype}")
        self.text("array", plain.dtype, plain.shape)
        self.update(np.ascontiguousarray(plain).tobytes())

    def _fields(self, thing) -> None:
        self.text("fields", type(thing).__module__, type(thing).__qualname__)
        if self.code:
            self._class(type(thing))
        for field in dataclasses.fields(thing):
            self.text(field.name)
            self.feed(getattr(thing, field.name, None))

    def _container(self, thing) -> None:
        self.text(type(thing).__name__, len(thing))
        if isinstance(thing, dict):
            for key, value in thing.items():
                self.feed(key)
                self.feed(value)
            return
        for item in sorted(thing, key=repr) if isinstance(thing, set | frozenset) else thing:
            self.feed(item)

    def _callable(self, thing) -> None:
        if isinstance(thing, types.MethodType):
            self.text("method")
            self.feed((thing.__self__, thing.__func__))
        elif isinstance(thing, types.FunctionType) and hasattr(thing, "__wrapped__"):
            self._decorated(thing)
        elif isinstance(thing, types.FunctionType):
            self._function(thing)
        elif isinstance(thing, types.BuiltinFunctionType | np.ufunc):
            self.text("builtin", getattr(thing, "__module__", ""), thing.__name__)
        elif callable(thing) and callable(inner := getattr(thing, "__wrapped__", None)):
            self.text("wrapped", type(thing).__qualname__)  # jit, custom_jvp and their like
            self.feed(inner)
        elif isinstance(thing, eqx.Module):
            self._fields(thing)
        else:
            raise UnstableIdentityError(f"{type(thing).__name__} has no identity of its own")

    def _class(self, kind: type) -> None:
        self.text("class", kind.__module__, kind.__qualname__)
        if self._follows(kind):
            for name, member in members(kind):
                self.text(name)
                self.feed(member)

    def _follows(self, thing: types.FunctionType | type) -> bool:
        """Whether the code of `thing` is to be fed: once, and of the user's own code alone."""
        if not self.code or id(thing) in self.followed:
            return False
        self.followed.add(id(thing))
        return (thing.__module__ or "").partition(".")[0] not in PACKAGES and is_own(thing)

    def _function(self, function: types.FunctionType) -> None:
        self.text("function", function.__module__, function.__qualname__)
        self._code(function.__code__)
        self.feed((function.__defaults__, function.__kwdefaults__))
        for cell in function.__closure__ or ():
            self.feed(_content(cell))
        if self._follows(function):
            for name, value in globals_read(function):
                self.text(name)
                self.feed(value)

    def _decorated(self, function: types.FunctionType) -> None:
        """What was decorated, the decorator's code, and the part of its state that can be
        identified (a type checker's cannot).
        """
        if any(name in function.__code__.co_filename for name in TYPE_CHECKERS):
            # with or without a type checker it is the same function
            self.feed(function.__wrapped__)
            return
        self.text("decorated")
        self.feed(function.__wrapped__)
        self._code(function.__code__)
        for cell in function.__closure__ or ():
            state = bytearray()
            try:
                identify(_content(cell), state.extend)
            except (UnstableIdentityError, RecursionError):
                continue
            self.update(bytes(state))

    def _code(self, code: types.CodeType) -> None:
        self.text("code", code.co_names, code.co_varnames, code.co_freevars)
        self.update(code.co_code)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._code(constant)
            elif isinstance(constant, frozenset):  # `x in {...}`: printed in an order of its own
                self._container(constant)
            else:
                self.text(repr(constant))


def _content(cell: types.CellType):
    """What a closure holds; None where it is filled only later."""
    try:
        return cell.cell_contents
    except ValueError:
        return None
