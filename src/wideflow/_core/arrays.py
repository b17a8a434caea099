"""Arrays of numbers from whatever a user passed, checked once at the public entry points.

Values that JAX is tracing are taken as they are: their shapes are checked, their numbers are not
there yet.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .host import all_finite, on_device

ASYMMETRY = 1e-8  # relative to the largest entry: far above rounding, far below any real asymmetry


def real_array(name: str, value, *shapes: str, finite: bool = True, empty: bool = False):
    """`value` as a JAX array of real numbers, checked like `real_values`; for functions that are
    `double`.
    """
    return on_device(real_values(name, value, *shapes, finite=finite, empty=empty))


def real_values(name: str, value, *shapes: str, finite: bool = True, empty: bool = False):
    """`value` as an array of real numbers in its own dtype: NumPy's, or the array of JAX that was
    given.

    Args:
        name: the argument, for the sentence.
        shapes: the admitted shapes as text, `"(sample, feature)"`; names stand for any length,
            numbers for themselves. None given admits all.
        finite: refuse NaN and infinity.
        empty: admit arrays without entries.
    """
    array = _numbers(name, value)
    if shapes and not any(_fits(array.shape, shape) for shape in shapes):
        raise ValueError(
            f"`{name}` must have shape {' or '.join(shapes)}, got "
            f"{array.shape}.{_reshape(array, shapes)}"
        )
    if array.size == 0 and not empty:
        raise ValueError(f"`{name}` must not be empty, got shape {array.shape}.")
    if finite:
        check_finite(name, array)
    return array


def check_finite(name: str, array) -> None:
    """Refuses NaN and infinity, and says where the first one stands."""
    if isinstance(array, Tracer) or not jnp.issubdtype(array.dtype, jnp.inexact):
        return
    if all_finite(array):
        return
    bad = ~np.isfinite(np.asarray(array))
    first = tuple(int(i) for i in np.argwhere(bad)[0])
    where = f" at index {first} ({int(bad.sum())} bad values in all)" if first else ""
    raise ValueError(
        f"`{name}` must be finite, got {np.asarray(array)[first]}{where}. Drop or fill those "
        "values."
    )


def square_matrix(name: str, value, *, symmetric: bool = True):
    """A finite square matrix; `symmetric` also asks for symmetry up to rounding."""
    matrix = real_array(name, value)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"`{name}` must be a square matrix, got shape {matrix.shape}.")
    if symmetric and not isinstance(matrix, Tracer):
        host = np.asarray(matrix, np.float64)
        gap, size = np.abs(host - host.T).max(), np.abs(host).max()
        if gap > ASYMMETRY * size:
            raise ValueError(
                f"`{name}` must be symmetric, but it differs from its transpose by up to "
                f"{gap:.3g}. "
                f"Its symmetric part is `({name} + {name}.T) / 2`."
            )
    return matrix


def gram_matrix(name: str, value):
    r"""A symmetric matrix with $G_{ab}^2 \le G_{aa} G_{bb}$ up to rounding, as inner products
    have.
    """
    matrix = square_matrix(name, value)
    if isinstance(matrix, Tracer):
        return matrix
    host = np.asarray(matrix, np.float64)
    squares = np.diag(host)
    excess = host**2 - np.outer(squares, squares)
    if squares.min() < 0 or excess.max() > ASYMMETRY * max(squares.max() ** 2, 1e-300):
        a, b = np.unravel_index(np.argmax(excess), host.shape)
        raise ValueError(
            f"`{name}` must be a Gram matrix, but its entry ({a}, {b}) = {host[a, b]:.6g} "
            "exceeds what the diagonal "
            f"({squares[a]:.6g}, {squares[b]:.6g}) allows. Build it from inputs, as `inputs @ "
            "inputs.T`."
        )
    return matrix


def index_list(name: str, value, size: int, *, what: str = "rows") -> np.ndarray:
    """Whole numbers below `size`, one or many; negative ones count from the end as in NumPy. A mask
    of `size` flags selects.
    """
    indices = np.asarray(real_values(name, value, empty=True))
    if indices.dtype == bool and indices.shape == (size,):
        indices = np.flatnonzero(indices)
    if indices.size == 0 or not np.issubdtype(indices.dtype, np.integer):
        raise ValueError(
            f"`{name}` must hold whole numbers that choose among the {size} {what}, got {value!r}."
        )
    if indices.min() < -size or indices.max() >= size:
        raise ValueError(
            f"`{name}` must lie in 0..{size - 1}, one of the {size} {what}, "
            f"got {indices.min()}..{indices.max()}."
        )
    return indices


def increasing(name: str, value, *, strictly: bool = True) -> np.ndarray:
    """A finite list that grows."""
    values = np.asarray(real_values(name, value, "(time,)"), np.float64)
    steps = np.diff(values)
    if np.any(steps <= 0 if strictly else steps < 0):
        raise ValueError(f"`{name}` must increase, got {_start(values)}. Sort it.")
    return values


def paired(name: str, value, other: str, length: int) -> np.ndarray:
    """A finite list of the length of the argument called `other`."""
    values = np.asarray(real_values(name, value), np.float64)
    if values.ndim == 0 or values.shape[0] != length:
        raise ValueError(
            f"`{name}` must have one entry for each of the {length} of `{other}`, got shape "
            f"{values.shape}."
        )
    return values


def _numbers(name: str, value):
    if isinstance(value, jax.Array):
        array = value
    else:
        if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
            raise ValueError(
                f"`{name}` must hold real numbers, got a masked array with "
                f"{int(np.ma.count_masked(value))} entries hidden. Drop them or fill them."
            )
        try:
            array = np.asarray(value)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"`{name}` must be an array of numbers, but its rows have different lengths."
            ) from error
        except RuntimeError as error:  # a tensor of PyTorch that asks for its gradient
            raise ValueError(
                f"`{name}` must be an array of numbers, but NumPy cannot read it: {error}"
            ) from error
        if array.dtype == object:
            array = _converted(name, array, value)
    real = jnp.issubdtype(array.dtype, jnp.number) and not jnp.issubdtype(
        array.dtype, jnp.complexfloating
    )
    if not (real or array.dtype == bool):
        raise ValueError(f"`{name}` must hold real numbers, got {_what(array, value)}.")
    return array


def _converted(name: str, array: np.ndarray, value) -> np.ndarray | jax.Array:
    """Python objects that are numbers (traced scalars in a list, fractions) as an array; everything
    else is refused.
    """
    leaves = list(array.flat)
    if any(isinstance(leaf, jax.Array) for leaf in leaves):
        return jnp.asarray(value)
    try:
        if any(leaf is None or isinstance(leaf, str) for leaf in leaves):
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"`{name}` must hold real numbers, got {_what(array, value)}.") from None


def _what(array, value) -> str:
    if array.ndim == 0:
        text = repr(value)
        return text if len(text) <= 80 else f"{text[:77]}..."
    return f"an array of {array.dtype}"


def _fits(shape: tuple[int, ...], pattern: str) -> bool:
    axes = [axis.strip() for axis in pattern.strip("()").split(",") if axis.strip()]
    return len(shape) == len(axes) and all(
        not axis.lstrip("-").isdigit() or int(axis) == length
        for length, axis in zip(shape, axes, strict=True)
    )


def _reshape(array, shapes: Sequence[str]) -> str:
    """The way out where a lone axis is missing."""
    if array.ndim == 1 and all(shape.count(",") == 1 and shape[-2] != "," for shape in shapes):
        return " For one row use `[None, :]`, for one column `[:, None]`."
    return ""


def _start(values) -> str:
    head = ", ".join(f"{v:g}" for v in values[:4])
    return f"[{head}{', ...' if len(values) > 4 else ''}]"
