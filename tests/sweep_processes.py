"""Sweeps as processes of their own, for the tests that kill them."""

import contextlib
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import psutil
import xarray as xr

from wideflow.runs.sweeps import cluster

# Every process with this `sitecustomize` appends to one log when it begins to compute a run and
# when the run is saved.
LOGGING = """
import hashlib, importlib.abc, importlib.util, os, sys

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "wideflow.runs.runner":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module
        def exec_module(module):
            execute(module)
            compute = module.compute
            def logged(experiment, store, settings, *, size, seed, **rest):
                run = hashlib.sha1(repr((settings, seed)).encode()).hexdigest()
                note("begin", run)
                record = compute(experiment, store, settings, size=size, seed=seed, **rest)
                note("saved", run)
                return record
            module.compute = logged
        spec.loader.exec_module = exec_module
        return spec

def note(what, run):
    handle = os.open(os.environ["RUN_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{what} {run}\\n".encode())
    os.close(handle)

sys.meta_path.insert(0, Finder())
"""


def log_runs(folder: pathlib.Path, monkeypatch) -> pathlib.Path:
    """Every process that starts from now on writes its log, which is returned; modules in
    `folder`/hook can be imported.
    """
    (folder / "hook").mkdir()
    (folder / "hook" / "sitecustomize.py").write_text(LOGGING)
    path = os.pathsep.join([str(folder / "hook"), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path.rstrip(os.pathsep))
    monkeypatch.setenv("RUN_LOG", str(folder / "log"))
    return folder / "log"


def numbers(table: xr.Dataset) -> xr.Dataset:
    return table.drop_vars("run_seconds")


def client(spec, out, workers: int = 2, **more) -> subprocess.Popen:
    """The sweep by the shell; `more` goes to the process."""
    words = ["sweep", str(spec), "--out", str(out), "--workers", str(workers), "--json"]
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


def kill_client(process: subprocess.Popen) -> None:
    """The client, which has the scheduler in it, dies at once; returns when its workers have
    ended.
    """
    orphans = workers_of(process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout:
        process.stdout.close()
    until(lambda: not any(map(still_there, orphans)), "the orphans' end")


@contextlib.contextmanager
def killing_workers(
    process: subprocess.Popen, saved: Callable[[], int], every: int = 8
) -> Iterator[list[int]]:
    """One of the process's workers dies whenever `every` more runs were saved; yields the list of
    the dead.

    Counted in runs and not in seconds: on a slow machine a worker would else never live long enough
    to begin.
    """
    over, chance, dead = threading.Event(), random.Random(0), []

    def work():
        last = saved()
        while not over.wait(0.1):
            if saved() < last + every:
                continue
            with contextlib.suppress(psutil.Error):
                if there := workers_of(process):
                    victim = chance.choice(there)
                    victim.send_signal(signal.SIGKILL)
                    dead.append(victim.pid)
                    last = saved()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield dead
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def separate_scheduler(
    scratch: pathlib.Path, workers: int
) -> Iterator[tuple[str, subprocess.Popen]]:
    """The address and the process of a scheduler with workers that are no client's own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", *words],
        stderr=subprocess.DEVNULL,
    )
    crew = cluster.Crew(f"tcp://127.0.0.1:{port}", workers, 1, scratch)
    try:
        until(lambda: listens(port), "the scheduler")
        crew.hire()
        try:
            yield crew.address, scheduler
        finally:
            scheduler.kill()
            crew.dismiss()
    finally:
        scheduler.kill()
        scheduler.wait()
