"""The arguments of theorems, checked by what they are called: one concept has one name everywhere.

A theorem called with nonsense (a negative deviation, a list of NaN, two lists of different lengths)
would answer with nonsense, and a verdict reads like knowledge. So every call is checked before the
theorem sees it. What is annotated with a class must be of that class, whole numbers must be counts,
numbers must be finite, lists must hold finite numbers, and lists that belong together must agree in
length. An argument that is left at its default is not looked at.
"""

import functools
import inspect
import types
import typing
from collections.abc import Callable

import numpy as np
import xarray as xr

from .._core.arrays import real_values
from .._core.errors import (
    as_key,
    check_between,
    check_count,
    check_flag,
    check_interval,
    check_kind,
    check_nonnegative,
    check_number,
    check_positive,
    check_probability,
)
from .._core.renamed import under_new_names
from ..data.dataset import Dataset

POSITIVE = frozenset(
    [
        "alpha",
        "rate",
        "epsilon",
        "share",
        "constant",
        "deviation",
        "bound",
        "radius",
        "first_radius",
        "second_radius",
        "scale",
        "output_std",
        "lipschitz",
        "baseline",
        "step",
        "distance",
        "power",
    ]
)
NOT_NEGATIVE = frozenset(
    [
        "tolerance",
        "spread",
        "error",
        "floor",
        "slack",
        "first_loss",
        "last_loss",
        "first_penalty",
        "second_penalty",
        "errors",
    ]
)
OLD_NAMES = {"delta": "failure_probability", "probability": "failure_probability"}
CHANCES = frozenset(("delta", "probability", "failure_probability"))
SHARES = frozenset(("quality", "persistence", "threshold"))
FROM_ZERO = frozenset(("degree", "functions", "seed", "order"))  # whole numbers that may be 0
NUMBERS = (bool, int, float)  # whose values are looked at, and not their class alone
MAY_BE_INFINITE = frozenset(("time", "until", "stop", "end", "cap", "horizon", "norm"))
ARRAYS = frozenset(
    [
        "inputs",
        "targets",
        "coefficients",
        "weights",
        "biases",
        "sums",
        "errors",
        "rates",
        "widths",
        "losses",
        "times",
        "second",
        "second_moments",
        "zeroth",
        "dimensions",
        "representatives",
        "points",
        "node_weights",
        "initial",
        "final",
        "xi",
        "particle",
        "mean_squares",
        "counts",
        "directions",
        "preactivations",
        "gradient",
        "hessian",
        "alpha",
        "w",
        "b",
        "error",
        "step",
        "first",
        "left",
        "limit",
        "proxies",
        "diagonal",
        "first_star",
        "second_star",
        "first_move",
        "second_move",
        "diagonal",
        "truth",
    ]
)
TOGETHER = (
    ("inputs", "targets"),
    ("weights", "biases"),
    ("rates", "errors"),
    ("widths", "losses"),
    ("times", "losses"),
    ("times", "weights"),
    ("times", "second"),
    ("times", "zeroth"),
    ("dimensions", "times"),
    ("initial", "final"),
)


def checked(call: Callable) -> Callable:
    """A theorem's `__call__`, or a function behind one, with its arguments checked first."""
    signature = inspect.signature(call)
    parameters = [p for p in signature.parameters.values() if p.name != "self"]

    @functools.wraps(call)
    def wrapper(*args, **kwargs):
        if "failure_probability" in signature.parameters:
            kwargs = under_new_names(kwargs, OLD_NAMES)
        bound = signature.bind(*args, **kwargs)
        arguments = bound.arguments
        for parameter in parameters:
            if parameter.name in arguments and arguments[parameter.name] is not parameter.default:
                arguments[parameter.name] = _one(parameter, arguments[parameter.name])
        for first, second in TOGETHER:
            _together(first, arguments.get(first), second, arguments.get(second))
        try:
            return call(*bound.args, **bound.kwargs)
        except (TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
            if "`" in str(error) or any(map(callable, arguments.values())):
                raise  # a sentence already, or the error of a function that was given
            shown = ", ".join(f"`{name}` {_shown(value)}" for name, value in arguments.items())
            raise ValueError(
                f"the arguments do not fit the statement or each other, got {shown}: {error}."
            ) from error

    return wrapper


def _shown(value) -> str:
    if isinstance(value, bool | int | float | str | None):
        return f"= {value!r}"
    shape = getattr(value, "shape", None)
    if shape is None and isinstance(value, list | tuple):
        shape = np.shape(value)
    return f"a {type(value).__name__}" if shape is None else f"of shape {tuple(shape)}"


def _one(parameter: inspect.Parameter, value):
    name, kinds = parameter.name, _kinds(parameter.annotation)
    if name == "key":
        return as_key(value)
    classes = [kind for kind in kinds if isinstance(kind, type) and kind not in NUMBERS]
    if any(isinstance(value, kind) for kind in classes):
        return value
    if name == "data" and not kinds:
        check_kind("data", value, Dataset, "a `Dataset`")
    if name == "table" and not kinds:
        check_kind("table", value, xr.Dataset, "the table of a run", "Take `run.table`.")
    if name == "interval":
        check_interval(value)
    classes = bool(kinds) and all(isinstance(kind, type) for kind in kinds)
    if name in ARRAYS and not classes:
        real_values(name, value)
    elif bool in kinds:
        check_flag(name, value)
    elif float in kinds:
        _check_real(name, value)
    elif int in kinds:
        check_count(name, value, least=0 if name in FROM_ZERO else 1)
    elif kinds and all(isinstance(kind, type) for kind in kinds):
        check_kind(name, value, kinds, " or ".join(f"a `{kind.__name__}`" for kind in kinds))
    return value


def _kinds(annotation) -> tuple:
    """The classes that an annotation admits; nothing where there is none or it says more than
    classes can.
    """
    if annotation in (inspect.Parameter.empty, typing.Any):
        return ()
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return typing.get_args(annotation)
    return (annotation,)


def _check_real(name: str, value) -> None:
    if name in CHANCES:
        check_probability(name, value)
    elif name in SHARES:
        check_between(name, value, 0, 1)
    elif name == "x1":
        check_between(name, value, -1, 1)
    elif name in POSITIVE:
        check_positive(name, value)
    elif name == "loss":  # measured: a diverged run has NaN, which violates what bounds it
        missing = isinstance(value, float) and np.isnan(value)
        check_between(name, 0.0 if missing else value, 0, np.inf)
    elif name in NOT_NEGATIVE:
        check_nonnegative(name, value)
    elif name in MAY_BE_INFINITE:
        check_between(name, value, -np.inf, np.inf)
    else:
        check_number(name, value)


def _together(first: str, one, second: str, other) -> None:
    if one is None or other is None or not (np.ndim(one) and np.ndim(other)):
        return
    if len(one) != len(other):
        raise ValueError(
            f"`{first}` and `{second}` must have the same number of entries, got {len(one)} and "
            f"{len(other)}."
        )
