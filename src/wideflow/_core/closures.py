"""Functions as text: what tells two functions apart that were made by the same code with other numbers."""

import hashlib
import types

import numpy as np


def function_text(thing) -> str:
    """A text that is the same in every process and changes with a function's code, constants and enclosed values.

    >>> scale = lambda k: lambda x: k * x
    >>> function_text(scale(2)) == function_text(scale(2)), function_text(scale(2)) == function_text(scale(3))
    (True, False)
    """
    return hashlib.sha256(_text(thing, frozenset()).encode()).hexdigest()[:32]


def _text(thing, above: frozenset[int]) -> str:
    """Recursion over code, closures, partial applications and containers; `above` guards against functions that hold themselves."""
    if id(thing) in above:
        return "..."
    above = above | {id(thing)}
    inside = lambda parts: ", ".join(_text(part, above) for part in parts)
    if isinstance(thing, types.CodeType):
        return f"code({thing.co_code.hex()}, {thing.co_names}, {inside(thing.co_consts)})"
    if isinstance(thing, types.FunctionType):
        cells = [_cell(cell) for cell in thing.__closure__ or ()]
        parts = (thing.__code__, thing.__defaults__, thing.__kwdefaults__, *cells)
        return f"{thing.__module__}.{thing.__qualname__}({inside(parts)})"
    if isinstance(thing, types.MethodType):
        return f"method({inside((thing.__func__, thing.__self__))})"
    if hasattr(thing, "func") and hasattr(thing, "keywords"):  # functools.partial
        return f"partial({inside((thing.func, thing.args, thing.keywords))})"
    if isinstance(thing, dict):
        return f"{{{inside(sorted(thing.items(), key=repr))}}}"
    if isinstance(thing, tuple | list):
        return f"({inside(thing)})"
    if hasattr(thing, "dtype") and hasattr(thing, "shape"):
        return _array_text(thing)
    if thing is None or isinstance(thing, str | bytes | int | float | complex | bool):
        return repr(thing)
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _cell(cell):
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _array_text(array) -> str:
    try:
        values = np.asarray(array)
    except Exception:  # a traced or otherwise unreadable array: its type is all there is to say
        return f"array({array.dtype}, {array.shape})"
    digest = hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16]
    return f"array({values.dtype}, {values.shape}, {digest})"
