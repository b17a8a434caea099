"""Checkpoints on disk: a run killed at any moment resumes from the last, with the same numbers."""

import functools
import hashlib
import io
import pathlib
import time
import zipfile

import numpy as np

from ..training.checkpoint import AbstractCheckpointer, Arrays
from .files import write_whole
from .provenance import versions


class FileCheckpointer(AbstractCheckpointer):
    """One npz file per computation in `folder`, named by its fingerprint and by what computes it
    (sources and versions); never pickled.

    Args:
        folder: made when the first checkpoint is written.
        every: seconds that must pass between two checkpoints that are not forced.
        patience: seconds from the start in which nothing is kept: so little work is sooner done
            again.
    """

    def __init__(self, folder: pathlib.Path, every: float = 10.0, patience: float = 0.0):
        self.folder, self.every, self.patience = folder, every, patience
        self._began = self._last = time.monotonic()

    def begun(self) -> bool:
        return self.folder.is_dir()

    def due(self, *, force: bool = False) -> bool:
        now = time.monotonic()
        return now - self._began >= self.patience and (force or now - self._last >= self.every)

    def load(self, fingerprint: str) -> Arrays | None:
        """The checkpoint, or None where there is none or it is damaged: then the computation starts
        anew.
        """
        try:
            with np.load(self._path(fingerprint), allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
        except FileNotFoundError:
            return None
        except (ValueError, EOFError, KeyError, OSError, zipfile.BadZipFile):
            return None

    def save(self, fingerprint: str, arrays: Arrays, *, force: bool = False) -> None:
        if not self.due(force=force):
            return
        buffer = io.BytesIO()  # whole in memory first: `write_whole` writes it at once and renames
        np.savez(buffer, allow_pickle=False, **arrays)
        write_whole(self._path(fingerprint), buffer.getvalue())
        self._last = time.monotonic()

    def _path(self, fingerprint: str) -> pathlib.Path:
        return self.folder / f"{fingerprint}-{_code()}.npz"


@functools.cache
def _code() -> str:
    """A run goes on only with the code that began it: else its record would name the wrong one."""
    return hashlib.sha256(repr(sorted(versions().items())).encode()).hexdigest()[:12]
