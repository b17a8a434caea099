"""A folder of runs, each found by a hash of the request: the same request again reads the file."""

import contextlib
import hashlib
import pathlib
import shutil
from collections.abc import Mapping
from typing import Any

from .checkpoints import FileCheckpointer
from .files import check_writable
from .json_encoding import encode
from .records import FORMAT, Damage, DamagedRecordError, Record, read_record, write_record


def address(experiment: str, settings: Mapping[str, Any], seed: int) -> str:
    """The hash of a run: its name, every setting (precision is one of them), its seed, the record
    format.
    """
    text = encode(
        {"experiment": experiment, "settings": dict(settings), "seed": seed, "format": FORMAT}
    )
    # 48 bits: of a million runs in one folder two share an address with a probability of 0.2 %
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Store:
    """The runs kept in `folder`, one netCDF file each, figures beside them, checkpoints below.

    Args:
        folder: made when something is saved.
        checkpoint_every: seconds between two checkpoints of a run.
        small: expect many small runs: records are netCDF 3, and the first seconds of a run leave no
            checkpoint.
    """

    def __init__(
        self, folder: str | pathlib.Path, checkpoint_every: float = 10.0, *, small: bool = False
    ):
        self.folder, self.checkpoint_every, self.small = (
            pathlib.Path(folder),
            checkpoint_every,
            small,
        )

    def check_writable(self) -> None:
        """Raises `OSError` where the folder cannot be made or written to."""
        check_writable(self.folder)

    def find(self, address: str) -> Record | None:
        """The run of that address, or None; a damaged file counts as none and will be replaced."""
        for path in self._paths(f"*-{address}.nc"):
            try:
                return read_record(path)
            except DamagedRecordError:
                continue
        return None

    def save(self, record: Record) -> Record:
        """Keeps the run and drops its checkpoints."""
        saved = write_record(record, self.folder / f"{record.stem}.nc", small=self.small)
        self.forget(record.address)
        return saved

    def records(self) -> tuple[list[Record], list[Damage]]:
        """All runs, oldest first, and every file that is not a run."""
        records, damaged = [], []
        for path in self._paths("*.nc"):
            try:
                records.append(read_record(path))
            except (DamagedRecordError, OSError) as error:
                damaged.append(Damage(path, str(error)))
        return sorted(records, key=lambda record: record.started), damaged

    def checkpointer(self, address: str) -> FileCheckpointer:
        """Where a run of that address keeps its checkpoints."""
        patience = 2.0 if self.small else 0.0  # seconds (chosen): a small run is sooner done again
        return FileCheckpointer(self._checkpoints(address), self.checkpoint_every, patience)

    def forget(self, address: str) -> None:
        """Drops a run's checkpoints, so that it starts from nothing."""
        folder = self._checkpoints(address)
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # other runs may still have theirs
            folder.parent.rmdir()

    def unfinished(self) -> list[pathlib.Path]:
        """The checkpoint folders of runs that have not been finished."""
        base = self.folder / "checkpoints"
        return sorted(path for path in base.glob("*") if any(path.glob("*.npz")))

    def _checkpoints(self, address: str) -> pathlib.Path:
        return self.folder / "checkpoints" / address

    def _paths(self, pattern: str) -> list[pathlib.Path]:
        return sorted(path for path in self.folder.glob(pattern) if not path.name.startswith("."))
