"""Every public entry point computes in 64 bit, whatever JAX's global flag says.

JAX's flag belongs to the user: importing wideflow never flips it. Entry points open JAX's own local
context instead; inside it an array keeps the dtype it has, so float32 training is a matter of float32
arrays and not of another mode.
"""

import functools
from collections.abc import Callable
from typing import Literal, ParamSpec, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .errors import check_choice

P = ParamSpec("P")
R = TypeVar("R")

Precision = Literal["float32", "float64"]


def double(function: Callable[P, R]) -> Callable[P, R]:
    """Runs `function` with 64-bit types available; does nothing where they already are."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        if jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
            return function(*args, **kwargs)
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapper


def cast(tree, precision: Precision):
    """The same tree with every floating-point array in `precision`."""
    check_choice("precision", precision, ("float32", "float64"))
    dtype = jnp.dtype(precision)

    def convert(leaf):
        if eqx.is_inexact_array(leaf):
            return leaf.astype(dtype)
        return leaf

    return jax.tree.map(convert, tree)
