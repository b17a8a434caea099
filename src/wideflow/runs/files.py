"""Files that are either whole or not there: written under another name, flushed, renamed."""

import contextlib
import os
import pathlib


def write_whole(path: pathlib.Path, payload: bytes, *, durable: bool = True) -> None:
    """Puts `payload` at `path` so that no reader and no kill ever sees a part of it.

    Where it is `durable` no power cut does either; else the system brings it to the disk in its own
    time, within about half a minute.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # The number of the process keeps two writers of one path apart; the dot hides the file from
    # whoever lists records. It lies in the same folder, because only within one file system is a
    # rename atomic.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(payload)
            file.flush()
            # The content must be on the disk before the name is: a file system may write the rename
            # first, and a power cut would leave the name with an empty file.
            if durable:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        _sync(path.parent)  # the rename is a change of the folder, and waits there for the disk


def check_writable(folder: pathlib.Path) -> None:
    """Raises `OSError` now, not after hours of work, where nothing can be written."""
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / f".wideflow-{os.getpid()}.tmp"
    try:
        probe.write_bytes(b"wideflow")
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()


def _sync(path: pathlib.Path) -> None:
    """On systems where a folder can be opened a folder too, which holds the names."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
