"""Every public entry point computes in 64 bit, whatever JAX's global flag says, and what it returns
stays in 64 bit.

JAX's flag belongs to the user: importing wideflow never flips it. Entry points open JAX's own local
context instead; inside it an array keeps the dtype it has, so float32 training is a matter of
float32 arrays and not of another mode.

A float64 array of JAX that leaves this context turns into float32 at the first operation on it
(`2 * g`), for then JAX's flag is off. So the rule for what leaves is: **where the flag is off,
arrays come out as NumPy arrays; where it is on, as JAX arrays.** Three things stay as they are:
values that JAX is tracing, so that `jax.grad`, `jit` and `vmap` go through every function; random
keys; and the arrays inside models, dynamics and objectives, which live on their device and are
trained there.
"""

import functools
import types
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .annotations import blamed
from .errors import check_choice

P = ParamSpec("P")
R = TypeVar("R")

Precision = Literal["float32", "float64"]


def jax_flag(name: str) -> Any:
    """A flag of JAX's, which its configuration has as an attribute without declaring it."""
    return getattr(jax.config, name)


def double(function: Callable[P, R]) -> Callable[P, R]:
    """Runs `function` with 64-bit types available and hands its arrays out by the rule above, which
    is to leave them where JAX's flag is on. An error from deep inside is laid at the argument it is
    due to.
    """
    if hasattr(function, "__double__"):
        return function

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if jax_flag("jax_enable_x64"):
                return function(*args, **kwargs)
            with jax.enable_x64(True):
                if function.__name__ == "__init__":  # fills `self` in place: nothing comes out
                    return function(*args, **kwargs)
                compute: Callable[..., R] = function  # of what the caller gave, on the device
                named = {name: _device(value) for name, value in kwargs.items()}
                return handed_out(compute(*map(_device, args), **named))
        except Exception as error:
            sentence = blamed(function, args, kwargs, error)
            if sentence is None:
                raise
            raise sentence from error

    wrapper.__double__ = True  # pyright: ignore[reportAttributeAccessIssue]
    return wrapper


class DoubleModule(eqx.Module):
    """A module all of whose public methods and properties are `double`, in every subclass, a user's
    own included.
    """

    def __init_subclass__(cls, **kwargs) -> None:
        for name, member in list(cls.__dict__.items()):
            if not name.startswith("_") or name in ("__init__", "__call__"):
                replaced = _double_member(member)
                if replaced is not member:
                    setattr(cls, name, replaced)


class AbstractResult(DoubleModule):
    """What a computation returns as a module: its arrays are returned like any others."""


def handed_out(value: Any) -> Any:
    """`value` with its arrays as NumPy arrays, by the rule at the head of this file."""
    if isinstance(value, jax.Array):
        return _host(value)
    if isinstance(value, AbstractResult):
        return jax.tree.map(_host, value)
    # a pullback, say: its results are returned the same way
    if isinstance(value, types.FunctionType):
        return double(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(handed_out, value))
    if type(value) in (tuple, list):
        return type(value)(map(handed_out, value))
    if type(value) is dict:
        return {key: handed_out(item) for key, item in value.items()}
    return value


def _host(leaf):
    if not isinstance(leaf, jax.Array) or isinstance(leaf, Tracer):
        return leaf
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) or not leaf.is_fully_addressable:
        return leaf
    return np.array(leaf)[()]  # a copy that may be written to; one number becomes a NumPy scalar


def _device(value):
    """An argument; a result of an earlier call is put back on the device: NumPy arrays know no
    `.at`.
    """
    if isinstance(value, AbstractResult):
        convert = lambda leaf: (
            jnp.asarray(leaf) if isinstance(leaf, np.ndarray | np.generic) else leaf
        )
        return jax.tree.map(convert, value)
    return value


def _double_member(member: Any) -> Any:
    if isinstance(member, types.FunctionType):
        return double(member)
    if isinstance(member, property) and member.fget is not None:
        return member if hasattr(member.fget, "__double__") else property(double(member.fget))
    if isinstance(member, classmethod | staticmethod):
        return type(member)(double(member.__func__))
    return member


def cast(tree, precision: Precision):
    """The same tree with every floating-point array in `precision`."""
    check_choice("precision", precision, ("float32", "float64"))
    dtype = jnp.dtype(precision)

    def convert(leaf):
        if eqx.is_inexact_array(leaf):
            return leaf.astype(dtype)
        return leaf

    return jax.tree.map(convert, tree)
