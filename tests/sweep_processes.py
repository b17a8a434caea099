"""Sweeps as processes of their own, for the tests that kill them."""

import contextlib
import pathlib
import socket
import subprocess
import sys
import time

import psutil
import xarray as xr


def numbers(table: xr.Dataset) -> xr.Dataset:
    return table.drop_vars("run_seconds")


def client(spec, out, **more) -> subprocess.Popen:
    """The sweep by the shell, with two workers; `more` goes to the process."""
    words = ["sweep", str(spec), "--out", str(out), "--workers", "2", "--json"]
    return subprocess.Popen(
        [sys.executable, "-m", "wideflow", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        **more,
    )


def records(out: pathlib.Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.glob("train-*.nc")}


def until(condition, what: str, seconds: float = 120.0):
    last = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < last, f"waited in vain for {what}"
        time.sleep(0.05)
    return found


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def still_there(process: psutil.Process) -> bool:
    try:
        return alive(process)
    except psutil.Error:
        return False


def workers_of(process: subprocess.Popen) -> list[psutil.Process]:
    found = []
    for one in psutil.Process(process.pid).children():
        with contextlib.suppress(psutil.Error):  # it may end while it is looked at
            if alive(one) and any("sweeps.worker" in word for word in one.cmdline()):
                found.append(one)
    return found


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
