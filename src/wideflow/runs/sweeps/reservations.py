"""Who is at work on which run: files with a heartbeat, so that clients on several machines share
one sweep.

A reservation is a file made exclusively. Its holder touches it every few seconds; one whose process
is gone (same machine) or whose heart has stopped (another machine) is free again. Should two ever
hold one run at the same time, nothing is lost: results are the same and files are whole or not
there.
"""

import contextlib
import json
import os
import pathlib
import socket
import threading
import time
import uuid
from collections.abc import Iterator

BEAT = 5.0  # seconds between two touches (chosen)
# seconds without one after which another machine's reservation is free (chosen): twelve touches,
# for file systems over a network show them late
STOPPED = 60.0


class Reservations:
    """The reservations of the runs in `folder`."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder / "reservations"

    @contextlib.contextmanager
    def take(self, address: str) -> Iterator[bool]:
        """Whether the run is ours inside the block; false where somebody else is at work on it."""
        path = self._path(address)
        if not self._taken(path):
            yield False
            return
        _heart.add(path)
        try:
            yield True
        finally:
            _heart.remove(path)
            with contextlib.suppress(OSError):
                path.unlink()

    def held(self, address: str) -> bool:
        """Whether somebody is at work on the run."""
        return _alive(self._path(address)) is not None

    def _path(self, address: str) -> pathlib.Path:
        return self.folder / address

    def _taken(self, path: pathlib.Path) -> bool:
        for _ in range(3):
            if _create(path):
                return True
            before = _content(path)
            if _alive(path) is not None:
                return False
            _remove_dead(path, before)
        return False


def _create(path: pathlib.Path) -> bool:
    holder = {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "born": _born(os.getpid()),
        "token": uuid.uuid4().hex,
    }
    whole = path.with_name(f".{path.name}.{holder['token']}")
    path.parent.mkdir(parents=True, exist_ok=True)
    whole.write_text(json.dumps(holder))
    try:
        os.link(whole, path)  # made with its content or not at all; fails where one exists
    except FileExistsError:
        return False
    finally:
        whole.unlink(missing_ok=True)
    return True


def _remove_dead(path: pathlib.Path, before: str | None) -> None:
    """Takes a dead reservation away; one that was renewed in the meantime is put back."""
    # Of two clients that find the same dead reservation only one can rename it. Whoever comes later
    # may rename a new one that the first has made meanwhile: its content tells, and it goes back.
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, aside)
        if _content(aside) != before:
            with contextlib.suppress(FileExistsError):
                os.link(aside, path)
        aside.unlink(missing_ok=True)


def _content(path: pathlib.Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


def _alive(path: pathlib.Path) -> dict | None:
    """The holder, or None where there is none or it has died."""
    text = _content(path)
    if text is None:
        return None
    try:
        holder = json.loads(text)
        if holder["host"] == socket.gethostname():
            return holder if _born(holder["pid"]) == holder["born"] is not None else None
    except (ValueError, KeyError, TypeError):
        holder = {}
    try:
        age = _now(path.parent) - path.stat().st_mtime
    except OSError:
        return None
    return holder if age < STOPPED else None


def _born(pid: int) -> str | None:
    """When the process began, which tells it from a later one of the same number; None where it is
    gone.
    """
    try:
        words = pathlib.Path(f"/proc/{int(pid)}/stat").read_text().rpartition(")")[2].split()
        # behind the name, in brackets: the state (a zombie is gone) and, 19 fields on, the start
        return None if words[0] == "Z" else words[19]
    except OSError:
        pass
    if os.path.isdir("/proc/self"):
        return None
    try:  # systems without /proc
        os.kill(int(pid), 0)
    except OSError:
        return None
    return "alive"


def _now(folder: pathlib.Path) -> float:
    """The time by the clock of the file system, which all its users share."""
    probe = folder / f".now-{uuid.uuid4().hex}"
    try:
        probe.touch()
        return probe.stat().st_mtime
    finally:
        probe.unlink(missing_ok=True)


class _Heart:
    """Touches what this process holds, from one thread that starts with the first reservation."""

    def __init__(self):
        self._paths: set[pathlib.Path] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, path: pathlib.Path) -> None:
        with self._lock:
            self._paths.add(path)
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, daemon=True, name="reservations")
                self._thread.start()

    def remove(self, path: pathlib.Path) -> None:
        with self._lock:
            self._paths.discard(path)

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT)
            with self._lock:
                paths = list(self._paths)
            for path in paths:
                with contextlib.suppress(OSError):
                    os.utime(path)


_heart = _Heart()
