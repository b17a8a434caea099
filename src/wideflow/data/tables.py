"""CSV files as datasets, with every defect named: where it is and what to do about it."""

import os
import pathlib
import re

import numpy as np
import pandas as pd

from .._core.counted import counted
from .._core.errors import check_choice, check_count, check_kind, check_list, did_you_mean
from .dataset import Dataset
from .table_files import TableError, check_index, open_table

__all__ = ["read_csv"]

SHOWN = 5  # offending rows or columns named in an error
MOST_CLASSES = 20  # more different names than this are no classes


def read_csv(
    path,
    target: str | int | None = None,
    *,
    drop: tuple[str, ...] = (),
    constant: str = "error",
    rows: int | None = None,
    name: str | None = None,
    separator: str = ",",
    classes: bool | str = False,
) -> Dataset:
    """A dataset from a CSV file (plain or compressed) with a header line.

    Args:
        path: the file.
        target: name or position of the target column; default the last one.
        drop: columns to leave out, for instance a second target.
        constant: what to do with columns that never vary: "error", "drop" or "keep".
        rows: read only this many rows (the first ones).
        separator: what stands between the values of a line.
        name: the dataset's name; the file's own if None.
        classes: True: a target column that holds two names and no number becomes -1 and 1, in
            alphabetical order. One of its names: that class becomes 1 and all others -1, however
            many there are.

    Raises:
        ValueError: naming the file, the line or column, the value, and the way out.
    """
    check_kind("path", path, (str, os.PathLike), "the path of a CSV file")
    check_choice("constant", constant, ("error", "drop", "keep"))
    check_kind("separator", separator, str, "one character")
    if rows is not None:
        check_count("rows", rows)
    if isinstance(target, bool):
        raise ValueError(f"`target` must be a name or a position, got {target}.")
    dropped = (drop,) if isinstance(drop, str) else drop
    check_list("drop", dropped, "names of columns")
    path = pathlib.Path(path)
    table = open_table(path, rows, separator)
    column = _target(path, table, target)
    if column in dropped:
        raise ValueError(
            f"`drop` must not name the target, got {column!r} for both. Name another `target`."
        )
    unknown = [str(c) for c in dropped if c not in table.columns]
    if unknown:
        raise ValueError(
            f"`drop` names columns that {path.name} does not have: {', '.join(unknown)}."
        )
    table = table.drop(columns=list(dropped))
    check_index(path, table)
    table = _coded(path, table, column, classes) if classes else table
    numbers = pd.DataFrame(table.apply(pd.to_numeric, errors="coerce").astype(float))
    _check_numeric(path, table, numbers)
    features = [c for c in numbers.columns if c != column]
    if not features:
        raise ValueError(
            f"{path.name} has no column left for the inputs beside the target {column!r}."
        )
    still = [c for c in features if len(numbers[c].unique()) <= 1]
    if still and constant == "error":
        raise ValueError(
            f"{path.name} has columns that never vary: {_some(still)}. "
            "They carry no information; drop them (`constant='drop'`) or keep them "
            "(`constant='keep'`)."
        )
    if still and constant == "drop":
        features = [c for c in features if c not in still]
        if not features:
            raise ValueError(f"every input column of {path.name} is constant.")
    return Dataset(
        numbers[features].to_numpy(), numbers[column].to_numpy(), name or path.stem, tuple(features)
    )


def _target(path: pathlib.Path, table: pd.DataFrame, target: str | int | None) -> str:
    columns = list(table.columns)
    if target is None:
        return columns[-1]
    if isinstance(target, str) and target in columns:
        return target
    if isinstance(target, int) or (isinstance(target, str) and target.lstrip("-").isdigit()):
        position = int(target)
        if -len(columns) <= position < len(columns):
            return columns[position]
        raise ValueError(
            f"`target` {position} is out of range: {path.name} has {len(columns)} columns."
        )
    raise ValueError(
        f"`target` {target!r} is not a column of {path.name}.{did_you_mean(target, columns)} "
        f"Columns: {', '.join(columns)}."
    )


def class_names(values: pd.Series) -> tuple[str, ...]:
    """The names in a column that holds names and no number, in alphabetical order; none for any
    other column, or for more than `MOST_CLASSES`.
    """
    numbers = pd.Series(pd.to_numeric(values, errors="coerce"))
    named = numbers.isna() & values.notna()
    names = tuple(sorted(map(str, values.dropna().unique())))
    return names if named.to_numpy().all() and 2 <= len(names) <= MOST_CLASSES else ()


def _coded(
    path: pathlib.Path, table: pd.DataFrame, column: str, positive: bool | str
) -> pd.DataFrame:
    """Names in `column` as -1 and 1; a column of numbers stays as it is."""
    values = pd.Series(table[column])
    names = class_names(values)
    if isinstance(positive, str):
        if positive not in names:
            raise ValueError(
                f"`classes` {positive!r} is no name in column {column!r} of "
                f"{path.name}.{did_you_mean(positive, names)} "
                f"{f'It holds {_some(list(names))}.' if names else 'It holds no names of classes.'}"
            )
        return table.assign(**{column: np.where(values.astype(str) == positive, 1.0, -1.0)})
    if len(names) > 2:
        fault = f"{path.name} has {len(names)} classes in column {column!r}: {_some(list(names))}."
        raise TableError(
            fault,
            f"Name the class to distinguish from all others (`classes={names[0]!r}`, or `--set "
            f"positive={names[0]}`).",
            "Choose the class to distinguish from all others.",
        )
    codes = dict(zip(names, (-1.0, 1.0), strict=False))
    return table.assign(**{column: [codes[str(value)] for value in values]}) if names else table


def _check_numeric(path: pathlib.Path, table: pd.DataFrame, numbers: pd.DataFrame) -> None:
    text = numbers.isna() & table.notna()
    if text.to_numpy().any():
        bad, row = _first(text)
        value = str(table[bad[0]].iloc[row])
        fault = (
            f"{path.name} has text where numbers are needed, in column {_some(bad)}: for instance "
            f"{value!r} in line {row + 2}."
        )
        raise TableError(fault, *_advice(value))
    missing = table.isna()
    if missing.to_numpy().any():
        bad, row = _first(missing)
        raise ValueError(
            f"{path.name} has {counted(int(missing.to_numpy().sum()), 'missing value')}, in column "
            f"{_some(bad)}; the first is in line {row + 2}. Fill them or drop those rows."
        )
    infinite = pd.DataFrame(~np.isfinite(numbers))
    if infinite.to_numpy().any():
        bad, row = _first(infinite)
        raise ValueError(
            f"{path.name} has values that are infinite or too large for a number, in column "
            f"{_some(bad)}; the first is in line {row + 2}. "
            "Correct them or drop those rows."
        )


def _first(wrong: pd.DataFrame) -> tuple[list[str], int]:
    """The columns with something wrong, and the first row where the first of them has it."""
    bad = [c for c in wrong.columns if wrong[c].to_numpy().any()]
    return bad, int(np.argmax(wrong[bad[0]].to_numpy()))


def _advice(text: str) -> tuple[str, ...]:
    """What to do about a value that is no number; where that takes an argument of `read_csv`, also
    what to do with the file alone.
    """
    if re.fullmatch(r"[-+]?[\d.]*,[\d,]+", text.strip()):
        return ("Write numbers with a decimal point and without commas between thousands.",)
    if re.fullmatch(r"[-+]?[\d.]+\s*%", text.strip()):
        return ("Write numbers without the per cent sign.",)
    if text.strip() in ("?", "-", "--", ".", "*"):
        return ("It seems to stand for a missing value: fill it or drop that row.",)
    encode = "Encode those columns as numbers or"
    return f"{encode} leave them out (`drop`, `--drop`).", f"{encode} take them out of the file."


def _some(names: list[str]) -> str:
    shown = ", ".join(repr(n) for n in names[:SHOWN])
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
