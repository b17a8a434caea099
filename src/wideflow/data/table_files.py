"""A CSV file as a table of text and numbers, or one sentence on why it is not one: encoding,
compression, separator, header.
"""

import lzma
import pathlib
import warnings
import zipfile
import zlib

import numpy as np
import pandas as pd

from .._core.errors import did_you_mean

__all__ = ["TableError", "open_table"]

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}


class TableError(ValueError):
    """A defect with its way out; `in_file` is the sentence for those who cannot give `read_csv` an
    argument.
    """

    def __init__(self, fault: str, way_out: str, by_file: str | None = None):
        super().__init__(f"{fault} {way_out}")
        self.in_file = f"{fault} {by_file or way_out}"


def open_table(path: pathlib.Path, rows: int | None, separator: str) -> pd.DataFrame:
    """The first `rows` rows (None: all) under their header; columns are stripped text, each name
    once.

    Args:
        path: the file, plain or compressed.
        rows: how many rows to read.
        separator: the one character between the values of a line.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name the CSV file in it.")
    if not path.is_file():
        near = sorted(p.name for p in path.parent.glob("*.csv*")) if path.parent.is_dir() else []
        raise ValueError(f"there is no file {path}.{did_you_mean(path.name, near)}")
    if len(separator) != 1:
        raise ValueError(f"`separator` must be one character, got {separator!r}.")
    names = _header(path, separator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.ParserWarning)
        table = _parsed(path, rows, separator, header=0)
    # refuses what was just cut off: rows longer than the header
    _parsed(path, 2, separator, header=None)
    table.columns = names
    if len(table) == 0:
        raise ValueError(f"{path.name} has a header but no rows.")
    return table


def _header(path: pathlib.Path, separator: str) -> list[str]:
    first = _parsed(path, 1, separator, header=None)
    names = ["" if pd.isna(c) else str(c).strip() for c in first.iloc[0]] if len(first) else []
    if not any(names):
        raise ValueError(
            f"{path.name} is empty: it needs a line with the names of the columns, then rows."
        )
    if len(names) == 1:
        other = max(SEPARATORS, key=names[0].count)
        if names[0].count(other):
            raise TableError(
                f"{path.name} has one column, {names[0]!r}: it seems to be separated by "
                f"{SEPARATORS[other]}, not by {separator!r}.",
                f"Say so with `separator={other!r}` (`--separator`).",
                "Save it with commas between the columns.",
            )
    if all(_is_number(name) for name in names):
        raise ValueError(
            f"{path.name} seems to have no header: its first line is all numbers. "
            "Add a line with the names of the columns."
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"{path.name} names a column twice: {', '.join(map(repr, twice))}. Give every column "
            "its own name."
        )
    return names


def _parsed(path: pathlib.Path, rows: int | None, separator: str, header) -> pd.DataFrame:
    try:
        return pd.read_csv(
            path,
            nrows=rows,
            sep=separator,
            skipinitialspace=separator != " ",
            low_memory=False,
            header=header,
            index_col=False,
        )
    except pd.errors.EmptyDataError as error:
        raise ValueError(
            f"{path.name} cannot be read as CSV: it is empty. It needs a line with the names of "
            "the columns, then rows."
        ) from error
    except UnicodeError as error:
        raise ValueError(
            f"{path.name} is not UTF-8 text ({error}). Save it as UTF-8, for instance with "
            "`iconv -f latin1 -t utf-8`."
        ) from error
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, OSError) as error:
        raise ValueError(
            f"{path.name} cannot be unpacked or read: {str(error).rstrip('.')}. Is it complete, "
            "and compressed as its name says?"
        ) from error
    except (pd.errors.ParserError, ValueError) as error:
        # without pandas' own prefix
        reason = str(error).replace("Error tokenizing data. C error: ", "").strip().rstrip(".")
        raise ValueError(
            f"{path.name} cannot be read as CSV: {reason}. Every line needs as many values as "
            "the header has names (decimal commas count as separators)."
        ) from error


def check_index(path: pathlib.Path, table: pd.DataFrame) -> None:
    """Refuses a nameless first column that counts the rows, as tables saved with their index have
    it.
    """
    if "" not in table.columns:
        return
    values = table[""].to_numpy()
    counts = (np.arange(k, k + len(values)) for k in (0, 1))
    if values.dtype.kind in "iu" and any(np.array_equal(values, count) for count in counts):
        raise ValueError(
            f"{path.name} has a column without a name that counts the rows: it looks like an "
            "index that was saved along. "
            "Leave it out with `drop=('',)` (`--drop ''`), or give it a name if it is an input."
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
