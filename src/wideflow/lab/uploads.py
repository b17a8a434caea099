"""CSV files that users brought: kept in a private folder under names that the server chose, for as
long as it runs.
"""

import pathlib
import re
import secrets
import shutil
import tempfile
from dataclasses import dataclass

from ..data.table_files import TableError
from ..data.tables import class_names, read_csv

PREFIX = "upload:"
LIMIT = 8 * 2**20  # bytes of one file (chosen)
MOST_FILES = 20  # of a lab (chosen); the oldest goes first


@dataclass(frozen=True)
class Upload:
    """A file that was read without fault.

    Attributes:
        code: "upload:..." as it stands in addresses. name: what the user calls it, never used as a
            path here.
    """

    code: str
    name: str
    path: pathlib.Path
    columns: tuple[str, ...]
    rows: int
    classes: tuple[str, ...] = ()  # names in the last column, where it holds some

    def facts(self) -> dict:
        """What the page knows of it: all but where it lies."""
        return {
            "code": self.code,
            "name": self.name,
            "columns": list(self.columns),
            "rows": self.rows,
            "classes": list(self.classes),
        }

    def named(self, sentence: str) -> str:
        """`sentence` with the user's name for the file where the server's stands."""
        return renamed(sentence, self.path, self.name)


class Uploads:
    """The files of one server.

    Args:
        plane: folder of a phase plane that the lab was opened on.
    """

    def __init__(self, plane: pathlib.Path | None = None):
        self.plane = plane
        self.folder = pathlib.Path(
            tempfile.mkdtemp(prefix="wideflow-lab-")
        )  # readable for the user alone
        self.tables: dict[str, Upload] = {}

    def add(self, content: bytes, name: str) -> Upload:
        """Checks that `content` is a table of numbers, and keeps it.

        Raises:
            ValueError: naming what is wrong with it, by the user's name for it.
        """
        if len(content) > LIMIT:
            raise ValueError(too_large(len(content)))
        key, own_name = secrets.token_hex(8), file_name(name)
        path = self.folder / f"{key}.csv"
        path.write_bytes(content)
        try:
            classes = read_classes(path)
            positive = classes[0] if len(classes) > 2 else True
            table = read_csv(path, constant="keep", name=own_name, classes=positive)
            if len(table) < 2:
                raise ValueError(f"{own_name} has only one row; training needs at least two.")
        except ValueError as error:
            path.unlink()
            reason = error.in_file if isinstance(error, TableError) else str(error)
            raise ValueError(renamed(reason, path, own_name)) from None
        header = read_header(path)
        upload = Upload(f"{PREFIX}{key}", own_name, path, header, len(table), classes)
        self.tables[upload.code] = upload
        while len(self.tables) > MOST_FILES:
            self.tables.pop(next(iter(self.tables))).path.unlink(missing_ok=True)
        return upload

    def path(self, code: str) -> pathlib.Path:
        return self._of(code).path

    def name(self, code: str) -> str:
        return self._of(code).name

    def _of(self, code: str) -> Upload:
        if code not in self.tables:
            raise ValueError("the uploaded file of this address no longer exists. Upload it again.")
        return self.tables[code]

    def end(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def renamed(sentence: str, path: pathlib.Path, name: str) -> str:
    for spelling in (str(path), path.name, path.stem):
        sentence = sentence.replace(spelling, name)
    return sentence


def too_large(size: int) -> str:
    return (
        f"The file has {size / 2**20:.1f} MB; at most {LIMIT // 2**20} MB are accepted. Use "
        "`wideflow run train --set data=FILE.csv` for larger ones."
    )


def file_name(name: str) -> str:
    """The last part of what the browser calls the file, in plain characters, ending in .csv."""
    last = re.split(r"[/\\]", name)[-1]
    plain = re.sub(r"[^\w.-]+", "_", last, flags=re.ASCII).strip("._")[:60] or "data"
    return plain if plain.endswith(".csv") else f"{plain}.csv"


def read_classes(path: pathlib.Path) -> tuple[str, ...]:
    """The names in the last column; none where it holds numbers."""
    from ..data.table_files import open_table

    return class_names(open_table(path, None, ",").iloc[:, -1])


def read_header(path: pathlib.Path) -> tuple[str, ...]:
    import pandas as pd

    return tuple(str(c).strip() for c in pd.read_csv(path, nrows=0, skipinitialspace=True).columns)
