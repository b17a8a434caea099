"""Numbers and settings as strict JSON and back: NaN and the infinities travel as words."""

import json
import math
from typing import Any

import numpy as np

_WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def plain(value: Any, *, spelt: bool = True) -> Any:
    """`value` in dictionaries, lists, strings, whole numbers, finite floats, booleans and None.

    NaN and the infinities become `{"number": "nan"}` and the like, or None where `spelt` is false.
    """
    if isinstance(value, dict):
        return {str(name): plain(part, spelt=spelt) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part, spelt=spelt) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), spelt=spelt)
    if isinstance(value, float) and not math.isfinite(value):
        word = "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
        return {"number": word} if spelt else None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def encode(value: Any, *, ordered: bool = True) -> str:
    """Strict JSON; with names in alphabetical order, so that equal values give equal texts, or as
    they come.
    """
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, sort_keys=ordered)


def decode(text: str) -> Any:
    return json.loads(text, object_hook=_number)


def _number(value: dict) -> Any:
    if value.keys() == {"number"} and value["number"] in _WORDS:
        return _WORDS[value["number"]]
    return value
