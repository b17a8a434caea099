"""Files that are either whole or not there: written under another name, flushed, renamed."""

import contextlib
import os
import pathlib


def write_whole(path: pathlib.Path, payload: bytes) -> None:
    """Puts `payload` at `path` so that no reader, and no kill or power cut, ever sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(payload)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(path.parent)


def check_writable(folder: pathlib.Path) -> None:
    """Raises `OSError` now, not after hours of work, where nothing can be written."""
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / f".wideflow-{os.getpid()}.tmp"
    try:
        probe.write_bytes(b"wideflow")
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()


def _sync_folder(folder: pathlib.Path) -> None:
    """Makes the new name durable too, on systems where a folder can be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
